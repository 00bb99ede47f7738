"""A build of minutes is seen to go on: in a terminal by a live view that fits it, elsewhere line by line."""

import io

from rich.console import Console

from orchestrator.cli._progress import PUSHING, BuildView
from orchestrator.sandbox.images import Progress

EVENTS = [
    Progress("root", "current", "cab/root:1", at=1, of=3),
    Progress("base", "started", at=2, of=3),
    Progress("base", "step", "Step 5/20 : RUN apt-get update  && apt-get install -y gcc", 3.0, at=2, of=3),
    Progress("base", "output", "\x1b[91mSetting up \x1b[0mgcc\x1b[2J [red] ...", at=2, of=3),
]
BUILT = Progress("base", "built", "cab/base:2", 143.6, at=2, of=3)


class Clock:
    seconds = 10.0

    def __call__(self) -> float:
        return self.seconds


def console(*, terminal: bool, width: int = 80) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=width,
        color_system=None,
        markup=False,
        highlight=False,
    )


def drawn(view: BuildView, out: Console) -> list[str]:
    with out.capture() as capture:
        out.print(view)
    return capture.get().splitlines()


def test_elsewhere_each_step_is_a_line() -> None:
    out = console(terminal=False)
    with BuildView(out) as view:
        for event in (*EVENTS, BUILT):
            view.show(event)
    assert out.file.getvalue().splitlines() == [
        "  1/3 root: up to date (cab/root:1)",
        "  2/3 base: building",
        "  base: 3 s: 5/20 RUN apt-get update && apt-get install -y gcc",
        "  2/3 base: built as cab/base:2 in 2 min 24 s",
    ]


def test_a_terminal_shows_image_time_step_and_last_output() -> None:
    clock, out = Clock(), console(terminal=True)
    view = BuildView(out, clock)
    for event in EVENTS:
        view.show(event)
    clock.seconds += 83
    whole, first, second = drawn(view, out)
    assert whole.rstrip() == "image 2 of 3, 1 min 23 s"
    assert first[2:].rstrip() == "base  1 min 23 s  5/20 RUN apt-get update && apt-get install -y gcc"
    assert second.rstrip() == "    Setting up gcc\ufffd[2J [red] ..."


def test_several_that_are_under_way_have_two_lines_each() -> None:
    clock, out = Clock(), console(terminal=True)
    view = BuildView(out, clock)
    view.show(Progress("one", "started", at=4, of=9, left_s=100.0))
    clock.seconds += 30
    view.show(Progress("two", "started", at=6, of=9, left_s=70.0))
    view.show(Progress("one", "step", "Step 2/3 : RUN make", at=4, of=9, left_s=70.0))
    view.show(Progress("two", "output", "fetching", at=6, of=9, left_s=70.0))
    clock.seconds += 10
    assert [line.rstrip()[2:] for line in drawn(view, out)] == [
        "ages 4 and 6 of 9, 40 s, about 1 min 00 s left",
        "one  40 s  2/3 RUN make",
        "",
        "two  10 s",
        "  fetching",
    ]
    view.show(Progress("one", "built", "cab/one:1", 40.0, at=4, of=9, left_s=50.0))
    assert [line.rstrip()[2:] for line in drawn(view, out)] == [
        "age 6 of 9, 40 s, about 50 s left",
        "two  10 s",
        "  fetching",
    ]


def test_a_push_is_told_in_its_own_words() -> None:
    out = console(terminal=False)
    with BuildView(out, words=PUSHING) as view:
        view.show(Progress("closed", "passed_over", "it is proprietary"))
        view.show(Progress("base", "started", at=1, of=1))
        view.show(Progress("base", "output", "pushing 1 of 2 MB", at=1, of=1))
        view.show(Progress("base", "built", "localhost:5000/base@sha256:d", 2.0, at=1, of=1))
    assert out.file.getvalue().splitlines() == [
        "  closed: not pushed: it is proprietary",
        "  1/1 base: pushing",
        "  1/1 base: pushed as localhost:5000/base@sha256:d in 2 s",
    ]


def test_the_view_is_never_wider_than_the_terminal() -> None:
    for width in (20, 40, 200):
        out = console(terminal=True, width=width)
        view = BuildView(out)
        for event in (*EVENTS, Progress("base", "output", "x" * 5000)):
            view.show(event)
        lines = drawn(view, out)
        assert len(lines) == 3
        assert max(map(len, lines)) <= width


def test_the_time_left_is_told_where_every_image_was_built_before_and_never_below_nothing() -> None:
    clock, out = Clock(), console(terminal=True)
    view = BuildView(out, clock)
    view.show(Progress("base", "started", at=2, of=3, left_s=100.0))
    clock.seconds += 40
    assert drawn(view, out)[0].rstrip() == "image 2 of 3, 40 s, about 1 min 00 s left"
    clock.seconds += 60
    assert drawn(view, out)[0].rstrip() == "image 2 of 3, 1 min 40 s"


def test_what_failed_is_told_again_at_the_end_with_its_log() -> None:
    out = console(terminal=False)
    with BuildView(out) as view:
        view.show(Progress("kilo", "passed_over", "no registry has it"))
        view.show(Progress("base", "failed", "build/logs/base.log: returned 7", 1.0, at=1, of=2))
        view.show(Progress("agent", "passed_over", "stands on base, which was not built", at=2, of=2))
        view.show(Progress("kilo", "failed", "build/logs/kilo.log: returned 8", 1.0, at=2, of=2))
    assert out.file.getvalue().splitlines() == [
        "  kilo: not built: no registry has it",
        "  1/2 base: failed after 1 s",
        "  2/2 agent: not built: stands on base, which was not built",
        "  2/2 kilo: failed after 1 s",
        "  not built: base: build/logs/base.log: returned 7",
        "  not built: kilo: build/logs/kilo.log: returned 8",
    ]


def test_a_failed_build_shows_the_end_of_its_log() -> None:
    out = console(terminal=False)
    view = BuildView(out)
    view.show(Progress("base", "failed", "no", 61.0, ("\x1b[91mE: gone", "[/bold] why")))
    assert out.file.getvalue().splitlines() == [
        "  | E: gone",
        "  | [/bold] why",
        "  base: failed after 1 min 01 s",
    ]


def test_in_a_terminal_what_is_done_stays_and_the_rest_goes() -> None:
    out = console(terminal=True)
    with BuildView(out) as view:
        for event in (*EVENTS, BUILT):
            view.show(event)
    text = out.file.getvalue()
    assert "base: built as cab/base:2 in 2 min 24 s\n" in text
    assert text.endswith("\x1b[2K"), "the live lines must be erased"
