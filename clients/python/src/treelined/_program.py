"""Finds the daemon's program."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def find_program(env: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the program to start, and the places that were tried before it.

    It is the one that `TREELINED_BIN` names, the one that was installed with this package, else the
    name alone, which is looked up on the `PATH`.
    """
    named = env.get("TREELINED_BIN")
    if named:
        return named, ["TREELINED_BIN"]
    tried = ["TREELINED_BIN, which is not set"]
    for path in _installed():
        if path.is_file() and os.access(path, os.X_OK):
            return str(path), tried
        tried.append(str(path))
    return "treelined", tried


def _installed() -> Iterator[Path]:
    """Yield the places of the program that a wheel with a program installs."""
    name = "treelined.exe" if sys.platform == "win32" else "treelined"
    try:
        files = metadata.files("treelined") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name and file.parent.name in {"bin", "Scripts"}:
            yield Path(str(file.locate())).resolve()
    yield Path(sysconfig.get_path("scripts")) / name
