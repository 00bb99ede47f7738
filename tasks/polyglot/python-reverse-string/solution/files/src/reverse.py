"""Text helpers for the label printer."""


def reverse_string(text: str) -> str:
    """The characters (code points) of `text` in the opposite order."""
    return text[::-1]


def reverse_words(text: str) -> str:
    """The words of `text` in the opposite order, joined by single spaces."""
    return " ".join(text.split()[::-1])


def is_palindrome(text: str) -> bool:
    """Whether `text` reads the same both ways, ignoring case and everything but letters and digits."""
    plain = "".join(char for char in text.casefold() if char.isalnum())
    return plain == reverse_string(plain)
