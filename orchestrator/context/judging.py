"""How the continuation eval reads a text: is a thing there, does a failure read as open, is a rule in force?

No rule knows a heading of any one packager. docs/external.md has these definitions in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from orchestrator.context.fixtures import Expectation, Measure, one_line

Status = Literal["open", "ended"]

# Ends of a word as identifiers have them: `test_failed` says that it failed, `TestFailsafe` does not.
_A, _Z = r"(?<![^\W_])", r"(?![^\W_])"
_ENDED = (
    r"passe[sd]|passing|(?:now|all|tests) pass|fixed|resolved|repaired|succeed(?:s|ed)|green|closed"
    r"|(?:is|now|runs) clean|no longer (?:fails?|failing|open)|(?:does|do) not fail"
)
_OPEN = r"fail(?:s|ed|ing)?|broken|breaks|broke|open|active|unresolved|unfixed|still"
_NOT_ENDED = (
    r"(?:not|never|n't|un)(?: yet| been| be| quite)*[ -]?"
    r"(?:passed|passing|pass|fixed|resolved|repaired|green|closed)"
    r"|(?:to|must|should|needs to) be (?:fixed|resolved|repaired|closed)"
)
_STATUS = re.compile(
    rf"{_A}(?:(?P<not_ended>{_NOT_ENDED})|(?P<ended>{_ENDED})|(?P<open>{_OPEN})){_Z}", re.IGNORECASE
)
# A noun says less than a verb: "the failure is fixed", "resolved failures".
_NOUN = re.compile(rf"{_A}(?:failures?|errors?|warnings?){_Z}", re.IGNORECASE)
_TURNED = re.compile(rf"{_A}(?:again|still|now|no longer){_Z}", re.IGNORECASE)
_RETIRED = re.compile(
    rf"{_A}(?:lifted|no longer|superseded|reversed|retracted|withdrawn|replaced|obsolete|outdated|done|closed"
    rf"|dropped|resolved|was wrong){_Z}",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s*(?:#+\s+\S.*|\*\*[^*]+\*\*:?|<[\w -]+>|[^\s\-*•>|].*:)\s*")
_SENTENCES = re.compile(r"(?<=[.!?;])\s+")
_CLAUSES = re.compile(r",\s+(?!(?:but|and|then|now|later|it|which)\b)")
# Names of tests and files hold words of their own.
_NAMES = re.compile(r"\S*(?:::|/|\w\.\w|#\w)\S*")


@dataclass(frozen=True)
class _Mention:
    """The words about one mention: of its clause, its sentence, the line before it, its heading."""

    clause: str
    sentence: str
    before: str
    heading: str


class _Stand(NamedTuple):
    """What a mention says of how things stand; by its heading, or in words of its own alone."""

    status: Status
    by_heading: bool


def met(measure: Measure, one: Expectation, text: str) -> bool:
    """Whether a text meets an expectation."""
    if measure == "active_failures":
        return reads_as_open(one.match, text)
    if measure == "resolved_failures":
        return not reads_as_open(one.match, text)
    if measure == "superseded":
        return not in_force(one, text)
    found = _search(one.match, one_line(text)) is not None
    return not found if measure == "risky" else found


def reads_as_open(match: re.Pattern[str], text: str) -> bool:
    """Whether the last mention that says how things stand says that it fails.

    Mentions under a heading that says "failed", "resolved" and the like, or in it, outrank all others: texts
    with such sections are in no order of time. They stand as their heading says, unless their own sentence
    says the opposite with "again", "still", "now" or "no longer". Of other mentions the own clause decides,
    then the sentence, then what stands before it on its line. What is never mentioned with such a word does
    not read as open.
    """
    said = [stand for mention in _mentions(match, text) if (stand := _stand(mention))]
    ranked = [stand for stand in said if stand.by_heading] or said
    return bool(ranked) and ranked[-1].status == "open"


def in_force(one: Expectation, text: str) -> bool:
    """Whether a rule or belief that was ended still stands: it is there, its last mention does not say that
    it has ended, and what took its place is not said after it.
    """
    line = one_line(text)
    ends = [found.end() for found in re.finditer(one.match.pattern, line, re.IGNORECASE)]
    if not ends:
        return False
    mentions = list(_mentions(one.match, text))
    if mentions and any(_RETIRED.search(part) for part in (mentions[-1].sentence, mentions[-1].heading)):
        return False
    return one.by is None or _search(one.by, line[ends[-1] :]) is None


def _search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return re.search(pattern.pattern, text, re.IGNORECASE)


def _mentions(match: re.Pattern[str], text: str) -> Iterator[_Mention]:
    heading = ""
    for line in text.splitlines():
        whole = one_line(line)
        if _HEADING.fullmatch(line):
            heading = _plain(re.sub(match.pattern, " ", whole, flags=re.IGNORECASE))
        for one in re.finditer(match.pattern, whole, re.IGNORECASE):
            clause, _ = _around(whole, one, _SENTENCES, _CLAUSES)
            sentence, before = _around(whole, one, _SENTENCES)
            yield _Mention(clause, sentence, before, heading)


def _around(line: str, one: re.Match[str], *ends: re.Pattern[str]) -> tuple[str, str]:
    """What stands about a mention up to the nearest of `ends` on both sides, and what stands before that."""
    cuts = [found.span() for end in ends for found in end.finditer(line)]
    first = max((after for _, after in cuts if after <= one.start()), default=0)
    last = min((before for before, _ in cuts if before >= one.end()), default=len(line))
    return _plain(f"{line[first : one.start()]} {line[one.end() : last]}"), _plain(line[:first])


def _plain(text: str) -> str:
    return _NAMES.sub(" ", text)


def _stand(mention: _Mention) -> _Stand | None:
    own = _last_word(mention.clause) or _last_word(mention.sentence)
    if heading := _last_word(mention.heading, first="ended"):
        turned = own is not None and own != heading and _TURNED.search(mention.sentence)
        return _Stand(own if turned and own else heading, by_heading=True)
    status = own or _last_word(mention.before)
    return _Stand(status, by_heading=False) if status else None


def _last_word(text: str, first: Status | None = None) -> Status | None:
    """What the last word about it says; where `first` is said at all, that."""
    said: list[Status] = ["ended" if found["ended"] else "open" for found in _STATUS.finditer(text)]
    if first in said:
        return first
    return said[-1] if said else ("open" if _NOUN.search(text) else None)
