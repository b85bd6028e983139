"""Adds the session to the calls of one session, and filters its notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._params import OMITTED

if TYPE_CHECKING:
    from collections.abc import Callable

OTHERS = {"create_session", "open_session", "restore_session"}
"""Methods whose `sessionId` is not the id of an open session."""


def about(session_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Add the session to the params, if the method takes one and the caller has given none."""
    if method in OTHERS or params.get("sessionId") is not OMITTED:
        return params
    return {**params, "sessionId": session_id}


def only(session_id: str, handler: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a handler that skips notifications about other sessions."""

    def handle(params: Any) -> object:  # noqa: ANN401
        about = params.get("sessionId", session_id)
        return handler(params) if about == session_id else None

    return handle
