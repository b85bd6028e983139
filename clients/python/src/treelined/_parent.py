"""The daemon that has started this program as one of its extensions."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any


class Parent:
    """The daemon that has started this program, with the interface of a child process."""

    returncode = None
    stderr = None

    def __init__(self, stdin: asyncio.StreamWriter, stdout: _Output) -> None:
        """Take the pipes: `stdin` is the daemon's input, `stdout` its output."""
        self.pid = os.getppid()
        self.stdin = stdin
        self.stdout = stdout

    async def wait(self) -> None:
        """Wait until the daemon has ended the connection."""
        await self.stdout.closed.wait()

    def terminate(self) -> None:
        """End the connection."""
        self.stdin.close()
        self.stdout.transport.close()

    kill = terminate


class _Output(asyncio.StreamReader):
    """The daemon's output, and whether it is closed."""

    transport: asyncio.ReadTransport

    def __init__(self) -> None:
        super().__init__()
        self.closed: asyncio.Event = asyncio.Event()


class _Reading(asyncio.StreamReaderProtocol):
    def __init__(self, output: _Output) -> None:
        super().__init__(output)
        self._output = output

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._output.closed.set()


async def connect_parent() -> Parent:
    """Connect to the daemon over stdin and stdout. From then on `print` writes to stderr."""
    stdin, stdout = os.dup(0), os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    output = _Output()
    reading, _ = await loop.connect_read_pipe(
        lambda: _Reading(output), os.fdopen(stdin, "rb", buffering=0)
    )
    output.transport = reading
    flow: Any
    writing, flow = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(stdout, "wb", buffering=0)
    )
    return Parent(asyncio.StreamWriter(writing, flow, None, loop), output)
