"""Ids of sessions by keys."""

from __future__ import annotations

import pytest

from treelined.stores import session_id


@pytest.mark.parametrize("key", ["a", "trip-1", "0198c1f0-5e00-7000-8000-000000000002", "x" * 128])
def test_a_key_that_is_a_valid_id_is_the_id(key: str) -> None:
    assert session_id(key) == key


@pytest.mark.parametrize("key", ["", "a b", "a/b", "-a", "a.", "x" * 129, "k-1", "é", "\ud800"])
def test_other_keys_are_hashed_to_different_valid_ids(key: str) -> None:
    made = session_id(key)
    assert made.startswith("k-")
    assert len(made) == 42
    assert made != session_id(f"{key} ")
    assert session_id(made) != made
