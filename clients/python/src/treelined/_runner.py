"""Runs a connection in the caller's event loop, or in an event loop in a separate thread."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ._connection import Connection
from ._methods import Answers, AsyncAnswers
from .errors import DisconnectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

SETTLE = 1.0
"""How long calls in other threads may take to fail after the client is closed, in seconds."""


class AsyncRunner(Connection[AsyncAnswers]):
    """Runs a connection in the caller's event loop."""

    def _open(self) -> None:
        if self._process is not None:
            raise RuntimeError("the client is already started")

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return coroutine

    async def _end(self, timeout: float) -> None:
        await self._close(timeout)


class Runner(Connection[Answers]):
    """Runs a connection in an event loop in a separate thread.

    Another thread runs the handlers one after the other. Each answerer runs in a separate thread.
    """

    def _prepare(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._threads: list[threading.Thread] = []
        # A call scheduled after the loop has stopped would wait forever.
        self._scheduling = threading.Lock()
        self._is_closed = False
        self._events: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()

    def _open(self) -> None:
        if self._threads:
            raise RuntimeError("the client is already started")
        for name, run in (("loop", self._loop.run_forever), ("events", self._handle_events)):
            thread = threading.Thread(target=run, name=f"treelined-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with self._scheduling:
            if self._is_closed or not self._threads:
                coroutine.close()
                if self._is_closed:
                    raise DisconnectedError("the client is closed")
                raise RuntimeError("the client is not started: call start, or use it in `with`")
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            # An interrupt; the coroutine must end.
            future.cancel()
            raise

    def _end(self, timeout: float) -> None:
        if self._is_closed:
            return
        if self._threads:
            self._wait(self._close(timeout))
        with self._scheduling:
            self._is_closed = True
        self._events.put(None)
        if self._threads:
            asyncio.run_coroutine_threadsafe(self._settle(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._loop.close()

    async def _settle(self) -> None:
        """Make waiting calls in other threads fail."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=SETTLE)

    def _on(self, name: str, handler: Callable[[Any], object]) -> Callable[[], None]:
        return super()._on(name, lambda params: self._events.put(partial(handler, params)))

    def _handle_events(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                event()
            except (Exception, SystemExit) as error:  # noqa: BLE001
                context = {"message": "a handler failed", "exception": error}
                self._loop.call_soon_threadsafe(self._loop.call_exception_handler, context)

    async def _ask(self, answerer: Callable[..., T], params: dict[str, Any]) -> T:
        """Run a function in a daemon thread, so that neither questions nor the program wait."""
        future: asyncio.Future[T] = self._loop.create_future()
        over = threading.Event()

        def settle(settle: Callable[[Any], None], value: object) -> None:
            if not future.done():
                settle(value)

        def run() -> None:
            told: tuple[Callable[[Any], None], object]
            try:
                told = future.set_result, answerer(params, over)
            except BaseException as error:  # noqa: BLE001
                # Futures accept no `StopIteration`, and `SystemExit` would end the loop, so that
                # every call would wait forever.
                fits = isinstance(error, Exception) and not isinstance(error, StopIteration)
                told = future.set_exception, error if fits else RuntimeError(repr(error))
            # After the end the loop is closed.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(settle, *told)

        threading.Thread(target=run, name="treelined-answer", daemon=True).start()
        try:
            return await future
        finally:
            over.set()
