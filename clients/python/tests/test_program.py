"""Where the daemon's program is looked for."""

import sysconfig
from pathlib import Path

import pytest
from treelined import Client, DisconnectedError
from treelined._program import find_program


def test_the_program_installed_with_the_package_goes_before_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    own = tmp_path / "treelined"
    command, tried = find_program({})
    assert command == "treelined"
    assert str(own) in tried
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert find_program({})[0] == str(own)
    assert find_program({"TREELINED_BIN": "/mine"}) == ("/mine", ["TREELINED_BIN"])


def test_the_error_for_a_missing_daemon_says_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(DisconnectedError, match=r"tried before: TREELINED_BIN, which is not set"):
        Client(env={"PATH": "/no/bin"}).start()
    with pytest.raises(DisconnectedError, match=r"/nowhere/treelined.*named by TREELINED_BIN"):
        Client(env={"TREELINED_BIN": "/nowhere/treelined"}).start()
