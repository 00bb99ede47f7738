"""The live view never outgrows the terminal, says what is under way, and harms no terminal."""

import io
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from report_samples import SWEEP, entry
from rich.console import Console

from orchestrator.fleet import Fleet
from orchestrator.plan.expand import PlannedCell, Recorded
from orchestrator.plan.spec import Spending
from orchestrator.report.live import (
    FINISHING,
    HINT,
    STOPPING,
    LiveView,
    PlainView,
    go_on,
    interruptible,
    watch,
)
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


def live(total, clock, at_once=1):
    return LiveView([cell(number) for number in range(total)], at_once, clock)


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
    view = live(200, clock)
    for number in range(64):
        view.started(cell(number))
    for width, height in ((80, 24), (80, 10), (200, 50), (40, 6)):
        lines = drawn(view, terminal(width, height))
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
    assert drawn(view, terminal())[-1].strip() == "… 44 cells more under way: 44 starting"
    assert len(drawn(view, terminal(200, 100))) == 64 + 3


def test_stage_and_seconds_of_the_longest_first(clock):
    view = live(3, clock)
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
    view = live(6, clock)
    for number in range(5):
        view.started(cell(number))
    view.ended(cell(0), entry(total_tokens=1000))
    view.ended(cell(1), entry(passed=0.0, outcome="timed_out", total_tokens=500))
    view.ended(cell(2), entry(passed=1.0, outcome="infra_error", cause="engine", total_tokens=None))
    view.retrying(cell(3), Outcome("infra_error", "rate_limited"))
    clock.seconds += 30
    head = drawn(view, terminal(120))
    assert head[0] == "3/6 done: 1 passed, 1 failed, 1 not counted; 1 running, 2 waiting"
    # The second under way takes longer than those that ended at once: what it will take is not known.
    assert head[1] == "about 0 s left, 30 s so far, 1\u202f500 tokens (2 of 3 known), 1 try made again"
    assert head[2] == "completed 1, infra_error 1, timed_out 1"
    assert head[3] == HINT


def test_a_stopped_cell_neither_runs_nor_waits(clock):
    view = live(2, clock)
    view.started(cell(1))
    view.cancelled(cell(1))
    assert "0 running, 1 waiting" in drawn(view, terminal(120))[0]


def test_plain_lines_off_a_terminal(clock):
    out = Console(file=io.StringIO(), force_terminal=False, width=80, markup=False, highlight=False)
    view = PlainView(out, [cell(1), cell(2), cell(3)], 1, clock)
    view.started(cell(1))
    view.retrying(cell(1), Outcome("infra_error", "rate_limited", "429\x1b[2J\nfake line"))
    view.started(cell(1))
    clock.seconds += 10
    view.ended(cell(1), entry())
    view.started(cell(2))
    view.cancelled(cell(2))
    lines = out.file.getvalue().splitlines()
    assert lines == [
        "again later: opencode openai/gpt-with-a-long-name polyglot/task-1: infra_error (rate_limited) "
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
    view = live(1, clock)
    assert drawn(view, terminal())[-1].strip() == HINT
    with interruptible(sweep, view), view.shown(out):
        signal.raise_signal(signal.SIGINT)
        assert asked == ["stop"]
        assert drawn(view, terminal())[-1].strip() == FINISHING
        signal.raise_signal(signal.SIGTERM)
        assert drawn(view, terminal())[-1].strip() == STOPPING
    assert asked == ["stop", "cancel"]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_is_answered_off_a_terminal_too(clock):
    out = Console(file=io.StringIO(), force_terminal=False, width=80)
    view = PlainView(out, [cell(1)], 1, clock)
    view.finishing()
    view.stopping()
    assert out.file.getvalue() == f"{FINISHING}\n{STOPPING}\n"


def test_nothing_of_the_view_is_left_once_it_ends(clock):
    out = terminal()
    view = live(1, clock)
    with view.shown(out):
        view.started(cell(1))
    # Each line that was drawn is erased again: up one line, clear it.
    assert out.file.getvalue().count("\x1b[1A\x1b[2K") >= 4


def test_tokens_and_cost_are_shown_once_some_are_known_with_how_many_cells_told_them(clock):
    view = live(4, clock)

    def after(number, **told):
        view.started(cell(number))
        view.ended(cell(number), entry(**told))
        return drawn(view, terminal(120))[1].rstrip()

    assert drawn(view, terminal())[1].rstrip() == "0 s so far"
    assert after(0, total_tokens=None, cost_usd=None).endswith("0 s so far")
    assert after(1, total_tokens=0, cost_usd=0.25).endswith("0 tokens (1 of 2 known), $0.2500 (1 of 2 known)")
    # A baseline asks no model: it costs nothing, and nobody need tell that.
    assert after(2, model="none", total_tokens=0, cost_usd=None).endswith("$0.2500 (1 of 2 known)")


def test_stages_have_names_for_people_and_rows_no_blank_columns(clock):
    view = live(2, clock)
    view.started(cell(1))
    names = []
    for stage in ("task_setup", "adapter_run", "collect", "verify", "score"):
        view.stage(cell(1), stage)
        names.append(drawn(view, terminal())[-1].split()[2])
        assert drawn(view, terminal())[-1].startswith(f"0 s  {names[-1]}  opencode")
    assert names == ["setup", "agent", "collect", "verify", "score"]


@pytest.mark.parametrize(
    ("interrupted", "over", "said"),
    [
        (False, 0, "1 cell in 0 s\n"),
        (True, 0, f"stopped after 0 s; go on with: cab sweep resume {SWEEP} -r /r\n"),
        (
            False,
            3,
            "sweep_budget: 5 of 5 tokens and $0.0000 of $1.50 used after 0 s, 3 cells not run; "
            f"go on with: cab sweep resume {SWEEP} --budget-tokens MORE -r /r\n",
        ),
    ],
)
def test_one_plain_line_says_how_it_ended(monkeypatch, capsys, interrupted, over, said):
    def sweep(*given):
        def run():
            given[-1].add(5, None)

        return SimpleNamespace(run=run, interrupted=interrupted, stopping=False, over_budget=over)

    monkeypatch.setattr("orchestrator.run.sweep.Sweep", sweep)
    ready = SimpleNamespace(
        matrix=SimpleNamespace(
            plan=SimpleNamespace(cells=[cell(1)]),
            sweep_id=SWEEP,
            fleet=Fleet(),
            spec=SimpleNamespace(retries=0, budget=Spending(tokens=5, usd=1.5)),
        ),
        chosen=[cell(1)],
        todo=[cell(1)],
        bench=SimpleNamespace(concurrency=2),
        store=SimpleNamespace(root=Path("/r") / SWEEP, finished=dict),
        only=(),
        incompatible=(),
        held=(),
    )
    assert watch(ready) is interrupted
    assert capsys.readouterr().err.endswith(said)


def test_the_handler_may_draw_while_the_view_is_being_drawn(clock):
    view = live(1, clock)
    with view._lock:
        assert drawn(view, terminal())


@pytest.mark.parametrize(
    ("chosen", "said"),
    [(2, "2 cells finished, nothing to do"), (1, "1 cell finished, nothing to do; 1 left out by --only")],
)
def test_nothing_to_do_is_said(capsys, chosen, said):
    cells = [cell(1), cell(2)]
    matrix = SimpleNamespace(plan=SimpleNamespace(cells=cells), sweep_id=SWEEP)
    ready = SimpleNamespace(
        matrix=matrix, chosen=cells[:chosen], todo=[], bench=None, incompatible=(), held=()
    )
    assert watch(ready) is False
    captured = capsys.readouterr()
    assert captured.err == f"{SWEEP}: {said}\n"
    assert captured.out == ""


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 12), (132, 43)])
def test_two_hundred_cells_with_all_there_is_to_say_stay_readable(clock, width, height):
    view = live(200, clock, at_once=40)
    for number in range(150):
        view.started(cell(number))
        clock.seconds += 7
        if number < 110:
            view.ended(
                cell(number),
                entry(
                    passed=number % 2,
                    total_tokens=123_456,
                    cost_usd=0.4321 if number % 3 else None,
                    outcome="timed_out" if number % 5 else "completed",
                ),
            )
        elif number % 4:
            view.stage(cell(number), "adapter_run" if number % 3 else "verify")
    lines = drawn(view, terminal(width, height))
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    text = [line.rstrip() for line in lines]
    assert text[0] == "110/200 done: 55 passed, 55 failed; 40 running, 50 waiting"
    # 90 cells of 7 s in 40 places; the clock of the longest under way is far beyond these.
    assert text[1].startswith("about ")
    assert "13\u202f580\u202f160 tokens, $31.54 (73 of 110 known)" in text[1]
    assert text[2] == "completed 22, timed_out 88"
    assert not any(line.endswith("…") for line in text[:3])
    assert text[-1].startswith("… ") if height < 44 else True
    assert "more under way: " in text[-1]


def test_a_limited_call_that_was_stopped_goes_on_as_limited(tmp_path):
    ready = SimpleNamespace(
        matrix=SimpleNamespace(sweep_id=SWEEP, fleet=Fleet()),
        store=SimpleNamespace(root=tmp_path / SWEEP),
        chosen=(),
        only=("noop/*", "a b"),
    )
    end = f" sweep resume {SWEEP} --only 'noop/*' --only 'a b' -r {tmp_path}"
    assert go_on(ready).endswith(end)


def test_a_replay_that_was_stopped_begins_anew(tmp_path):
    key = CellKey("opencode", "replay/m", "a/b")
    recorded = Recorded("s/opencode/m/a/b#run1", tmp_path / "run1", "m")
    matrix = SimpleNamespace(fleet=Fleet())
    ready = SimpleNamespace(matrix=matrix, chosen=[PlannedCell(key.cell_id(SWEEP), key, None, 0, recorded)])
    assert go_on(ready).endswith(f" cell replay {tmp_path / 'run1'}")
