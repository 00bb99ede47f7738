from semrange import max_satisfying, min_satisfying, sort_versions

VERSIONS = ["1.10.0", "1.2.0", "2.0.0", "1.9.1"]


def test_sort():
    assert sort_versions(VERSIONS) == ["1.2.0", "1.9.1", "1.10.0", "2.0.0"]


def test_newest_and_oldest():
    assert max_satisfying(VERSIONS, "1.x") == "1.10.0"
    assert min_satisfying(VERSIONS, ">1.2.0") == "1.9.1"


def test_none_is_in_the_range():
    assert max_satisfying(VERSIONS, ">=3") is None
