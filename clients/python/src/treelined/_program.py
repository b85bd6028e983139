"""Finds the daemon's program."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "treelined"
"""The name of the program, if the caller does not name another one."""

VARIABLE = "TREELINED_BIN"
"""The environment variable that names the program."""


def find(command: str, env: Mapping[str, str] | None) -> tuple[str, list[str]]:
    """Return the program to start, and the places where it was searched for.

    If the caller or `TREELINED_BIN` names a program, this program is returned. Otherwise it is the
    program in this package or, if there is none, the one on the `PATH`.
    """
    env = os.environ if env is None else env
    if command != NAME:
        return command, [_place(command, env)]
    named = env.get(VARIABLE)
    if named:
        return named, [f"{_place(named, env)} ({VARIABLE})"]
    own = [Path(__file__).parent / "bin" / NAME, Path(sysconfig.get_path("scripts")) / NAME]
    for program in own:
        if os.access(program, os.X_OK) and program.is_file():
            return str(program), [str(program)]
    tried = [f"{VARIABLE} (not set)", *(f"{program} (of this package)" for program in own)]
    return NAME, [*tried, _place(NAME, env)]


def _place(command: str, env: Mapping[str, str]) -> str:
    """Describe where the system looks for the program."""
    return command if os.sep in command else f"{command} on the PATH ({env.get('PATH', '')})"
