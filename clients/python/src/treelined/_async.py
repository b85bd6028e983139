"""The client for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._methods import AsyncMethods
from ._params import OMITTED, Omitted
from ._runner import AsyncRunner
from ._session import about, only

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from ._command import AsyncCommand
    from ._methods import AsyncAnswerer
    from .errors import DisconnectedError


class AsyncClient(AsyncRunner, AsyncMethods):
    """A connection to a daemon that this client starts, for asyncio.

    `async with` starts and closes it, as `start` and `close` do.
    """

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    async def start(self) -> None:
        """Start the daemon and send `initialize`."""
        self._open()
        try:
            await self._wait(self._start())
        except BaseException:
            await self.close()
            raise

    async def close(self, timeout: float = 10.0) -> None:
        """Close the daemon's stdin, and wait until the daemon has ended.

        The daemon first answers all requests that it has accepted. After `timeout` seconds the
        daemon is killed.
        """
        await self._end(timeout)

    async def closed(self, timeout: float | None = None) -> DisconnectedError:
        """Wait until the daemon has ended; return the error with which open calls have failed."""
        return await self._wait(self._closed(timeout))

    async def call(
        self, method: str, params: dict[str, Any], *, timeout: float | None = None
    ) -> Any:  # noqa: ANN401
        """Call a method by its name, with the params of the protocol.

        If the call is cancelled or interrupted, or is not answered within the timeout, the daemon
        is asked to cancel it.
        """
        return await self._wait(self._call(method, params, timeout))

    def session(self, session_id: str) -> AsyncSession:
        """Return the methods of this client, about this session unless they name another."""
        return AsyncSession(self, session_id)

    async def offer_command(
        self,
        name: str,
        run: AsyncCommand,
        *,
        description: str | Omitted | None = OMITTED,
        argument_hint: str | Omitted | None = OMITTED,
        timeout: float | None = None,
    ) -> None:
        """Offer a command to other clients, until `unregister_command` or the end of this client.

        `run`: called for each run of the command, see `AsyncCommand`. It returns the output, or an
        object with `output` and `prompt`. If it raises an exception, the command fails with its
        text.

        `description`, `argument_hint`: texts for people about the command and its argument.
        """
        earlier = self._commands.get(name)
        # The command may be run before the response arrives.
        self._commands[name] = run
        try:
            await self.register_command(
                name=name, description=description, argument_hint=argument_hint, timeout=timeout
            )
        except BaseException:
            del self._commands[name]
            if earlier is not None:
                self._commands[name] = earlier
            raise


class AsyncSession(AsyncMethods):
    """The methods of a client, about one session unless they name another."""

    def __init__(self, client: AsyncMethods, session_id: str) -> None:
        self.client = client
        self.session_id = session_id

    async def call(
        self, method: str, params: dict[str, Any], *, timeout: float | None = None
    ) -> Any:  # noqa: ANN401
        """Call a method by its name; its params are those of the protocol."""
        params = about(self.session_id, method, params)
        return await self.client.call(method, params, timeout=timeout)

    def _on(self, name: str, handler: Callable[[Any], object]) -> Callable[[], None]:
        return self.client._on(name, only(self.session_id, handler))  # noqa: SLF001

    def _answer(self, name: str, answerer: AsyncAnswerer[Any]) -> None:
        self.client._answer(name, answerer)  # noqa: SLF001
