"""What the entries of a journal come to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from ledgerline.journal import Entry, parse


@dataclass(frozen=True)
class Line:
    """One line of a register: what a posting did to an account, and the balance after it."""

    day: date
    description: str
    amount: Decimal
    balance: Decimal


class Book:
    """Entries in order of day; those of one day in the order of the journal."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = sorted(entries, key=lambda entry: entry.day)

    @classmethod
    def from_text(cls, text: str) -> Book:
        return cls(parse(text))

    def accounts(self) -> list[str]:
        """All accounts that something was posted to, by name."""
        return sorted({posting.account for entry in self.entries for posting in entry.postings})

    def balances(self, *, until: date | None = None) -> dict[str, Decimal]:
        """The balance of each account, by name, at the end of the day `until`."""
        found: defaultdict[str, Decimal] = defaultdict(Decimal)
        for entry in self.entries:
            if until is not None and entry.day >= until:
                break
            for posting in entry.postings:
                found[posting.account] += posting.amount
        return dict(sorted(found.items()))

    def total(self, account: str) -> Decimal:
        """The balance of an account with all accounts below it."""
        return sum(
            (amount for name, amount in self.balances().items() if name.startswith(account)), Decimal()
        )

    def register(self, account: str) -> list[Line]:
        """Each posting to an account (not those below it), with the running balance."""
        lines, balance = [], Decimal()
        for entry in self.entries:
            for posting in entry.postings:
                if posting.account == account:
                    balance += posting.amount
                    lines.append(Line(entry.day, entry.description, posting.amount, balance))
        return lines

    def months(self, account: str) -> dict[str, Decimal]:
        """What was posted to an account and those below it in each month, as `YYYY-MM`."""
        found: defaultdict[str, Decimal] = defaultdict(Decimal)
        for entry in self.entries:
            for posting in entry.postings:
                if posting.account == account or posting.account.startswith(f"{account}:"):
                    found[f"{entry.day:%Y-%m}"] += posting.amount
        return dict(found)
