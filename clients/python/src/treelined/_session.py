"""What the calls and handlers of one session are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._params import OMITTED

if TYPE_CHECKING:
    from collections.abc import Callable

OTHERS = {"create_session", "open_session", "restore_session"}
"""Methods whose `sessionId` names a session that is not open."""


def about(session_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Name the session where a method takes one and the caller names none."""
    if method in OTHERS or params.get("sessionId") is not OMITTED:
        return params
    return {**params, "sessionId": session_id}


def only(session_id: str, handler: Callable[[Any], object]) -> Callable[[Any], object]:
    """Call the handler for notifications about the session, and for those about none."""

    def handle(params: Any) -> object:  # noqa: ANN401
        about = params.get("sessionId", session_id)
        return handler(params) if about == session_id else None

    return handle
