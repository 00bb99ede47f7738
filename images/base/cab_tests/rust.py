"""Rust tests that share a process with the code under test."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

from cab_tests.errors import BrokenError, UnusableError
from cab_tests.listing import checked
from cab_tests.processes import PR_SET_DUMPABLE, environment, kill_descendants
from cab_tests.suite import SUITE_LIMIT_S, Results, Suite

RUST_TEST = re.compile(r"^#\[test\][ \t]*\nfn (\w+)\(\) \{", re.MULTILINE)

RUST_MAIN = """\
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};

extern "C" {
    fn prctl(option: i32, ...) -> i32;
    fn dup2(from: i32, to: i32) -> i32;
}

fn main() {
    assert_eq!(unsafe { prctl(PR_SET_DUMPABLE, 0usize, 0usize, 0usize, 0usize) }, 0);
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    assert_eq!(unsafe { dup2(std::fs::File::open("/dev/null").unwrap().as_raw_fd(), 0) }, 0);
    let mut lines = input.lines();
    let word = lines.next().unwrap().to_string();
    let descriptor: i32 = lines.next().unwrap().parse().unwrap();
    let mut report = unsafe { std::fs::File::from_raw_fd(descriptor) };
    let tests: &[(&str, fn())] = &[CASES];
    for name in lines {
        let test = tests.iter().find(|(known, _)| *known == name).unwrap().1;
        let (status, message) = match std::panic::catch_unwind(test) {
            Ok(()) => ("passed", String::new()),
            Err(cause) => ("failed", text(cause)),
        };
        let message = message.replace('\\t', " ").replace('\\n', "\\\\n");
        write!(report, "\\n{word}\\t{name}\\t{status}\\t{message}\\n").unwrap();
    }
}

fn text(cause: Box<dyn std::any::Any + Send>) -> String {
    match (cause.downcast_ref::<&str>(), cause.downcast_ref::<String>()) {
        (Some(text), _) => text.to_string(),
        (_, Some(text)) => text.clone(),
        _ => "panicked".to_string(),
    }
}
"""


def run(options: argparse.Namespace, scratch: Path) -> Results:
    """Compile the crate, then the tests as plain functions under a main of our own, and run that."""
    modules, tests = [], []
    for path in sorted(options.tests.glob("*.rs")):
        text = path.read_text(encoding="utf-8")
        names = RUST_TEST.findall(text)
        if text.count("#[test]") != len(names):
            raise UnusableError(f"{path.name}: #[test] must stand right above `fn name() {{`, at top level")
        (scratch / path.name).write_text(RUST_TEST.sub(r"\npub fn \1() {", text), encoding="utf-8")
        modules.append(f"mod {path.stem};\n")
        tests += [f"{path.stem}::{name}" for name in names]
    cases = ", ".join(f'("{test}", {test} as fn())' for test in checked(tests, options.tests))
    main_text = RUST_MAIN.replace("CASES", cases).replace("PR_SET_DUMPABLE", str(PR_SET_DUMPABLE))
    main = scratch / "main.rs"
    main.write_text("".join(modules) + main_text, encoding="utf-8")

    crate, library, runner = options.crate, scratch / f"lib{options.crate}.rlib", scratch / "runner"
    # `unsafe_code` is also the lint of symbols and sections that take the place of others.
    kind = ("--crate-type=rlib", "-Funsafe-code")
    rustc(options, scratch, *kind, f"--crate-name={crate}", f"-o{library}", str(options.lib))
    rustc(options, scratch, f"--extern={crate}={library}", f"-o{runner}", str(main))
    return Suite([str(runner)], tests, options.workdir, scratch, environment(scratch)).run()


def rustc(options: argparse.Namespace, scratch: Path, *arguments: str) -> None:
    compiler = shutil.which("rustc")
    if compiler is None:
        raise UnusableError("rustc is not installed")
    try:
        done = subprocess.run(
            [compiler, f"--edition={options.edition}", "--color=never", "-Cdebuginfo=0", *arguments],
            cwd=scratch,
            env=environment(scratch),
            stderr=subprocess.PIPE,
            check=False,
            timeout=SUITE_LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        kill_descendants()
        raise BrokenError(f"compiling took over {SUITE_LIMIT_S:g} s") from error
    if done.returncode != 0:
        raise BrokenError(done.stderr.decode("utf-8", "replace"))
