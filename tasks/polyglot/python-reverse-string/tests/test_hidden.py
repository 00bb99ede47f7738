# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import random
import unittest

from src.reverse import is_palindrome, reverse_string, reverse_words

ALPHABETS = ("abcxyz", "AZ az\t\n", "äöüßéñ", "日本語テスト", "e\u0301o\u0308", "👍🏽👨\u200d👩\u200d👧", "\0\x7f\ud800")


def backwards(text):
    out = []
    for char in text:
        out.insert(0, char)
    return "".join(out)


class ReverseStringTest(unittest.TestCase):
    def check(self, text):
        got = reverse_string(text)
        self.assertIs(type(got), str)
        self.assertEqual(ascii(got), ascii(backwards(text)))

    def test_empty(self):
        self.check("")

    def test_one_character(self):
        for char in "aZ9 ß語👍\n":
            self.check(char)

    def test_two_characters(self):
        for text in ("ab", "ba", "aa", "日本", " x"):
            self.check(text)

    def test_first_character_is_kept(self):
        for text in ("lamp", "Qrst", "  indented", "ßx", "語a"):
            self.assertTrue(reverse_string(text).endswith(text[0]))

    def test_every_length(self):
        for length in range(1, 60):
            self.check("".join(chr(0x41 + index) for index in range(length)))

    def test_combining_marks_are_characters(self):
        self.check("cafe\u0301s")
        self.check("\u0301a")

    def test_emoji_sequences_are_taken_apart(self):
        self.check("a👨\u200d👩\u200d👧b")
        self.check("👍🏽")
        self.check("🇩🇪")

    def test_random_texts(self):
        source = random.Random(20261127)
        for _ in range(300):
            self.check("".join(source.choices("".join(ALPHABETS), k=source.randrange(1, 40))))

    def test_twice_is_the_same(self):
        source = random.Random(7)
        for alphabet in ALPHABETS:
            text = "".join(source.choices(alphabet, k=25))
            self.assertEqual(ascii(reverse_string(reverse_string(text))), ascii(text))

    def test_long_text(self):
        self.check("0123456789" * 2000 + "end")


class ReverseWordsTest(unittest.TestCase):
    def test_order(self):
        self.assertEqual(reverse_words("one two three"), "three two one")

    def test_white_space_is_normalised(self):
        self.assertEqual(reverse_words("  a\tb\n c  "), "c b a")

    def test_words_themselves_are_kept(self):
        self.assertEqual(reverse_words("abc"), "abc")
        self.assertEqual(reverse_words(""), "")


class IsPalindromeTest(unittest.TestCase):
    def test_palindromes(self):
        for text in ("", "a", "aa", "Anna", "A man, a plan, a canal: Panama", "12321", "été", "No 'x' in Nixon"):
            self.assertIs(is_palindrome(text), True, text)

    def test_others(self):
        for text in ("ab", "label", "abca", "aab", "12", "annab"):
            self.assertIs(is_palindrome(text), False, text)


if __name__ == "__main__":
    unittest.main()
