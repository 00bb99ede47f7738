"""Places as ranges: nothing stands above what it cannot be told from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.standing import Place, Span, beaten_by, leaders, places

SPANS = {"a": Span(0.8, 0.9), "b": Span(0.7, 0.85), "c": Span(0.5, 0.65), "d": Span(0.64, 0.66)}


def test_intervals_that_meet_share_their_places() -> None:
    found = places(SPANS, "higher")
    assert {name: str(place) for name, place in found.items()} == {
        "a": "1–2",
        "b": "1–2",
        "c": "3–4",
        "d": "3–4",
    }
    assert found["a"] == Place(1, 2, 4)
    assert leaders(SPANS, "higher") == ["a", "b"]


def test_where_less_is_better_the_order_turns() -> None:
    assert leaders(SPANS, "lower") == ["c", "d"]
    assert str(places(SPANS, "lower")["a"]) == "3–4"


def test_bounds_that_touch_do_not_tell_apart() -> None:
    assert leaders({"a": Span(0.5, 0.6), "b": Span(0.4, 0.5)}, "higher") == ["a", "b"]
    assert str(places({"a": Span(0.5, 0.6), "b": Span(0.4, 0.49)}, "higher")["a"]) == "1"


def test_one_alone_is_first_and_none_are_nothing() -> None:
    assert places({"a": Span(0, 1)}, "higher") == {"a": Place(1, 1, 1)}
    assert places({}, "higher") == {}
    assert leaders({}, "lower") == []


@given(
    st.dictionaries(
        st.text("abcdefgh", min_size=1, max_size=3),
        st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda it: Span(it[0], it[0] + it[1])),
        max_size=12,
    )
)
def test_places_count_who_is_clearly_better_and_clearly_worse(spans: dict[str, Span]) -> None:
    for name, place in places(spans, "higher").items():
        better = sum(other.low > spans[name].high for other in spans.values())
        worse = sum(other.high < spans[name].low for other in spans.values())
        assert place == Place(1 + better, len(spans) - worse, len(spans))


def test_beaten_is_who_is_clearly_worse_in_everything() -> None:
    passed = {"a": Span(0.8, 0.9), "b": Span(0.5, 0.6), "c": Span(0.5, 0.6), "alone": Span(0, 1)}
    cost = {"a": Span(1, 2), "b": Span(3, 4), "c": Span(1.5, 4)}
    assert beaten_by([passed, cost], ["higher", "lower"]) == {"a": [], "b": ["a"], "c": []}
