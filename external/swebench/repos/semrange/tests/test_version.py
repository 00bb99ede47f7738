import pytest
from semrange import Version, VersionError


def test_parts():
    version = Version.parse("v1.4.0-rc.1+5c2.d")
    assert version.release == (1, 4, 0)
    assert version.prerelease == ("rc", "1")
    assert str(version) == "1.4.0-rc.1+5c2.d"


@pytest.mark.parametrize("text", ["1", "1.2", "01.2.3", "1.2.3-", "1.2.3.4", "a.b.c", ""])
def test_no_versions(text):
    with pytest.raises(VersionError):
        Version.parse(text)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("1.2.3", "1.2.4"),
        ("1.9.0", "1.10.0"),
        ("1.0.0-alpha", "1.0.0"),
        ("1.0.0-alpha", "1.0.0-alpha.1"),
        ("1.0.0-alpha.beta", "1.0.0-beta"),
        ("1.0.0-1", "1.0.0-alpha"),
    ],
)
def test_order(low, high):
    assert Version.parse(low) < Version.parse(high)
    assert Version.parse(high) > Version.parse(low)


def test_a_build_plays_no_part():
    assert Version.parse("1.0.0+1") == Version.parse("1.0.0+2")
    assert len({Version.parse("1.0.0+1"), Version.parse("1.0.0+2")}) == 1


def test_bump():
    version = Version.parse("1.2.3-rc.1")
    assert [str(version.bump(part)) for part in ("major", "minor", "patch")] == ["2.0.0", "1.3.0", "1.2.4"]
