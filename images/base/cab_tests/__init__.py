"""Run hidden tests against a workdir and report them: CTRF in ctrf.json, 1 or 0 in reward.txt.

    cab-tests unittest [--tests DIR] [--workdir DIR] [--logs DIR]
    cab-tests unittest [--build COMMAND] --driver COMMAND [the same]
    cab-tests rust --crate NAME [the same]

Tests are unittest files, `test_*.py`, whatever the language of the code under test. Exit code 0 and reward 1
when every expected test passed; exit code 1 and reward 0 otherwise. Where the code under test cannot be
compiled or imported, no tests are reported. Exit code 2 and no reward: the call or the tests themselves are
wrong, which is no verdict.

How the verdict is kept from the code under test
    The list of tests comes from the files in --tests, never from the run, and a test that does not report has
    not passed. Tests run in a child process. Each result comes over a pipe and carries a random word, which
    the child reads from its standard input: printing results or exiting early with 0 proves nothing. The
    child and all its descendants are killed before the report is written; this process alone writes it, and
    removes what lay in its place.

    No code under test is loaded where the tests run. It runs in a further process, which the tests' process
    asks for one thing after the other over two pipes, and which gets no other descriptor. So nothing that the
    code does to its own process reaches what judges it. A process that gives no answer costs the test that
    asked, and no test can catch that.

    Python: `from src.x import f` gives the tests stand-ins. Each import, attribute and call is one request;
    plain data crosses as JSON and arrives as exactly its type; all else stays where it is, and the tests get
    a stand-in to call.

    Other languages: a driver, a small program that comes with the tests and is compiled together with the
    code under test. `from driver import ask, Failed` gives the tests its operations. Each test has a driver
    of its own, and whatever that left running is killed after the test.

    Rust tests (`rust`) share a process with the code, which is compiled without `unsafe`, by rustc itself: no
    build script, Cargo configuration or dependency takes part. Safe code cannot read the word: when it first
    runs, standard input is /dev/null and /proc/self closed to it.

What that cannot prevent
    The code under test runs as the same user as this program. It can kill it, which then ends by a signal: a
    reward counts only together with exit code 0. And it can read the files of the tests.

Where things are
    command.py (arguments, from the call to the report), listing.py (which tests there are), suite.py (one
    child after the other, and their results), child.py (runs the tests), peer.py (a process that is asked
    line by line), stand_ins.py, served.py and plain.py (Python: the tests' side, the code's side, the data
    between), driver.py (other languages), rust.py, report.py, processes.py.
"""
