import pytest
from semrange import Range, RangeError, Version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("^1.2.3", "1.2.3"),
        ("^1.2.3", "1.9.0"),
        ("^1", "1.0.0"),
        ("~1.2.3", "1.2.9"),
        ("~1", "1.9.0"),
        (">=1.0 <2", "1.5.0"),
        ("1.x", "1.7.7"),
        ("1.2", "1.2.7"),
        ("*", "9.9.9"),
        ("", "0.0.1"),
        ("1.2.3 - 2.3.4", "2.3.4"),
        ("^1.0 || >=3", "3.1.0"),
        ("= 1.2.3", "1.2.3"),
    ],
)
def test_in(text, version):
    assert Version.parse(version) in Range.parse(text)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("^1.2.3", "1.2.2"),
        ("^1.2.3", "2.0.0"),
        ("~1.2.3", "1.3.0"),
        ("~1", "2.0.0"),
        (">=1.0 <2", "2.0.0"),
        ("1.x", "2.0.0"),
        ("1.2.3 - 2.3.4", "2.3.5"),
        ("^1.0 || >=3", "2.0.0"),
        ("1.2.3", "1.2.4"),
    ],
)
def test_not_in(text, version):
    assert Version.parse(version) not in Range.parse(text)


def test_a_range_as_text():
    assert str(Range.parse("~1.2 || *")) == ">=1.2.0 <1.3.0 || *"


@pytest.mark.parametrize("text", [">=", "^a.b.c", "1.2.3.4.5"])
def test_no_ranges(text):
    with pytest.raises(RangeError):
        Range.parse(text)
