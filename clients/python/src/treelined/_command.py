"""Functions that run the commands of a client."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from . import types

AsyncCommand: TypeAlias = Callable[
    [types.CommandInvoked], Awaitable["types.RunCommandResult | str | None"]
]
"""Runs a command and returns its output, or its output and a prompt.

It is cancelled when the run is over. If it raises an exception, the command fails with its text.
"""

Command: TypeAlias = Callable[
    [types.CommandInvoked, threading.Event], "types.RunCommandResult | str | None"
]
"""Runs a command in a separate thread. The event is set when the run is over."""
