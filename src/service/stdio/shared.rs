//! A notification for several connections. Its text is kept once, without the number, which differs between the
//! connections.

use std::sync::Arc;

/// The member whose value differs between connections.
const SEQ: &[u8] = b"\"seq\":";

/// The text of a notification before and after its number.
#[derive(Debug)]
pub(crate) struct SharedText {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl SharedText {
    /// Splits a message at its number, which must be 0. The number is the value of the first member `seq`. `None` if
    /// there is no such member.
    pub(crate) fn around_number(mut message: Vec<u8>) -> Option<Self> {
        // Inside of a string, these quotes would be escaped.
        let place = memchr::memmem::find(&message, SEQ)? + SEQ.len();
        let after = message.split_off(place + 1);
        (message.pop() == Some(b'0')).then_some(Self {
            before: message,
            after,
        })
    }
}

/// A message of a connection.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Own(Vec<u8>),
    Numbered { text: Arc<SharedText>, seq: u64 },
}

impl Message {
    /// The bytes of the text.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Own(message) => message.len(),
            Self::Numbered { text, seq } => {
                let digits = seq.checked_ilog10().map_or(1, |log| log as usize + 1);
                text.before.len() + digits + text.after.len()
            }
        }
    }

    /// Appends the text to `out`.
    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Own(message) => out.extend_from_slice(message),
            Self::Numbered { text, seq } => {
                out.extend_from_slice(&text.before);
                out.extend_from_slice(seq.to_string().as_bytes());
                out.extend_from_slice(&text.after);
            }
        }
    }

    pub(crate) fn into_text(self) -> Vec<u8> {
        match self {
            Self::Own(message) => message,
            numbered @ Self::Numbered { .. } => {
                let mut text = Vec::with_capacity(numbered.len());
                numbered.write_to(&mut text);
                text
            }
        }
    }

    pub(super) fn is_one_line(&self) -> bool {
        let is_one_line = |bytes: &[u8]| memchr::memchr(b'\n', bytes).is_none();
        match self {
            Self::Own(message) => is_one_line(message),
            Self::Numbered { text, .. } => is_one_line(&text.before) && is_one_line(&text.after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_inserted_at_the_first_member_of_its_name() {
        let message = br#"{"params":{"sessionId":"\"seq\":0","seq":0,"entry":{"seq":0}}}"#;
        let text = Arc::new(SharedText::around_number(message.to_vec()).unwrap());
        for seq in [1, 9, 10, 12345] {
            let text = Arc::clone(&text);
            let numbered = Message::Numbered { text, seq };
            let expect = format!(
                r#"{{"params":{{"sessionId":"\"seq\":0","seq":{seq},"entry":{{"seq":0}}}}}}"#
            );
            assert_eq!(numbered.len(), expect.len());
            assert_eq!(String::from_utf8(numbered.into_text()).unwrap(), expect);
        }
        assert!(SharedText::around_number(b"{}".to_vec()).is_none());
        assert!(SharedText::around_number(b"{\"seq\":7}".to_vec()).is_none());
    }
}
