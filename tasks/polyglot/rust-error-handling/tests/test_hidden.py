# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import random
import unittest

from driver import ask


def good(value):
    return {"Ok": value}


def bad(index, value):
    return {"Err": {"index": index, "value": value}}


def bad_in(line, index, value):
    return {"Err": {"line": line, "reading": {"index": index, "value": value}}}


def wanted(line):
    """What the README makes of a line, field by field."""
    if not line.strip():
        return good([])
    numbers = []
    for index, field in enumerate(line.split(",")):
        field = field.strip()
        digits = field[1:] if field[:1] in ("+", "-") else field
        if not (digits.isascii() and digits.isdigit()) or not -(2**31) <= int(field) < 2**31:
            return bad(index, field)
        numbers.append(int(field))
    return good(numbers)


class LineTest(unittest.TestCase):
    def check(self, line, expected):
        self.assertEqual(ask("parse_line", line), expected, line)

    def test_good_lines(self):
        self.check("17, -4,20", good([17, -4, 20]))
        self.check("0", good([0]))
        self.check("\t+7 ,\t8 ", good([7, 8]))
        self.check("007,-0", good([7, 0]))

    def test_limits_of_32_bits(self):
        self.check("2147483647,-2147483648", good([2147483647, -2147483648]))

    def test_no_readings(self):
        self.check("", good([]))
        self.check("  \t ", good([]))

    def test_long_line(self):
        numbers = list(range(-500, 500))
        self.check(" , ".join(map(str, numbers)), good(numbers))

    def test_bad_reading_at_each_place(self):
        for index in range(20):
            fields = [str(number) for number in range(20)]
            fields[index] = f"x{index}"
            self.check(",".join(fields), bad(index, f"x{index}"))

    def test_value_is_trimmed(self):
        self.check("1,  n/a\t,3", bad(1, "n/a"))
        self.check("  two words  ", bad(0, "two words"))

    def test_first_of_several(self):
        self.check("5,a,b,c", bad(1, "a"))

    def test_nothing_is_bad(self):
        self.check("1,,2", bad(1, ""))
        self.check("1,", bad(1, ""))
        self.check(",", bad(0, ""))
        self.check("4,  ,", bad(1, ""))

    def test_kinds_of_bad(self):
        for value in ("1.5", "0x10", "--1", "1e3", "٣", "1_000", "+", "-", "NaN", "2147483648", "-2147483649"):
            self.check(f"1,2,{value}", bad(2, value))

    def test_random_lines(self):
        source = random.Random(20261128)
        pieces = ["0", "7", "-12", "+3", " 44 ", "2147483647", "-2147483648", "2147483648", "", " ", "n/a", "1 2", "5-"]
        for _ in range(300):
            weights = [12] * 7 + [1] * 6
            line = ",".join(source.choices(pieces, weights, k=source.randrange(1, 12)))
            self.check(line, wanted(line))


class TotalTest(unittest.TestCase):
    def test_sums(self):
        self.assertEqual(ask("total", "1,2,3"), good(6))
        self.assertEqual(ask("total", ""), good(0))
        self.assertEqual(ask("total", "2147483647,2147483647,1"), good(4294967295))

    def test_total_passes_it_on(self):
        self.assertEqual(ask("total", "1,zwei,3"), bad(1, "zwei"))
        self.assertEqual(ask("total", "x"), bad(0, "x"))


class ReportTest(unittest.TestCase):
    def test_good_reports(self):
        self.assertEqual(ask("parse_report", "1,2\n\n3\n"), good([[1, 2], [], [3]]))
        self.assertEqual(ask("parse_report", ""), good([]))

    def test_report_names_line_and_reading(self):
        self.assertEqual(ask("parse_report", "1,2\n\n3,?\n!"), bad_in(3, 1, "?"))
        self.assertEqual(ask("parse_report", "oops"), bad_in(1, 0, "oops"))
        for line in range(1, 12):
            lines = ["1,2"] * 12
            lines[line - 1] = "1,2,three"
            self.assertEqual(ask("parse_report", "\n".join(lines)), bad_in(line, 2, "three"))


class TextTest(unittest.TestCase):
    def test_texts_of_errors(self):
        self.assertEqual(ask("text_of_reading", 3, "n/a"), 'reading 3 is not a number: "n/a"')
        self.assertEqual(ask("text_of_line", 9, 3, "n/a"), 'line 9: reading 3 is not a number: "n/a"')


if __name__ == "__main__":
    unittest.main()
