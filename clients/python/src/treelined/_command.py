"""Functions that run the commands of a client."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from . import types

AsyncCommand: TypeAlias = Callable[
    [types.CommandInvoked], Awaitable["types.RunCommandResult | str | None"]
]
"""Runs a command and returns its output, also with a prompt; cancelled when the run is over.

An exception makes the command fail with its text.
"""

Command: TypeAlias = Callable[
    [types.CommandInvoked, threading.Event], "types.RunCommandResult | str | None"
]
"""Runs a command in its own thread; the event is set when the run is over."""
