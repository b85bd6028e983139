"""A connection to one daemon: its process, calls, notifications, questions and answers."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import re
from asyncio.subprocess import PIPE
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ._methods import PROTOCOL_VERSION
from ._params import given, named
from ._parent import Parent, connect_parent
from ._program import find
from .errors import DeadlineError, DisconnectedError, TreelinedError, VersionMismatchError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from ._methods import BeforeEventName, NotificationName
    from .types import AskKind, ClientInfo, InitializeResult, OnFailure

TIMEOUT = 30.0
"""Default deadline of calls, in seconds."""

WAITING_TIMEOUT = 660.0
"""Default deadline of calls that wait for people and models, in seconds.

A question is open for at most 10 minutes.
"""

ASK_KINDS: list[AskKind] = ["select", "confirm", "input", "editor"]
"""The kinds of questions to a person."""

WAITING = {
    "archive_branch",
    "ask_user",
    "choose",
    "compact",
    "continue_session",
    "fork_session",
    "merge_branch",
    "navigate_tree",
    "pop",
    "run_command",
}

CHUNK = 1 << 20
"""The most bytes of one read."""

LAST_WORDS = 4096
"""The most bytes that an error quotes from the end of the daemon's stderr output."""

DRAIN = 1.0
"""How long to wait for the rest of the output after the process has ended, in seconds."""

TERMINATE = 6.0
"""How long the daemon may take to end after SIGTERM, in seconds.

The daemon itself waits 5 s for running summaries.
"""

MOST_REASON = 500
"""The most characters in the reason of a cancel."""

_OVER = frozenset({"eventNotPending", "disconnected"})
"""The kinds of errors of an answer that arrives after the question is over."""


Answerers = TypeVar("Answerers", bound="Mapping[str, object]")


class Connection(Generic[Answerers]):
    """The part that both clients share. Its coroutines run in one event loop."""

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
        answers: Answerers | Iterable[BeforeEventName] = (),
        on_failure: OnFailure = "cancel",
        ui: Iterable[AskKind] | None = None,
        summary_deltas: bool = False,
        progress: bool = False,
        search_hits: bool = False,
        opt_out: Iterable[NotificationName] = (),
        timeout: float | None = None,
        on_log: Callable[[str], object] | None = None,
    ) -> None:
        """Set the options of the daemon and of the connection; `start` starts the daemon.

        `command`, `args`, `session_dir`, `summarizer`, `cwd`, `env`: the program of the daemon, and
        how it is started. By default the client tries `TREELINED_BIN`, then the program in this
        package, then `treelined` on the PATH. An extension passes None: it connects to the daemon
        that has started it, over its stdin and stdout.

        `shared`: use the daemon that all clients of the session directory share, and start it if
        it does not run. `socket`: use the shared daemon at this socket instead.

        `client_info`: the name and version of this program.

        `answers`: the answerers by the names of their questions; the daemon waits for their
        answers. It may be a list of names only; then `answer` must set each answerer later.

        `on_failure`: the fate of an operation that waits for an answer, if the answerer raises an
        exception, its answer is refused, or this program dies. "cancel" cancels the operation, with
        the first line of the error as the reason; "proceed" lets it go on.

        `ui`: the kinds of questions that this client can show to a person. A client with a person
        also gets `user_notified`. Default: all kinds if `answers` has `user_asked`, otherwise none.

        `summary_deltas`, `progress`, `search_hits`: whether the daemon sends these notifications.

        `opt_out`: notifications that the daemon must not send. Notifications that answerers need
        are sent anyway.

        `timeout`: the deadline in seconds of calls without their own timeout. Default: 30, and 11
        minutes for calls that wait for people and models. `math.inf`: no deadline.

        `on_log`: called with the text of the daemon's log.
        """
        self._is_extension = command is None
        program, self._tried = find(command or "", env)
        self._argv = [program]
        if session_dir is not None:
            self._argv += ["--session-dir", os.fspath(session_dir)]
        if summarizer is not None:
            self._argv += ["--summarizer", summarizer]
        self._argv += args
        if shared or socket is not None:
            self._argv += ["connect", "--start"]
        if socket is not None:
            self._argv += ["--socket", os.fspath(socket)]
        self._cwd = cwd
        self._env = env
        self._answers: list[str] = list(answers)
        self._answerers: dict[str, Callable[..., Any]] = named(answers)
        self._on_failure = on_failure
        self._ui = None if ui is None else list(ui)
        if self._ui and "user_asked" not in self._answers:
            self._answers.append("user_asked")
        self._commands: dict[str, Callable[..., Any]] = {}
        self._client_info = client_info
        self._opt_out = list(opt_out)
        self._capabilities: dict[str, Any] = {
            **({"summaryDeltas": {}} if summary_deltas else {}),
            **({"progress": {}} if progress else {}),
            **({"searchHits": {}} if search_hits else {}),
        }
        self._timeout = timeout
        self._on_log = on_log
        self._process: Process | Parent | None = None
        self._pending: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._handlers: dict[str, list[Callable[[Any], object]]] = {}
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last_id = 0
        self._over: DisconnectedError | None = None
        self._ended: asyncio.Event = asyncio.Event()
        self._stderr = b""
        self._server: InitializeResult | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Set the attributes that only one of the clients has."""

    @property
    def server(self) -> InitializeResult:
        """The daemon's answer to `initialize`."""
        if self._server is None:
            raise RuntimeError("the client is not started: call start, or use it in `with`")
        return self._server

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        if self._process is None:
            raise RuntimeError("the client is not started: call start, or use it in `with`")
        return self._process.pid

    async def _start(self) -> None:
        try:
            self._process = await self._connect()
        except OSError as error:
            raise DisconnectedError(self._why_not_started(error)) from error
        self._spawn(self._run(self._process))
        server: InitializeResult = await self._call("initialize", self._introduction())
        if server["protocolVersion"] != PROTOCOL_VERSION:
            raise VersionMismatchError(PROTOCOL_VERSION, server["protocolVersion"])
        self._server = server

    async def _connect(self) -> Process | Parent:
        if self._is_extension:
            return await connect_parent()
        return await asyncio.create_subprocess_exec(
            *self._argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=self._cwd, env=self._env
        )

    async def _close(self, timeout: float) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        if self._over is None:
            self._over = DisconnectedError("the client is closed")
        process.stdin.close()
        if isinstance(process, Parent):
            process.terminate()
        for end, patience in ((None, timeout), (process.terminate, TERMINATE)):
            with contextlib.suppress(ProcessLookupError):
                if end is not None:
                    end()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), patience)
                break
        else:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await self._ended.wait()
        # Handlers and answerers may still run, and one of them may be the caller.
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _closed(self, timeout: float | None) -> DisconnectedError:
        await asyncio.wait_for(self._ended.wait(), timeout)
        return self._over or DisconnectedError("the client is closed")

    async def _call(self, method: str, params: dict[str, Any], timeout: float | None = None) -> Any:  # noqa: ANN401
        if self._over is not None:
            raise self._over
        if timeout is None:
            timeout = self._timeout
        if timeout is None:
            timeout = WAITING_TIMEOUT if method in WAITING else TIMEOUT
        self._last_id += 1
        own = self._last_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[own] = (method, future)
        try:
            self._send({"id": own, "method": method, "params": given(params)})
            return await asyncio.wait_for(asyncio.shield(future), timeout)
        except asyncio.TimeoutError:
            if future.done():
                return future.result()
            self._cancel(own)
            raise DeadlineError(method, timeout) from None
        except asyncio.CancelledError:
            self._cancel(own)
            raise
        finally:
            del self._pending[own]
            future.cancel()

    def _on(self, name: str, handler: Callable[[Any], object]) -> Callable[[], None]:
        handlers = self._handlers.setdefault(name, [])
        handlers.append(handler)

        def end() -> None:
            if handler in handlers:
                handlers.remove(handler)

        return end

    def _answer(self, name: str, answerer: Callable[..., Any]) -> None:
        if name not in self._answers and name != "command_invoked":
            if self._process is not None:
                raise ValueError(
                    f"the daemon does not wait for answers to {name}, since this client did not "
                    f"name it: use {type(self).__name__}(answers={{{name!r}: answerer}}), or call "
                    "answer before start"
                )
            self._answers.append(name)
        self._answerers[name] = answerer

    def _introduction(self) -> dict[str, Any]:
        # Without these notifications the answerer would never be called, and the daemon would wait
        # for it.
        needed = {*self._answers, *(["event_resolved"] if self._answers else [])}
        events = [name for name in self._answers if "_before_" in name]
        asks = ASK_KINDS if "user_asked" in self._answers else None
        ui = asks if self._ui is None else self._ui
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "clientInfo": self._client_info,
            "processId": os.getpid(),
            # The working directory of a shared daemon may be another one.
            "cwd": os.path.realpath(self._cwd or "."),
            "capabilities": {
                "answers": {name: {"onFailure": self._on_failure} for name in events},
                **({} if ui is None else {"ui": ui}),
                "optOut": [name for name in self._opt_out if name not in needed],
                **self._capabilities,
            },
        }

    def _why_not_started(self, error: OSError) -> str:
        """Say where a missing program was searched for, and how to install it."""
        command = self._argv[0]
        why = f"cannot start {command}: {error}"
        if not isinstance(error, FileNotFoundError):
            return why
        if self._cwd is not None and not Path(self._cwd).exists():
            return f"{why}: there is no folder {os.fspath(self._cwd)} to start it in"
        return (
            f"{why}: there is no such program; tried: {', '.join(self._tried)}. Install it with "
            "`cargo install --path .` in treelined's repository, or give its path in "
            "TREELINED_BIN, or as Client('/path/to/treelined')"
        )

    def _cancel(self, request: int) -> None:
        if self._over is None:
            self._send({"method": "$/cancel_request", "params": {"requestId": request}})

    def _send(self, message: dict[str, Any]) -> None:
        """Queue a message. The id comes first: the daemon finds it even in a too large message."""
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("the client is not started: call start, or use it in `with`")
        line = _encode({"jsonrpc": "2.0", **message}) + b"\n"
        # If a write fails, the daemon has ended, which is noticed elsewhere.
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._process.stdin.write(line)

    def _spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, process: Process | Parent) -> None:
        """Read until the daemon has ended. Then every open call fails."""
        reading = self._spawn(self._read(process))
        log = self._spawn(self._read_log(process))
        code = asyncio.ensure_future(process.wait())
        await asyncio.wait([code, reading], return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and reading.exception() is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await code
        # A child of the daemon may keep the output open, so the rest of it has a time limit.
        await asyncio.wait([reading, log], timeout=DRAIN)
        failure = reading.exception() if reading.done() else None
        reading.cancel()
        log.cancel()
        self._disconnect(str(failure or "the daemon has ended"), process.returncode)

    async def _read(self, process: Process | Parent) -> None:
        """Split the output at line feeds only. Reads each byte once."""
        parts: list[bytes] = []
        while process.stdout is not None and (chunk := await process.stdout.read(CHUNK)):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                self._receive(b"".join([*parts, line]))
                parts.clear()
            if rest:
                parts.append(rest)

    async def _read_log(self, process: Process | Parent) -> None:
        while process.stderr is not None and (chunk := await process.stderr.read(CHUNK)):
            self._stderr = (self._stderr + chunk)[-LAST_WORDS:]
            if self._on_log is not None:
                try:
                    self._on_log(chunk.decode(errors="replace"))
                except Exception as error:  # noqa: BLE001
                    # The log must still be read, since the daemon blocks when its pipe is full.
                    self._report("the function on_log failed", error)

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            is_message = isinstance(message, dict) and "jsonrpc" in message
        except (ValueError, RecursionError) as error:
            if line.startswith(b'{"jsonrpc":"2.0",'):
                self._unreadable(line, error)
                return
            is_message = False
        if not is_message:
            said = line[:200].decode(errors="replace")
            raise DisconnectedError(f"the program is not a treelined daemon: it wrote {said!r}")
        if "method" in message:
            self._notified(message["method"], message.get("params", {}))
            return
        # A response to a call that has timed out is ignored.
        method, future = self._pending.get(message["id"], ("", None))
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(TreelinedError.answered(method, message["error"]))
            # If no code reads the result of the future, asyncio would report the exception.
            future.exception()
        else:
            future.set_result(message["result"])

    def _unreadable(self, line: bytes, error: Exception) -> None:
        """Fail a call whose answer is nested deeper or has longer numbers than Python accepts."""
        answered = re.match(rb'{"jsonrpc":"2\.0","id":(\d+),', line)
        if answered is None:
            self._report("Python cannot decode a message of the daemon", error)
            return
        method, future = self._pending.get(int(answered[1]), ("", None))
        if future is not None and not future.done():
            message = f"{method}: Python cannot decode the answer: {error}"
            future.set_exception(TreelinedError(message, "unreadable"))
            future.exception()

    def _notified(self, name: str, params: dict[str, Any]) -> None:
        event_id = params.get("eventId")
        if name == "event_resolved" and event_id in self._questions:
            self._questions.pop(event_id).cancel()
        for handler in list(self._handlers.get(name, ())):
            try:
                handled = handler(params)
                if inspect.iscoroutine(handled):
                    self._spawn(self._handle(name, handled))
            except Exception as error:  # noqa: BLE001
                self._report(f"a handler of {name} failed", error)
        # Without `timeoutMs` the daemon does not wait for an answer.
        if event_id is not None and params.get("timeoutMs"):
            question = self._spawn(self._asked(name, event_id, params))
            self._questions[event_id] = question
            question.add_done_callback(lambda _: self._questions.pop(event_id, None))

    async def _handle(self, name: str, handled: Coroutine[Any, Any, Any]) -> None:
        try:
            await handled
        except Exception as error:  # noqa: BLE001
            self._report(f"a handler of {name} failed", error)

    async def _asked(self, name: str, event_id: str, params: dict[str, Any]) -> None:
        answer = await self._opinion(name, params)
        # From here on, the end of the question does not cancel this task.
        self._questions.pop(event_id, None)
        try:
            await self._call("answer_event", {"eventId": event_id, **answer})
        except Exception as error:  # noqa: BLE001
            # Another client has answered first, the time is up, or the operation has ended.
            if isinstance(error, TreelinedError) and error.kind in _OVER:
                return
            self._report(f"the answer to {name} was refused", error)
            # The daemon refused the answer. It gets another one, so that it does not wait in vain.
            # A cancel stays a cancel.
            instead = self._failed(name, f"its answer was refused: {error}")
            given = answer.get("result")
            if isinstance(given, dict) and given.get("cancel"):
                instead = {"result": {"cancel": True}}
            with contextlib.suppress(TreelinedError):
                await self._call("answer_event", {"eventId": event_id, **instead})

    async def _opinion(self, name: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question, as params of `answer_event`."""
        answerer = self._answerers.get(name)
        if name == "command_invoked":
            answerer = self._commands.get(params["name"], answerer)
        if answerer is None:
            return _no_opinion(name, "this client has no function for this command")
        try:
            result = await self._ask(answerer, params)
        except (Exception, asyncio.CancelledError) as error:
            # If the question is over, the answerer was cancelled, and no answer is needed.
            is_over = self._over is not None or params["eventId"] not in self._questions
            if is_over and isinstance(error, asyncio.CancelledError):
                raise
            # Answer in place of the answerer that failed, so that the daemon does not wait for it.
            self._report(f"the answerer of {name} failed", error)
            return self._failed(name, str(error) or repr(error))
        if isinstance(result, str):
            return {"result": {"output": result}}
        if name == "user_asked" and not result:
            return _no_opinion(name, "")
        if isinstance(result, dict) and isinstance(result.get("reason"), str):
            result = {**result, "reason": result["reason"][:MOST_REASON]}
        return {"result": result or {}}

    async def _ask(self, answerer: Callable[..., Any], params: dict[str, Any]) -> Any:  # noqa: ANN401
        return await answerer(params)

    def _failed(self, name: str, why: str) -> dict[str, Any]:
        """Return the answer for an answerer that has failed: a cancel, unless told to proceed."""
        if "_before_" not in name or self._on_failure == "proceed":
            return _no_opinion(name, why)
        first = next(iter(why.strip().splitlines()), "")
        return {"result": {"cancel": True, "reason": first[:MOST_REASON]}}

    def _report(self, message: str, error: BaseException) -> None:
        context = {"message": message, "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)

    def _disconnect(self, why: str, code: int | None) -> None:
        stderr = self._stderr.decode(errors="replace")
        if code is not None and code < 0:
            why += f" by signal {-code}"
        elif code:
            why += f" with exit code {code}"
        if stderr.strip():
            why += f": {stderr.strip()}"
        self._over = DisconnectedError(why, {"exitCode": code, "stderr": stderr})
        for _, future in self._pending.values():
            if not future.done():
                future.set_exception(self._over)
                future.exception()
        for question in list(self._questions.values()):
            question.cancel()
        self._ended.set()


def _no_opinion(name: str, why: str) -> dict[str, Any]:
    """Return the answer that means no opinion. A command needs a result, so it fails."""
    if name == "command_invoked":
        return {"error": why}
    return {"result": {"dismissed": True} if name == "user_asked" else {}}


def _encode(message: dict[str, Any]) -> bytes:
    """Encode without escapes: the daemon stores the bytes that it receives."""
    encode = partial(json.dumps, message, separators=(",", ":"), allow_nan=False)
    try:
        return encode(ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # An unpaired surrogate can only be encoded as an escape.
        return encode().encode()
