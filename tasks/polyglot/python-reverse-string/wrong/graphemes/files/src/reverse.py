"""Text helpers for the label printer."""

import unicodedata


def reverse_string(text: str) -> str:
    """The characters of `text` in the opposite order, accents kept on their letters."""
    clusters: list[str] = []
    for char in text:
        if clusters and unicodedata.combining(char):
            clusters[-1] += char
        else:
            clusters.append(char)
    return "".join(reversed(clusters))


def reverse_words(text: str) -> str:
    """The words of `text` in the opposite order, joined by single spaces."""
    return " ".join(text.split()[::-1])


def is_palindrome(text: str) -> bool:
    """Whether `text` reads the same both ways, ignoring case and everything but letters and digits."""
    plain = "".join(char for char in text.casefold() if char.isalnum())
    return plain == reverse_string(plain)
