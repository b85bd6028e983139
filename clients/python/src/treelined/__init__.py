"""Client for treelined, the daemon that keeps conversations of AI agents as trees.

`Client` blocks, and the methods of `AsyncClient` are awaited. Both have a function for each method
of the protocol.
"""

from . import types
from ._async import AsyncClient, AsyncSession
from ._blocking import Client, Session
from ._command import AsyncCommand, Command
from ._methods import (
    PROTOCOL_VERSION,
    SCHEMA_HASH,
    Answerer,
    Answers,
    AsyncAnswerer,
    AsyncAnswers,
    BeforeEventName,
    NotificationName,
)
from ._params import OMITTED, Omitted
from .errors import DeadlineError, DisconnectedError, TreelinedError, VersionMismatchError

__all__ = [
    "OMITTED",
    "PROTOCOL_VERSION",
    "SCHEMA_HASH",
    "Answerer",
    "Answers",
    "AsyncAnswerer",
    "AsyncAnswers",
    "AsyncClient",
    "AsyncCommand",
    "AsyncSession",
    "BeforeEventName",
    "Client",
    "Command",
    "DeadlineError",
    "DisconnectedError",
    "NotificationName",
    "Omitted",
    "Session",
    "TreelinedError",
    "VersionMismatchError",
    "types",
]
