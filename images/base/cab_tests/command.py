"""The command: from its arguments to the report."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cab_tests import child, driver, report, rust, served
from cab_tests.errors import BrokenError, UnusableError
from cab_tests.listing import listed
from cab_tests.processes import PROGRAM, become_subreaper, environment
from cab_tests.suite import TEST_LIMIT_S, Results, Suite

INNER: dict[str, Callable[..., None]] = {"child": child.run, "serve": served.run}
"""What this program starts itself again as."""


def main(arguments: list[str]) -> int:
    """Run and report; gives the exit code."""
    if arguments and arguments[0] in INNER:
        INNER[arguments[0]](*arguments[1:])
        return 0
    try:
        return _run(_parsed(arguments))
    except (UnusableError, OSError, SyntaxError) as error:
        print(f"cab-tests: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    started = time.time()
    report.clear(options.logs)
    become_subreaper()
    with tempfile.TemporaryDirectory(prefix="cab-tests-", ignore_cleanup_errors=True) as scratch:
        try:
            results: Results = options.run(options, Path(scratch))
        except BrokenError as broken:
            print(broken, file=sys.stderr)
            results = {}
        passed = report.write(options.logs, f"cab-tests {options.kind}", results, started)
    for name, result in results.items():
        print(f"{result['status']:8}{name}")
    return 0 if passed else 1


def _unittest(options: argparse.Namespace, scratch: Path) -> Results:
    tests = listed(options.tests)
    argv = [*PROGRAM, "child", str(options.tests), str(options.workdir)]
    env = environment(scratch)
    if options.driver:
        argv.append(options.driver)
        build = scratch / "build"
        build.mkdir()
        env = driver.environment(build, options.tests, os.environ.get("PATH", os.defpath))
        if options.build:
            driver.compile_all(options.build, options.workdir, env)
    return Suite(argv, tests, options.workdir, scratch, env, options.test_limit).run()


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="cab-tests", description="Run hidden tests and report them as CTRF and a reward."
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, run in (("unittest", _unittest), ("rust", rust.run)):
        sub = kinds.add_parser(kind)
        sub.set_defaults(run=run)
        for name, default in (("tests", "/tests"), ("workdir", "/workdir"), ("logs", "/logs/verifier")):
            sub.add_argument(f"--{name}", type=_absolute, default=Path(default), help=f"default {default}")
        if kind == "rust":
            sub.add_argument("--crate", required=True, help="name that the tests use")
            sub.add_argument("--lib", type=_absolute, help="crate root; default WORKDIR/src/lib.rs")
            sub.add_argument("--edition", default="2021")
            continue
        sub.add_argument(
            "--driver", help="shell command that starts the driver, for other languages than Python"
        )
        sub.add_argument("--build", help="shell command that compiles it, into $BUILD")
        sub.add_argument("--test-limit", type=float, default=TEST_LIMIT_S, help="seconds for one test")
    options = parser.parse_args(arguments)
    if options.kind == "rust":
        options.lib = options.lib or options.workdir / "src" / "lib.rs"
    elif options.build and not options.driver:
        parser.error("--build compiles what --driver starts: give both")
    return options


def _absolute(path: str) -> Path:
    return Path(path).resolve()
