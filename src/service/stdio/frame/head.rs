//! The first bytes of a message that is too large to be kept, and the id of the request in them.

use memchr::{memchr, memchr2};

/// The bytes that are kept of a frame over the limit, to find its id (protocol.md §1).
pub(super) const HEAD: usize = 4 * 1024;
/// The largest integer that may be an id (protocol.md §1): 2^53 − 1.
const MAX_INTEGER_ID: u64 = (1 << 53) - 1;

/// Appends as many of the bytes as fit.
pub(super) fn keep_head(head: &mut Vec<u8>, bytes: &[u8]) {
    let room = HEAD.saturating_sub(head.len());
    head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

/// The id of a request, read from the first bytes of its frame, as raw JSON (protocol.md §1). This is the member `id`
/// of the outermost object. It must be complete in `head`, and a string or an integer from 0 to 2^53 − 1. Otherwise
/// `None`, and the answer has a null id.
#[must_use]
pub fn id_in_head(head: &[u8]) -> Option<&[u8]> {
    let mut walk = Walk { rest: head };
    walk.eat(b'{')?;
    loop {
        let key = walk.string()?;
        walk.eat(b':')?;
        if is_id_key(key) {
            return walk.id();
        }
        walk.pass_value()?;
        walk.eat(b',')?;
    }
}

/// The text is compared after decoding, since a key may have escapes.
fn is_id_key(key: &[u8]) -> bool {
    key == b"\"id\""
        || memchr(b'\\', key).is_some()
            && serde_json::from_slice::<String>(key).is_ok_and(|key| key == "id")
}

/// Walks over incomplete JSON. Every step gives `None` if the bytes end in it.
struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// The first byte of the next token.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then_some(())?;
        self.take(1).map(drop)
    }

    /// A string with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        (self.peek()? == b'"').then_some(())?;
        let mut length = 1;
        loop {
            length += memchr2(b'"', b'\\', self.rest.get(length..)?)?;
            match self.rest.get(length)? {
                b'"' => return self.take(length + 1),
                _ => length += 2,
            }
        }
    }

    /// A number or literal; `None` if it reaches the end of the bytes, since it may continue there.
    fn scalar(&mut self) -> Option<&'a [u8]> {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
        let length = self.rest.iter().position(ends)?;
        self.take(length)
    }

    fn pass_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.take(1)?;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.take(1)?;
                }
                b',' | b':' if depth > 0 => drop(self.take(1)?),
                _ => {
                    // An empty scalar means a delimiter at a wrong position. The walk would make no progress and never
                    // end.
                    (!self.scalar()?.is_empty()).then_some(())?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn id(&mut self) -> Option<&'a [u8]> {
        if self.peek()? == b'"' {
            let raw = self.string()?;
            return serde_json::from_slice::<String>(raw).is_ok().then_some(raw);
        }
        let raw = self.scalar()?;
        let number: u64 = serde_json::from_slice(raw).ok()?;
        (number <= MAX_INTEGER_ID).then_some(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_id(head: impl AsRef<[u8]>, expect: Option<&str>) {
        assert_eq!(
            id_in_head(head.as_ref())
                .map(<[u8]>::escape_ascii)
                .map(|raw| raw.to_string()),
            expect.map(|id| id.as_bytes().escape_ascii().to_string())
        );
    }

    #[test]
    fn the_id_of_a_head_is_found() {
        check_id(
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"#,
            Some("7"),
        );
        check_id(r#"{"id":"a\"b","method"#, Some(r#""a\"b""#));
        check_id(" {\r\n \"id\"\t:\n0 , ", Some("0"));
        check_id(r#"{"id":9007199254740991,"#, Some("9007199254740991"));
        check_id(r#"{"\u0069d":1,"#, Some("1"));
        check_id(
            r#"{"params":{"id":1,"x":[{"id":2},"]}",true,-1.5e3,null,{}]},"id":3}"#,
            Some("3"),
        );
        check_id(r#"{"params":[],"method":"\\","id":"","x":"#, Some(r#""""#));
    }

    #[test]
    fn an_id_that_is_not_surely_the_requests_is_not_taken() {
        for head in [
            "",
            "{",
            "[",
            "{}",
            "null",
            "garbage",
            "[{\"id\":1,",
            "{\"id\"",
            "{\"id\":",
            r#"{"params":{"id":1,"#,
            r#"{"params":["id",1,"#,
            r#"{"x":"\"id\":1,"#,
            r#"{"x":"a","id1":1,"#,
            // The number or string is cut off, and may continue.
            r#"{"id":12"#,
            r#"{"id":"abc"#,
            r#"{"id":"abc\""#,
            // These are not valid ids.
            r#"{"id":null,"#,
            r#"{"id":-1,"#,
            r#"{"id":1.0,"#,
            r#"{"id":1e3,"#,
            r#"{"id":01,"#,
            r#"{"id":true,"#,
            r#"{"id":9007199254740992,"#,
            r#"{"id":{"id":1},"#,
            r#"{"id":[1],"#,
            "{\"id\":\"\u{1}\",",
            // These are not JSON.
            r#"{"a" 1,"id":1,"#,
            r#"{"a":,"id":1,"#,
            r#"{"a":]"id":1,"#,
            r#"{a:1,"id":1,"#,
            r#"{"a":1 "id":1,"#,
        ] {
            check_id(head, None);
        }
        check_id(b"{\"id\":\"\xFF\",", None);
    }

    #[test]
    fn deep_nesting_in_a_head_does_no_harm() {
        check_id([b"{\"a\":".as_slice(), &b"[".repeat(HEAD)].concat(), None);
    }
}
