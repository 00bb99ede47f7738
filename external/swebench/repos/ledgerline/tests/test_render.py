from ledgerline import Book
from ledgerline.render import balance_sheet


def test_balance_sheet():
    book = Book.from_text("2026-01-01 Opening\n    Assets:Bank  1234.5\n    Equity\n")
    assert balance_sheet(book).splitlines() == [
        "Assets:Bank   1,234.50",
        "Equity       -1,234.50",
        "total             0.00",
    ]
