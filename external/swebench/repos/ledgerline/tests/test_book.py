from datetime import date
from decimal import Decimal

import pytest
from ledgerline import Book

TEXT = """\
2026-02-01 Rent
    Expenses:Rent    800
    Assets:Bank
2026-01-01 Opening
    Assets:Bank      2000
    Equity
2026-01-05 Cash
    Assets:Cash      100
    Assets:Bank
"""


@pytest.fixture
def book():
    return Book.from_text(TEXT)


def test_entries_are_in_order_of_day(book):
    assert [entry.description for entry in book.entries] == ["Opening", "Cash", "Rent"]


def test_accounts(book):
    assert book.accounts() == ["Assets:Bank", "Assets:Cash", "Equity", "Expenses:Rent"]


def test_balances(book):
    assert book.balances() == {
        "Assets:Bank": Decimal(1100),
        "Assets:Cash": Decimal(100),
        "Equity": Decimal(-2000),
        "Expenses:Rent": Decimal(800),
    }


def test_balances_before_anything(book):
    assert book.balances(until=date(2025, 12, 31)) == {}


def test_a_total_has_what_is_below(book):
    assert book.total("Assets") == 1200
    assert book.total("Assets:Cash") == 100
    assert book.total("Income") == 0


def test_register(book):
    lines = book.register("Assets:Bank")
    assert [(line.amount, line.balance) for line in lines] == [(2000, 2000), (-100, 1900), (-800, 1100)]


def test_months(book):
    assert book.months("Assets") == {"2026-01": Decimal(2000), "2026-02": Decimal(-800)}
