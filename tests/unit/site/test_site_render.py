"""What stands in a page: escaped text, numbers that do not round to more than they are, links by name."""

from __future__ import annotations

import re

import jinja2
import pytest

from orchestrator.site import links, render
from orchestrator.store.names import CellKey

HOSTILE = "<script>alert(1)</script>\u202egnp.exe\x00\x1b[31m\ud800\"' onload=x"
SITE = {"cab_version": "1", "cab_commit": None, "cab_dirty": False, "base_url": None, "nav": []}


def environment(*, made: set[str] | None = None, **templates: str) -> jinja2.Environment:
    env = render.environment(SITE, made or set())
    assert env.loader is not None
    env.loader = jinja2.ChoiceLoader([jinja2.DictLoader(templates), env.loader])
    return env


def rendered(
    template: str, made: set[str] | None = None, path: str = "a/b/page.html", **context: object
) -> str:
    env = environment(made=made, page=template)
    return render.render(env, path, "page", context).decode("utf-8").strip()


def test_hostile_text_is_text() -> None:
    page = rendered(
        '<p title="{{ text }}">{{ text }}</p>{{ ui.dash(text) }}{{ ui.code(text) }}', text=HOSTILE
    )
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search("[\x00\x1b\u202e\ud800]", page)
    assert page.count('"') % 2 == 0
    assert "' onload" not in page


def test_what_is_not_there_fails_the_build() -> None:
    with pytest.raises(jinja2.UndefinedError):
        rendered("{{ nothing }}")
    with pytest.raises(ValueError, match="show None"):
        rendered("{{ none_here }}", none_here=None)


def test_links_are_relative_and_checked() -> None:
    made = {"cli/opencode.html", "model/qwen=7b.html"}
    assert rendered('{{ href("cli/opencode.html") }}', made) == "../../cli/opencode.html"
    assert rendered('{{ href("cli/opencode.html#runs") }}', made, "x.html") == "cli/opencode.html#runs"
    assert rendered('{{ href(links.model_page("qwen:7b")) }}', made) == "../../model/qwen=7b.html"
    with pytest.raises(KeyError, match="not made"):
        rendered('{{ href("cli/pi.html") }}', made)
    assert rendered('{{ ui.link("cli/pi.html", "pi") }}', made) == "pi"
    assert ">pi</a>" in rendered('{{ ui.link("cli/opencode.html", "pi") }}', made)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1, "100 %"), (0, "0 %"), (0.9999, ">99.9 %"), (0.0001, "<0.1 %"), (0.5, "50.0 %"), (None, "–")],
)
def test_a_share_never_rounds_to_all_or_nothing(share: float | None, shown: str) -> None:
    assert render.percent(share) == shown


def test_numbers_as_text() -> None:
    assert render.count(12345.6) == "12\u202f346"
    assert render.seconds(0.424) == "0.42 s"
    assert render.seconds(200) == "3 min 20 s"
    assert render.seconds(7500) == "2 h 05 min"
    assert render.milliseconds(420) == "420 ms"
    assert render.dollars(0.00123) == "$0.0012"
    assert render.dollars(1234.5) == "$1\u202f234.50"
    assert render.number(2.0) == "2"
    assert render.short("sha256:" + "ab" * 32) == "abababababab"


def test_paths_by_name() -> None:
    key = CellKey("opencode", "openai/gpt:4", "polyglot/sum", 2, "rules", "large")
    assert (
        links.cell_page("free-1", key)
        == "cell/free-1/opencode/openai~gpt=4/polyglot~sum+rules@large/run2.html"
    )
    assert links.pair_page("opencode+rules", "openai/gpt") == "pair/opencode+rules/openai~gpt.html"
    assert links.task_page("polyglot/sum") == "task/polyglot/sum.html"
    assert links.task_page("a/b/c") == "task/a/b~c.html"
    assert links.task_page("alone") == "task/alone/alone.html"
    assert links.badge(links.cli_page("pi")) == "cli/pi,badge.svg"
    assert links.root_of("task/polyglot/sum.html") == "../../"
    assert links.root_of("index.html") == ""


def test_names_that_differ_have_paths_that_differ() -> None:
    names = ["a/b", "a:b", "a.b", "a-b", "ab"]
    assert len({links.model_page(name) for name in names}) == len(names)


def test_an_interval_is_drawn_where_it_is() -> None:
    drawn = rendered("{{ ui.bar(0.25, 0.5, 0.75) }}")
    assert "M25 4H74" in drawn
    assert "M50 0V9" in drawn
    assert rendered("{{ ui.bar(none, none, none) }}") == ""
