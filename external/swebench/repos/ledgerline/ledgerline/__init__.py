"""Plain-text double-entry bookkeeping."""

from ledgerline.book import Book
from ledgerline.journal import Entry, JournalError, Posting, parse

__all__ = ["Book", "Entry", "JournalError", "Posting", "parse"]
