"""Tests of the session ids for keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from treelined.stores import session_id

IDS = Path(__file__).parents[3] / "tests" / "data" / "stores" / "ids.json"


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


def test_ids_are_those_of_every_other_client() -> None:
    ids = json.loads(IDS.read_text())
    assert {key: session_id(key) for key in ids} == ids
    assert len(ids) > 10
