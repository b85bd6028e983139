//! The envelope of a request: the members of a frame, and the checks that do not depend on the method (protocol.md §1).

use std::borrow::Cow;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json::{self, Members};
use treelined_wire::{MAX_COUNT, RequestId};

/// A request with the members of its frame.
pub(super) struct Request<'a> {
    /// The id, decoded and as the client sent it; `None` for a notification.
    pub id: Option<(RequestId, &'a [u8])>,
    pub method: Cow<'a, str>,
    pub params: Option<&'a str>,
}

/// Reads the envelope. Checks in the same pass that every byte is JSON.
pub(super) fn parse(frame: &[u8]) -> Result<Request<'_>> {
    let not_json = || Error::new(Kind::ParseError, "not JSON");
    let invalid = |why: &'static str| Error::new(Kind::InvalidRequest, why);
    let text =
        simdutf8::basic::from_utf8(frame).map_err(|_| Error::new(Kind::ParseError, "not UTF-8"))?;
    let start = json::skip_space(frame, 0);
    if frame.get(start) != Some(&b'{') {
        json::value_span(frame).map_err(|_| not_json())?;
        return Err(match frame.get(start) {
            Some(b'[') => Error::new(Kind::BatchUnsupported, "batches are not supported"),
            _ => invalid("not a request object"),
        });
    }
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    let mut members = Members::open(frame, start).map_err(|_| not_json())?;
    while let Some(member) = members.next_member().map_err(|_| not_json())? {
        let slot = match &*member.name(frame) {
            b"jsonrpc" => &mut version,
            b"id" => &mut id,
            b"method" => &mut method,
            b"params" => &mut params,
            _ => continue,
        };
        *slot = Some(member.value);
    }
    if json::skip_space(frame, members.end()) < frame.len() {
        return Err(not_json());
    }
    let raw = |span: Option<json::Span>| span.and_then(|span| frame.get(span));
    let id = match raw(id) {
        None => None,
        Some(raw) => match request_id(raw) {
            Some(id) => Some((id, raw)),
            None => {
                return Err(invalid(
                    "an id is a string or an integer from 0 to 2^53 - 1",
                ));
            }
        },
    };
    if raw(version).and_then(json::string).as_deref() != Some("2.0") {
        return Err(invalid("not a request of JSON-RPC 2.0"));
    }
    let method = raw(method)
        .and_then(json::string)
        .ok_or_else(|| invalid("no method"))?;
    let params = params.and_then(|span| text.get(span));
    Ok(Request { id, method, params })
}

fn request_id(raw: &[u8]) -> Option<RequestId> {
    if let Some(text) = json::string(raw) {
        return Some(RequestId::Text(text.into_owned()));
    }
    let number: u64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    (number <= MAX_COUNT && raw.iter().all(u8::is_ascii_digit)).then_some(RequestId::Number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The envelope is read in one pass that stops at the first mistake. Text that is not JSON must be a parse error
    // even if the envelope has a mistake before.
    #[test]
    fn a_parse_error_is_reported_before_an_invalid_envelope() {
        for bad in [
            "",
            " ",
            "{",
            "[",
            "{}x",
            "{} {}",
            "{\"id\":-1}x",
            "{\"id\":[}",
            "[1}",
            "[]x",
            "1x",
            "nul",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":01}}",
            "{\"id\":1,}",
            "{\"a\":\"\u{1}\"}",
        ] {
            assert!(json::value_span(bad.as_bytes()).is_err(), "{bad}");
            assert_eq!(
                parse(bad.as_bytes()).err().map(|error| error.kind),
                Some(Kind::ParseError),
                "{bad}"
            );
        }
        for (wrong, kind) in [
            ("[]", Kind::BatchUnsupported),
            (" [1] ", Kind::BatchUnsupported),
            ("1", Kind::InvalidRequest),
            ("{}", Kind::InvalidRequest),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"m\"}",
                Kind::InvalidRequest,
            ),
        ] {
            assert_eq!(
                parse(wrong.as_bytes()).err().map(|error| error.kind),
                Some(kind),
                "{wrong}"
            );
        }
        let request = parse(b" {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{}} \r");
        let request = request.map_err(|error| error.message).unwrap();
        assert_eq!((&*request.method, request.params), ("m", Some("{}")));
    }
}
