import unittest

from src.reverse import is_palindrome, reverse_string, reverse_words


class ReverseTest(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(reverse_string(""), "")

    def test_word(self):
        self.assertEqual(reverse_string("lamp"), "pmal")

    def test_words(self):
        self.assertEqual(reverse_words("fragile glass  inside"), "inside glass fragile")

    def test_not_a_palindrome(self):
        self.assertFalse(is_palindrome("label"))


if __name__ == "__main__":
    unittest.main()
