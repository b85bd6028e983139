"""The errors of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .types import ErrorObject


class TreelinedError(Exception):
    """The error of a call. Programs should test `kind`; the code and texts are for people."""

    def __init__(  # noqa: PLR0913
        self,
        message: str,
        kind: str,
        details: dict[str, Any] | None = None,
        *,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        """One of `types.ErrorKind`, or `disconnected`, `timeout`, `versionMismatch`, `unreadable`.

        `unreadable` means that Python cannot decode the answer, since the answer is nested too
        deeply or has a number with thousands of digits.
        """
        self.details: dict[str, Any] = details or {}
        """Members that depend on the kind; see the types whose names end in `Details`."""
        self.retryable = retryable
        """Whether the same call may succeed later, unchanged."""
        self.retry_after_ms = retry_after_ms
        """Milliseconds after which a retry makes sense."""
        self.code = code
        """The code of JSON-RPC, if the daemon answered."""

    @classmethod
    def answered(cls, method: str, error: ErrorObject) -> TreelinedError:
        """Make an error from the `error` of a response."""
        data = error["data"]
        return cls(
            f"{method}: {error['message']}",
            data["kind"],
            data.get("details"),
            retryable=data["retryable"],
            retry_after_ms=data.get("retryAfterMs"),
            code=error["code"],
        )


class DisconnectedError(TreelinedError, ConnectionError):
    """The daemon cannot be started, has ended, or is being closed.

    `details` has `exitCode` (negative: the number of the signal) and `stderr`, the end of the
    daemon's output there.
    """

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message, "disconnected", details)


class DeadlineError(TreelinedError, TimeoutError):
    """The call was not answered in time. `details` has `timeout`, in seconds."""

    def __init__(self, method: str, timeout: float) -> None:
        message = f"{method}: no answer within {timeout} s"
        super().__init__(message, "timeout", {"timeout": timeout}, retryable=True)


class VersionMismatchError(TreelinedError):
    """The daemon speaks another version of the protocol.

    `details` has the versions `expected` and `spoken`.
    """

    def __init__(self, expected: int, spoken: object) -> None:
        super().__init__(
            f"the daemon speaks protocol version {spoken}, this client speaks {expected}: "
            "update the older of them",
            "versionMismatch",
            {"expected": expected, "spoken": spoken},
        )
