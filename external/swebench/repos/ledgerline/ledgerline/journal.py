"""The text of a journal, parsed into entries that balance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

_HEAD = re.compile(r"(\d{4})-(\d{2})-(\d{2})\s+(?:([!*])\s+)?(.*\S)\s*$")
_GAP = re.compile(r"\s{2,}|\t")
_AMOUNT = re.compile(r"-?\d+(?:\.\d+)?$")
_ACCOUNT = re.compile(r"[^\W\d_][\w -]*(?::[\w -]+)*$")


class JournalError(ValueError):
    """A journal is wrong; the message begins with the number of the line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(frozen=True)
class Posting:
    """An amount that goes to an account (or, when negative, comes from it)."""

    account: str
    amount: Decimal


@dataclass(frozen=True)
class Entry:
    """What happened on a day. `pending` entries are marked `!`; the amounts of all postings add up to 0."""

    day: date
    description: str
    postings: tuple[Posting, ...]
    pending: bool = False
    line: int = 0


@dataclass(frozen=True)
class _Open:
    """A posting as it stands in the journal; one in each entry may leave its amount out."""

    account: str
    amount: Decimal | None
    line: int


def parse(text: str) -> list[Entry]:
    """The entries of a journal in the order of their lines. Raises JournalError for the first wrong line."""
    return [_entry(head, body) for head, body in _blocks(text)]


def _blocks(text: str) -> Iterator[tuple[Entry, list[_Open]]]:
    head: Entry | None = None
    body: list[_Open] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip()[0] in ";#":
            continue
        if line[0].isspace():
            if head is None:
                raise JournalError(number, "a posting without an entry")
            body.append(_posting(line.strip(), number))
            continue
        if head is not None:
            yield head, body
        head, body = _head(line, number), []
    if head is not None:
        yield head, body


def _head(line: str, number: int) -> Entry:
    match = _HEAD.match(line)
    if match is None:
        raise JournalError(number, "neither an entry (YYYY-MM-DD text) nor a posting (indented)")
    year, month, day, mark, description = match.groups()
    try:
        when = date(int(year), int(month), int(day))
    except ValueError:
        raise JournalError(number, f"{year}-{month}-{day} is no date") from None
    return Entry(when, description, (), pending=mark == "!", line=number)


def _posting(text: str, number: int) -> _Open:
    account, *rest = _GAP.split(text, maxsplit=1)
    if not _ACCOUNT.match(account):
        raise JournalError(number, f"{account!r} is no account")
    return _Open(account, _amount(rest[0], number) if rest else None, number)


def _amount(text: str, number: int) -> Decimal:
    if not _AMOUNT.match(text):
        raise JournalError(number, f"{text!r} is no amount")
    return Decimal(text)


def _entry(head: Entry, body: list[_Open]) -> Entry:
    if len(body) < 2:
        raise JournalError(head.line, "an entry has two postings or more")
    total = sum((one.amount for one in body if one.amount is not None), Decimal())
    left_out = [one for one in body if one.amount is None]
    if len(left_out) > 1:
        raise JournalError(left_out[1].line, "a second amount is left out")
    if not left_out and total != 0:
        raise JournalError(head.line, f"does not balance: {total} is left over")
    postings = tuple(Posting(one.account, -total if one.amount is None else one.amount) for one in body)
    return replace(head, postings=postings)
