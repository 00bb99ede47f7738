"""The tests' own process: loads each test by name and runs it against code that runs elsewhere."""

from __future__ import annotations

import os
import re
import sys
import traceback
import unittest
from typing import NoReturn, TextIO

from cab_tests.driver import DriverModule
from cab_tests.processes import become_subreaper
from cab_tests.stand_ins import Code


class Child:
    """Reports the results of `names`; `at` is the test under way."""

    def __init__(self, word: str, report: TextIO, names: list[str]) -> None:
        self.word = word
        self.report = report
        self.names = names
        self.at = names[0]

    def say(self, status: str, message: str) -> None:
        text = message.replace("\t", " ").replace("\n", "\\n")
        self.report.write(f"\n{self.word}\t{self.at}\t{status}\t{text}\n")
        self.report.flush()

    def give_up(self, reason: str) -> NoReturn:
        """End this process, which costs the test it is at and no test can catch."""
        print(f"{self.at}: {reason}", file=sys.stderr, flush=True)
        self.say("error", reason)
        os._exit(1)

    def load(self) -> bool:
        """Whether all files of tests can be imported."""
        for module in dict.fromkeys(name.partition(".")[0] for name in self.names):
            try:
                __import__(module)
            except Exception as error:  # noqa: BLE001 - whatever the code under test raises
                traceback.print_exception(error)
                self.say("broken", f"{module} cannot be loaded: {type(error).__name__}: {error}")
                return False
        return True


def run(tests_dir: str, workdir: str, driver: str = "") -> None:
    """Run the tests that standard input orders; `driver` starts the driver, where the code is not Python."""
    word, descriptor, *names = sys.stdin.read().split("\n")[:-1]
    become_subreaper()
    os.set_inheritable(int(descriptor), False)
    child = Child(word, os.fdopen(int(descriptor), "w", encoding="utf-8", errors="replace"), names)
    sys.path.insert(0, tests_dir)
    module = DriverModule(driver, child.give_up) if driver else None
    if module:
        sys.modules["driver"] = module
    else:
        # Last of all: nothing in the workdir can stand in for a module of the library or of the tests.
        sys.meta_path.append(Code(workdir, child.give_up))
    if not child.load():
        return
    for child.at in names:
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromName(child.at).run(result)
        if module:
            module.end()
        child.say(*_verdict(result))


def _verdict(result: unittest.TestResult) -> tuple[str, str]:
    problems = [*result.errors, *result.failures]
    if problems:
        text = problems[0][1].strip()
        print(text, file=sys.stderr)
        raised = [line for line in text.splitlines() if re.match(r"[\w.]+(: |$)", line)]
        return "failed", (raised or [text])[-1]
    if result.skipped:
        return "skipped", result.skipped[0][1]
    plain = result.testsRun == 1 and not result.expectedFailures and not result.unexpectedSuccesses
    return ("passed", "") if plain else ("failed", "ran as something other than one plain test")
