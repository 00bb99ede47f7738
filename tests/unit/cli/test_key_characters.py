"""A key that cannot be sent is refused before anything starts, and is not repeated."""

from __future__ import annotations

import pytest

from orchestrator.cli.cell_options import check_key
from orchestrator.errors import InputError


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-a\r", "sk-\u00fc", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="no HTTP header can carry") as caught:
        check_key(key, "CAB_KEY")
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "sk-1", 'a"b\\c $x'])
def test_any_other_is_taken(key: str) -> None:
    check_key(key, "CAB_KEY")
