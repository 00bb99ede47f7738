from datetime import date
from decimal import Decimal

import pytest
from ledgerline import JournalError, Posting, parse

COFFEE = """\
; the first week
2026-01-05 Coffee
    Expenses:Food    3.50
    Assets:Cash
"""


def test_an_amount_left_out_balances_the_entry():
    [entry] = parse(COFFEE)
    assert entry.day == date(2026, 1, 5)
    assert entry.postings == (
        Posting("Expenses:Food", Decimal("3.50")),
        Posting("Assets:Cash", Decimal("-3.50")),
    )


def test_a_description_keeps_its_semicolon():
    [entry] = parse(COFFEE.replace("Coffee", "Coffee; with Ann"))
    assert entry.description == "Coffee; with Ann"


def test_pending_entries_are_marked():
    [entry] = parse(COFFEE.replace("Coffee", "! Coffee"))
    assert entry.pending
    assert entry.description == "Coffee"


def test_accounts_may_hold_blanks():
    [entry] = parse(COFFEE.replace("Assets:Cash", "Assets:Petty cash"))
    assert entry.postings[1].account == "Assets:Petty cash"


def test_comment_lines_are_passed_over():
    assert len(parse(COFFEE + "    ; no posting\n# nor this\n")) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    Assets:Cash", "    Assets:Cash  -3.00", "line 2: does not balance: 0.50"),
        ("    Assets:Cash\n", "", "line 2: an entry has two postings"),
        ("3.50", "", "line 4: a second amount"),
        ("3.50", "3,50", "line 3: '3,50' is no amount"),
        ("Expenses:Food", "1:Food", "line 3: '1:Food' is no account"),
        ("2026-01-05", "2026-02-30", "line 2: 2026-02-30 is no date"),
        ("2026-01-05 Coffee", "  Assets:Cash  1", "line 2: a posting without an entry"),
    ],
    ids=["balance", "one posting", "two left out", "comma", "account", "date", "no entry"],
)
def test_wrong_journals(old, new, message):
    with pytest.raises(JournalError, match=f"^{message}"):
        parse(COFFEE.replace(old, new))
