"""The blocking client: an `AsyncClient` on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ._connection import AsyncClient
from ._methods import Answerer, Answers, BeforeEventName, Methods
from ._params import OMITTED, Omitted, named
from ._session import Session
from .errors import DisconnectedError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from ._command import AsyncCommand, Command
    from ._methods import NotificationName
    from .types import AskKind, ClientInfo, InitializeResult, OnFailure

T = TypeVar("T")

SETTLE = 1.0
"""How long calls of other threads may take to fail after the client is closed, in seconds."""


class Client(Methods):
    """A connection to a daemon that this client starts, without asyncio. Threads may share it.

    Use it as a context manager, or call `start` and `close`. Handlers run one after the other in
    one thread, answerers each in a thread of its own. Both may call the client.
    """

    def __init__(  # noqa: PLR0913
        self,
        command: str | None = "treelined",
        *,
        args: Iterable[str] = (),
        session_dir: str | os.PathLike[str] | None = None,
        summarizer: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        shared: bool = False,
        socket: str | os.PathLike[str] | None = None,
        client_info: ClientInfo | None = None,
        answers: Answers | Iterable[BeforeEventName] = (),
        on_failure: OnFailure = "cancel",
        ui: Iterable[AskKind] | None = None,
        summary_deltas: bool = False,
        progress: bool = False,
        search_hits: bool = False,
        opt_out: Iterable[NotificationName] = (),
        timeout: float | None = None,
        on_log: Callable[[str], object] | None = None,
    ) -> None:
        """Set what to start, as for `AsyncClient`; `start` starts it."""
        declared: list[Any] = list(answers)
        self._given: dict[str, Answerer[Any]] = named(answers)
        self._make = partial(
            AsyncClient,
            command,
            args=args,
            session_dir=session_dir,
            summarizer=summarizer,
            cwd=cwd,
            env=env,
            shared=shared,
            socket=socket,
            client_info=client_info,
            answers=declared,
            on_failure=on_failure,
            ui=ui,
            summary_deltas=summary_deltas,
            progress=progress,
            search_hits=search_hits,
            opt_out=opt_out,
            timeout=timeout,
            on_log=on_log,
        )
        self._client: AsyncClient | None = None
        self._loop = asyncio.new_event_loop()
        self._threads: list[threading.Thread] = []
        # A call scheduled after the loop has stopped would wait forever.
        self._scheduling = threading.Lock()
        self._is_closed = False
        self._events: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    @property
    def server(self) -> InitializeResult:
        """The daemon's answer to `initialize`."""
        return self._started().server

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        return self._started().pid

    def start(self) -> None:
        """Start the daemon and send `initialize`."""
        if self._threads:
            raise RuntimeError("the client is started already")
        for name, run in (("loop", self._loop.run_forever), ("events", self._handle)):
            thread = threading.Thread(target=run, name=f"treelined-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

        async def start() -> AsyncClient:
            client = self._make()
            for name, answerer in self._given.items():
                client._answer(name, self._awaited(answerer))  # noqa: SLF001
            await client.start()
            return client

        try:
            self._client = self._wait(start())
        except BaseException:
            self.close()
            raise

    def close(self, timeout: float = 10.0) -> None:
        """Close the daemon's stdin and wait until it has ended.

        It first answers what it has accepted.

        After `timeout` seconds it is killed.
        """
        if self._is_closed:
            return
        if self._client is not None:
            self._wait(self._client.close(timeout))
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

    def closed(self, timeout: float | None = None) -> DisconnectedError:
        """Wait until the daemon has ended; return the error of the calls that were open."""
        return self._wait(asyncio.wait_for(self._started().closed(), timeout))

    def call(self, method: str, params: dict[str, Any], *, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Call a method by its name, with the params of the protocol.

        If it is interrupted, or at the deadline, the daemon is asked to cancel the call.
        """
        return self._wait(self._started().call(method, params, timeout=timeout))

    def session(self, session_id: str) -> Session:
        """Return the methods of this client, about this session unless they name another."""
        return Session(self, session_id)

    def offer_command(
        self,
        name: str,
        run: Command,
        *,
        description: str | Omitted | None = OMITTED,
        argument_hint: str | Omitted | None = OMITTED,
        timeout: float | None = None,
    ) -> None:
        """Offer a command to other clients, until `unregister_command` or the end of this client.

        `run`: called with each run of the command, and an event that is set when that is over. What
        it returns is the output, or `output` and `prompt`; an exception makes the command fail with
        its text.

        `description`, `argument_hint`: what the command and its argument are, for people.
        """
        awaited: AsyncCommand = self._awaited(run)
        self._wait(
            self._started().offer_command(
                name,
                awaited,
                description=description,
                argument_hint=argument_hint,
                timeout=timeout,
            )
        )

    def _on(self, name: str, handler: Callable[[Any], object]) -> Callable[[], None]:
        def handle(params: object) -> None:
            self._events.put(partial(handler, params))

        return self._started()._on(name, handle)  # noqa: SLF001

    def _answer(self, name: str, answerer: Answerer[Any]) -> None:
        if self._client is None:
            self._given[name] = answerer
        else:
            self._client._answer(name, self._awaited(answerer))  # noqa: SLF001

    def _awaited(
        self, answerer: Callable[[Any, threading.Event], T]
    ) -> Callable[[Any], Coroutine[Any, Any, T]]:
        async def answer(params: object) -> T:
            over = threading.Event()
            try:
                return await self._in_thread(partial(answerer, params, over))
            finally:
                over.set()

        return answer

    async def _in_thread(self, answerer: Callable[[], T]) -> T:
        """Run in a daemon thread, so that neither other questions nor the program wait for it."""
        future: asyncio.Future[T] = self._loop.create_future()

        def settle(settle: Callable[[Any], None], value: object) -> None:
            if not future.done():
                settle(value)

        def run() -> None:
            told: tuple[Callable[[Any], None], object]
            try:
                told = future.set_result, answerer()
            except BaseException as error:  # noqa: BLE001
                # Futures accept no `StopIteration`, and `SystemExit` would end the loop, so that
                # every call would wait forever.
                fits = isinstance(error, Exception) and not isinstance(error, StopIteration)
                told = future.set_exception, error if fits else RuntimeError(repr(error))
            # After the end the loop is closed.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(settle, *told)

        threading.Thread(target=run, name="treelined-answer", daemon=True).start()
        return await future

    def _started(self) -> AsyncClient:
        if self._client is None:
            raise RuntimeError("the client is not started")
        return self._client

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with self._scheduling:
            if self._is_closed:
                coroutine.close()
                raise DisconnectedError("the client is closed")
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            # An interrupt; the coroutine must end.
            future.cancel()
            raise

    async def _settle(self) -> None:
        """Let waiting calls of other threads fail."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=SETTLE)

    def _handle(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                event()
            except (Exception, SystemExit) as error:  # noqa: BLE001
                context = {"message": "a handler failed", "exception": error}
                self._loop.call_soon_threadsafe(self._loop.call_exception_handler, context)
