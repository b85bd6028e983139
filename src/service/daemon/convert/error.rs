//! Errors (protocol.md §8).

use jsonrpsee::types::ErrorObjectOwned;
use treelined_core::error::Error;
use treelined_wire as wire;

/// `data = {kind, retryable, retryAfterMs?, details?}` (protocol.md §8).
pub(crate) fn to_jsonrpc(error: &Error) -> ErrorObjectOwned {
    let wire::ErrorObject {
        code,
        message,
        data,
    } = to_wire(error);
    ErrorObjectOwned::owned(code, message, Some(data))
}

/// Like [`to_jsonrpc`], for notifications.
pub(crate) fn to_wire(error: &Error) -> wire::ErrorObject {
    wire::ErrorObject {
        code: error.kind.code(),
        message: error.message.to_string(),
        data: wire::ErrorData {
            kind: error.kind.name().to_owned(),
            retryable: error.kind.retryable(),
            retry_after_ms: error.retry_after_ms,
            details: error
                .details
                .as_ref()
                .and_then(|details| details.as_object().cloned()),
        },
    }
}
