"""Clients whose calls are about one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._methods import Answerer, AsyncAnswerer, AsyncMethods, Methods
from ._params import OMITTED

if TYPE_CHECKING:
    from collections.abc import Callable

OTHERS = {"create_session", "open_session", "restore_session"}
"""Methods whose `sessionId` names a session that is not open."""


def _about(session_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Name the session where a method takes one and the caller names none."""
    if method in OTHERS or params.get("sessionId") is not OMITTED:
        return params
    return {**params, "sessionId": session_id}


class AsyncSession(AsyncMethods):
    """The methods of a client, about one session unless they name another."""

    def __init__(self, client: AsyncMethods, session_id: str) -> None:
        self.client = client
        self.session_id = session_id

    async def call(
        self, method: str, params: dict[str, Any], *, timeout: float | None = None
    ) -> Any:  # noqa: ANN401
        """Call a method by its name; its params are those of the protocol."""
        return await self.client.call(
            method, _about(self.session_id, method, params), timeout=timeout
        )

    def _on(self, name: str, handler: Callable[[Any], object]) -> Callable[[], None]:
        return self.client._on(name, _only(self.session_id, handler))  # noqa: SLF001

    def _answer(self, name: str, answerer: AsyncAnswerer[Any]) -> None:
        self.client._answer(name, answerer)  # noqa: SLF001


class Session(Methods):
    """The methods of a client, about one session unless they name another."""

    def __init__(self, client: Methods, session_id: str) -> None:
        self.client = client
        self.session_id = session_id

    def call(self, method: str, params: dict[str, Any], *, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Call a method by its name; its params are those of the protocol."""
        return self.client.call(method, _about(self.session_id, method, params), timeout=timeout)

    def _on(self, name: str, handler: Callable[[Any], object]) -> Callable[[], None]:
        return self.client._on(name, _only(self.session_id, handler))  # noqa: SLF001

    def _answer(self, name: str, answerer: Answerer[Any]) -> None:
        self.client._answer(name, answerer)  # noqa: SLF001


def _only(session_id: str, handler: Callable[[Any], object]) -> Callable[[Any], object]:
    """Call the handler for notifications about the session, and for those about none."""

    def handle(params: Any) -> object:  # noqa: ANN401
        about = params.get("sessionId", session_id)
        return handler(params) if about == session_id else None

    return handle
