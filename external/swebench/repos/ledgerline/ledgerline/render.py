"""Tables of a book as text."""

from __future__ import annotations

from decimal import Decimal

from ledgerline.book import Book


def money(amount: Decimal) -> str:
    """An amount with two places and separated thousands."""
    return f"{amount:,.2f}"


def balance_sheet(book: Book) -> str:
    """A line for each account, amounts aligned, and a line with their sum."""
    rows = [*book.balances().items()]
    rows.append(("total", sum((amount for _, amount in rows), Decimal())))
    width = max(len(name) for name, _ in rows)
    amounts = max(len(money(amount)) for _, amount in rows)
    return "\n".join(f"{name:<{width}}  {money(amount):>{amounts}}" for name, amount in rows)
