"""nightly.sh: which sweep a night is, and what becomes of each exit code of cab's."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest
from nightly_examples import SCRIPT

TODAY = "20261128"
CAB = """\
#!/bin/sh
# Plays cab: says what it was called with, and ends with the next of the codes that it was given.
codes=codes
if [ "$1" = gate ]; then
    codes=gates
    echo "$*" >>"$PLAY/gated"
else
    echo "$*" >>"$PLAY/calls"
fi
if [ "$1 $2" = "sweep run" ]; then
    mkdir -p "$NIGHTLY_RESULTS/$5"
    : >"$NIGHTLY_RESULTS/$5/sweep.json"
fi
if [ -e "$PLAY/slow" ]; then
    sleep 60 &
    trap "kill $!; exit 130" TERM
    echo >"$PLAY/fifo"
    wait
fi
code=$(head -n 1 "$PLAY/$codes")
sed -i 1d "$PLAY/$codes"
exit "${code:-0}"
"""


class Night:
    """A results directory, and a `cab` that plays what it is told to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results = root / "results"
        (root / "cab").write_text(CAB)
        (root / "cab").chmod(0o755)
        (root / "bin").mkdir()
        (root / "bin" / "date").write_text(f'#!/bin/sh\n[ "$*" = "-u +%Y%m%d" ] && echo {TODAY}\n')
        (root / "bin" / "date").chmod(0o755)
        self.env = {
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "PLAY": str(root),
            "NIGHTLY_CAB": str(root / "cab"),
            "NIGHTLY_RESULTS": str(self.results),
            "NIGHTLY_PAUSE": "0",
        }

    def gated(self) -> list[str]:
        """The nights that were compared, since the last time this was asked."""
        path = self.root / "gated"
        said = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        path.unlink(missing_ok=True)
        return [words[words.index("--candidate") + 1] for words in said]

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        argv = ["/bin/sh", str(SCRIPT), *arguments]
        return subprocess.Popen(argv, env=self.env | env, stderr=subprocess.PIPE, text=True)

    def run(
        self, verb: str, *codes: int, spec: str = "n.yaml", gates: tuple[int, ...] = (), **env: str
    ) -> tuple[int, str]:
        """Exit code and stderr of a night on which cab ends with these codes, one after another; its gate
        with `gates`, then with 0.
        """
        (self.root / "codes").write_text("".join(f"{code}\n" for code in codes))
        (self.root / "gates").write_text("".join(f"{code}\n" for code in gates))
        process = self.start(verb, spec, **env)
        _, err = process.communicate(timeout=30)
        assert (self.root / "codes").read_text() == "", "cab was called less often than that"
        return process.returncode, err

    def calls(self) -> list[str]:
        """What cab was called with since the last time this was asked."""
        path = self.root / "calls"
        said = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line.replace(f" -r {self.results}", "") for line in said]

    def left(self, sweep_id: str, *, stored: bool = True) -> None:
        """An earlier night that has not come to its end."""
        self.results.mkdir(exist_ok=True)
        (self.results / "nightly.current").write_text(f"{sweep_id}\n")
        if stored:
            (self.results / sweep_id).mkdir()
            (self.results / sweep_id / "sweep.json").write_text("{}")

    @property
    def current(self) -> str | None:
        path = self.results / "nightly.current"
        return path.read_text().strip() if path.exists() else None


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


@pytest.fixture
def tonight() -> str:
    return f"nightly-{TODAY}"


@pytest.mark.parametrize("code", [0, 2, 130, 137])
def test_a_night_ends_with_the_code_of_cab(night: Night, tonight: str, code: int) -> None:
    assert night.run("run", code)[0] == code
    assert night.calls() == [f"sweep run n.yaml --id {tonight}"]
    assert night.current == (None if code == 0 else tonight)


def test_infrastructure_errors_are_tried_again_and_then_reported(night: Night, tonight: str) -> None:
    first, again = f"sweep run n.yaml --id {tonight}", f"sweep resume {tonight}"
    assert night.run("run", 1, 1, 0)[0] == 0
    assert night.calls() == [first, again, again]
    code, err = night.run("run", 1, 1, 1, 1)
    assert (code, night.calls(), night.current) == (1, [first, again, again, again], None)
    assert err.count("some cells ended in an infrastructure error") == 3
    assert night.run("run", 1, NIGHTLY_TRIES="0")[0] == 1
    assert night.run("run", 1, 2)[0] == 2


def test_a_night_that_was_cut_off_is_gone_on_with_first(night: Night, tonight: str) -> None:
    night.left("nightly-20260101")
    assert night.run("run", 0, 0)[0] == 0
    assert night.calls() == ["sweep resume nightly-20260101", f"sweep run n.yaml --id {tonight}"]
    assert night.current is None


def test_after_a_reboot_only_that_is_done(night: Night) -> None:
    assert night.run("resume")[0] == 0
    assert night.calls() == []
    night.left("nightly-20260101")
    assert night.run("resume", 1, 0)[0] == 0
    assert night.calls() == ["sweep resume nightly-20260101"] * 2
    assert night.current is None


def test_the_same_night_goes_on_under_its_own_id(night: Night, tonight: str) -> None:
    night.left(tonight)
    assert night.run("run", 0)[0] == 0
    assert night.calls() == [f"sweep run n.yaml --id {tonight}"]


def test_a_night_that_never_began_is_nothing_to_go_on_with(night: Night, tonight: str) -> None:
    night.left("nightly-20260101", stored=False)
    assert night.run("run", 0)[0] == 0
    assert night.calls() == [f"sweep run n.yaml --id {tonight}"]


def test_an_old_night_that_is_refused_holds_up_no_other(night: Night, tonight: str) -> None:
    night.left("nightly-20260101")
    code, err = night.run("run", 2, 0)
    assert code == 2
    assert "nightly-20260101 is given up" in err
    assert night.calls() == ["sweep resume nightly-20260101", f"sweep run n.yaml --id {tonight}"]
    assert (night.results / "nightly.given-up").read_text() == "nightly-20260101\n"
    assert night.current is None


def test_a_reboot_gives_nothing_up(night: Night) -> None:
    night.left("nightly-20260101")
    assert night.run("resume", 2)[0] == 2
    assert night.current == "nightly-20260101"


def test_stopped_while_going_on_tonights_is_not_begun(night: Night) -> None:
    night.left("nightly-20260101")
    assert night.run("run", 130)[0] == 130
    assert night.calls() == ["sweep resume nightly-20260101"]
    assert night.current == "nightly-20260101"


@pytest.mark.parametrize("codes", [(1, 1, 1, 1, 0), (0, 1, 1, 1, 1)])
def test_the_worse_of_two_nights_is_said(night: Night, codes: tuple[int, ...]) -> None:
    night.left("nightly-20260101")
    assert night.run("run", *codes)[0] == 1


def test_a_night_is_compared_with_the_good_ones_before(night: Night, tonight: str) -> None:
    assert night.run("run", 0)[0] == 0
    kept = f"{night.results}/{tonight}"
    assert (night.root / "gated").read_text().split() == (
        f"gate --baseline last-good:5 --candidate {tonight} --keep"
        f" --junit {kept}/gate.xml --markdown {kept}/gate.md -r {night.results}"
    ).split()
    night.run("run", 0, NIGHTLY_BASELINE="nightly-20260501")
    assert "--baseline nightly-20260501 " in (night.root / "gated").read_text()


@pytest.mark.parametrize(
    ("swept", "gated", "ends"), [(0, 1, 3), (1, 1, 3), (1, 0, 1), (0, 2, 2), (0, 137, 137)]
)
def test_a_worse_night_is_told_from_lost_cells(night: Night, swept: int, gated: int, ends: int) -> None:
    assert night.run("run", swept, gates=(gated,), NIGHTLY_TRIES="0")[0] == ends
    assert night.current is None


def test_what_was_cut_off_is_compared_when_it_has_ended(night: Night, tonight: str) -> None:
    night.left("nightly-20260101")
    assert night.run("run", 0, 0, gates=(1, 0))[0] == 3
    assert night.gated() == ["nightly-20260101", tonight]
    night.left("nightly-20260102")
    assert night.run("resume", 0)[0] == 0
    assert night.gated() == ["nightly-20260102"]


@pytest.mark.parametrize("code", [2, 130])
def test_a_night_that_did_not_end_is_not_compared(night: Night, code: int) -> None:
    night.run("run", code)
    assert night.gated() == []


def test_a_night_that_was_stopped_before_it_was_compared_is_gone_on_with(night: Night, tonight: str) -> None:
    assert night.run("run", 0, gates=(130,))[0] == 130
    assert night.current == tonight


def test_a_stop_reaches_cab_and_waits_for_it(night: Night, tonight: str) -> None:
    os.mkfifo(night.root / "fifo")
    (night.root / "slow").touch()
    (night.root / "codes").touch()
    process = night.start("run", "n.yaml")
    (night.root / "fifo").read_text()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert night.current == tonight


def test_nights_that_overlap_wait_for_each_other(night: Night, tonight: str) -> None:
    night.results.mkdir()
    with (night.results / "nightly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, err = night.run("run", NIGHTLY_OVERLAP="0")
        assert (code, night.calls()) == (2, [])
        assert f"another night is at work and does not end; {tonight} is not run" in err
        (night.root / "codes").write_text("0\n")
        waiting = night.start("run", "n.yaml")
        assert waiting.poll() is None
    _, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, night.calls()) == (0, [f"sweep run n.yaml --id {tonight}"])


@pytest.mark.parametrize("arguments", [(), ("run",), ("walk", "n.yaml"), ("resume",)])
def test_wrong_usage_is_one_line_and_2(night: Night, arguments: tuple[str, ...]) -> None:
    process = night.start(*arguments)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (2, "nightly: usage: nightly.sh run|resume SPEC\n")
    assert not night.results.exists()


def test_no_cab_is_no_success(night: Night) -> None:
    process = night.start("run", "n.yaml", NIGHTLY_CAB=str(night.root / "none"))
    process.communicate(timeout=30)
    assert process.returncode == 127
