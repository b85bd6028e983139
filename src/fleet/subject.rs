//! The subject of a session in a stream, `treelined.s.<key>`, and its key, which every engine uses.

/// The subject of each session begins with this.
#[cfg(any(feature = "nats", test))]
pub(super) const PREFIX: &str = "treelined.s.";
/// The subjects of a stream that keeps sessions.
#[cfg(any(feature = "nats", test))]
pub(super) const ALL: &str = "treelined.s.*";
/// The subject of the row of each session begins with this, and ends with the key of the session.
#[cfg(feature = "nats")]
pub(super) const ROWS: &str = "treelined.r.";
/// If an id cannot be a token of a subject, its key begins with this, and the hex of its bytes follows.
const ENCODED: &str = "x-";

/// The subject of a session.
#[cfg(any(feature = "nats", test))]
pub(super) fn subject(session: &str) -> String {
    format!("{PREFIX}{}", key(session))
}

/// The last token of a session's subject.
pub(super) fn key(session: &str) -> String {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !session.is_empty() && session.bytes().all(is_token) && !session.starts_with(ENCODED) {
        return session.to_owned();
    }
    let hex = session.bytes().map(|byte| format!("{byte:02x}"));
    format!("{ENCODED}{}", hex.collect::<String>())
}

/// The session of a subject; `None` if the subject belongs to another program.
#[cfg(any(feature = "nats", test))]
pub(super) fn session(subject: &str) -> Option<String> {
    let key = subject.strip_prefix(PREFIX)?;
    let id = match key.strip_prefix(ENCODED) {
        None => key.to_owned(),
        Some(hex) => {
            let digits = hex.as_bytes().chunks(2);
            let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
            String::from_utf8(digits.map(byte).collect::<Option<Vec<u8>>>()?).ok()?
        }
    };
    // An id has only one subject, and an id is not empty.
    (!id.is_empty() && self::subject(&id) == subject).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_of_letters_are_their_own_key() {
        assert_eq!(subject("019a-B_c"), "treelined.s.019a-B_c");
        assert_eq!(subject("a.b"), "treelined.s.x-612e62");
        assert_eq!(subject("x-1"), "treelined.s.x-782d31");
        assert_eq!(session("treelined.s.x-zz"), None);
        assert_eq!(session("treelined.s.x-61"), None, "`a` needs no encoding");
        assert_eq!(session("treelined.s.x-"), None);
        assert_eq!(session("other.s.a"), None);
    }

    proptest! {
        #[test]
        fn every_id_has_a_subject_of_one_token_and_is_found_by_it(id in "(?s).+") {
            let of = subject(&id);
            let key = &of[PREFIX.len()..];
            prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic() && !b".*>".contains(&byte)));
            prop_assert_eq!(session(&of), Some(id));
        }
    }
}
