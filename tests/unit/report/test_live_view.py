"""The live view never outgrows the terminal, says what is under way, and harms no terminal."""

import io
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from report_samples import SWEEP, entry
from rich.console import Console

from orchestrator.plan.expand import PlannedCell
from orchestrator.report.live import FINISHING, HINT, LiveView, PlainView, _interruptible, watch
from orchestrator.run.outcome import Outcome
from orchestrator.store.names import CellKey


class Clock:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def cell(number):
    key = CellKey("opencode", "openai/gpt-with-a-long-name", f"polyglot/task-{number}")
    return PlannedCell(key.cell_id(SWEEP), key, "hosted", number)


def terminal(width=80, height=24):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)


def drawn(view, out):
    with out.capture() as capture:
        out.print(view)
    return capture.get().splitlines()


@pytest.fixture
def clock():
    return Clock()


def test_sixty_four_workers_fit_any_terminal(clock):
    view = LiveView(200, clock)
    for number in range(64):
        view.started(cell(number))
    for width, height in ((80, 24), (80, 10), (200, 50), (40, 6)):
        lines = drawn(view, terminal(width, height))
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
    assert drawn(view, terminal())[-1].strip() == "… 44 more under way"
    assert len(drawn(view, terminal(200, 100))) == 64 + 3


def test_stage_and_seconds_of_the_longest_first(clock):
    view = LiveView(3, clock)
    view.started(cell(1))
    clock.seconds += 65
    view.started(cell(2))
    view.stage(cell(1), "verify")
    clock.seconds += 5
    rows = [line.split() for line in drawn(view, terminal(120))[3:]]
    assert rows[0][:5] == ["1", "min", "10", "s", "verify"]
    assert rows[1][:3] == ["5", "s", "starting"]
    assert "task-1" in rows[0][-1]


def test_the_head_counts_by_outcome_and_guesses_the_time_left(clock):
    view = LiveView(6, clock)
    for number in range(5):
        view.started(cell(number))
    view.ended(cell(0), entry(total_tokens=1000))
    view.ended(cell(1), entry(passed=0.0, outcome="timed_out", total_tokens=500))
    view.ended(cell(2), entry(passed=1.0, outcome="infra_error", cause="engine", total_tokens=None))
    view.retrying(cell(3), Outcome("infra_error", "rate_limited"))
    clock.seconds += 30
    head = drawn(view, terminal(120))
    assert head[0] == "3/6 done: 1 passed, 1 failed, 1 not counted; 1 running, 2 waiting"
    assert head[1] == "1\u202f500 tokens, 30 s, about 30 s left, 1 try made again"
    assert head[2] == "completed 1, infra_error 1, timed_out 1"
    assert head[3] == HINT


def test_a_stopped_cell_neither_runs_nor_waits(clock):
    view = LiveView(2, clock)
    view.started(cell(1))
    view.cancelled(cell(1))
    assert "0 running, 1 waiting" in drawn(view, terminal(120))[0]


def test_plain_lines_off_a_terminal(clock):
    out = Console(file=io.StringIO(), force_terminal=False, width=80, markup=False, highlight=False)
    view = PlainView(out, 3, clock)
    view.retrying(cell(1), Outcome("infra_error", "rate_limited", "429\x1b[2J\nfake line"))
    clock.seconds += 10
    view.ended(cell(1), entry())
    view.cancelled(cell(2))
    lines = out.file.getvalue().splitlines()
    assert lines == [
        "again later: opencode openai/gpt-with-a-long-name polyglot/task-1: infra_error(rate_limited) "
        "429\ufffd[2J fake line",
        "[1/3] opencode openai/gpt-with-a-long-name polyglot/task-1: completed, pass 1, 1 500 tokens, 3.0 s; "
        "about 20 s left",
        "stopped: opencode openai/gpt-with-a-long-name polyglot/task-2",
    ]


def test_ctrl_c_once_finishes_and_twice_stops(clock):
    asked = []
    sweep = SimpleNamespace(stopping=False, cancel=lambda: asked.append("cancel"))

    def stop():
        asked.append("stop")
        sweep.stopping = True

    sweep.stop = stop
    out = terminal()
    before = signal.getsignal(signal.SIGINT)
    view = LiveView(1, clock)
    assert drawn(view, terminal())[-1].strip() == HINT
    with _interruptible(sweep, view), view.shown(out):
        signal.raise_signal(signal.SIGINT)
        assert asked == ["stop"]
        assert drawn(view, terminal())[-1].strip() == FINISHING
        signal.raise_signal(signal.SIGTERM)
    assert asked == ["stop", "cancel"]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_is_answered_off_a_terminal_too(clock):
    out = Console(file=io.StringIO(), force_terminal=False, width=80)
    PlainView(out, 1, clock).finishing()
    assert out.file.getvalue() == f"{FINISHING}\n"


def test_nothing_of_the_view_is_left_once_it_ends(clock):
    out = terminal()
    view = LiveView(1, clock)
    with view.shown(out):
        view.started(cell(1))
    # Each line that was drawn is erased again: up one line, clear it.
    assert out.file.getvalue().count("\x1b[1A\x1b[2K") >= 4


def test_tokens_are_a_dash_until_some_were_measured(clock):
    view = LiveView(2, clock)
    view.started(cell(1))
    assert drawn(view, terminal())[1].startswith("– tokens")
    view.ended(cell(1), entry(total_tokens=0))
    assert drawn(view, terminal())[1].startswith("0 tokens")


def test_stages_have_names_for_people_and_rows_no_blank_columns(clock):
    view = LiveView(2, clock)
    view.started(cell(1))
    names = []
    for stage in ("task_setup", "adapter_run", "collect", "verify", "score"):
        view.stage(cell(1), stage)
        names.append(drawn(view, terminal())[-1].split()[2])
        assert drawn(view, terminal())[-1].startswith(f"0 s  {names[-1]}  opencode")
    assert names == ["setup", "agent", "collect", "verify", "score"]


@pytest.mark.parametrize(
    ("interrupted", "said"),
    [(False, "1 cell in 0 s\n"), (True, f"stopped after 0 s; go on with: cab sweep resume {SWEEP} -r /r\n")],
)
def test_one_plain_line_says_how_it_ended(monkeypatch, capsys, interrupted, said):
    made = SimpleNamespace(run=lambda: None, interrupted=interrupted, stopping=False)
    monkeypatch.setattr("orchestrator.run.sweep.Sweep", lambda *_: made)
    ready = SimpleNamespace(
        matrix=SimpleNamespace(
            plan=SimpleNamespace(cells=[cell(1)]), sweep_id=SWEEP, spec=SimpleNamespace(retries=0)
        ),
        todo=[cell(1)],
        bench=SimpleNamespace(concurrency=2),
        store=SimpleNamespace(root=Path("/r") / SWEEP),
    )
    assert watch(ready) is interrupted
    assert capsys.readouterr().err.endswith(said)


def test_the_handler_may_draw_while_the_view_is_being_drawn(clock):
    view = LiveView(1, clock)
    with view._lock:
        assert drawn(view, terminal())


def test_nothing_to_do_is_said(capsys):
    plan = SimpleNamespace(cells=[cell(1), cell(2)])
    ready = SimpleNamespace(matrix=SimpleNamespace(plan=plan, sweep_id=SWEEP), todo=[], bench=None)
    assert watch(ready) is False
    captured = capsys.readouterr()
    assert captured.err == f"{SWEEP}: 2 cells finished, nothing to do\n"
    assert captured.out == ""
