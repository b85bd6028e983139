//! The envelope of a message: its method, id, session and stop reason. If a message is too long, or its JSON cannot
//! be read, the recorder keeps only the envelope. Pure, and linear in the message.

use serde_json::{Map, Value};

/// The most bytes of a key or a value that is kept; a longer one is left out.
const MAX_TOKEN: usize = 64 << 10;
/// `MEMBERS` are the kept members of the message, and `INNER` the kept members of its `params` and its `result`.
const MEMBERS: [&str; 3] = ["id", "method", "result"];
const INNER: [&str; 3] = ["sessionId", "cwd", "stopReason"];

/// Reads a message piece by piece.
#[derive(Debug, Default)]
pub struct Envelope {
    message: Map<String, Value>,
    /// The number of objects and arrays that are open.
    depth: usize,
    /// For each of the two outermost open containers: the key of the member that is being read, and whether the colon
    /// after the key was read.
    places: [Place; 2],
    string: InString,
    /// The bytes of the string, or of the other scalar, that is being read.
    token: Vec<u8>,
}

#[derive(Debug, Default)]
struct Place {
    key: String,
    is_value: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum InString {
    #[default]
    No,
    Yes,
    Escaped,
}

impl Envelope {
    pub fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match self.string {
                InString::Escaped => self.string = InString::Yes,
                InString::Yes if *byte == b'\\' => self.string = InString::Escaped,
                InString::Yes if *byte == b'"' => self.string = InString::No,
                InString::Yes => {}
                InString::No => {
                    self.structure(*byte);
                    continue;
                }
            }
            self.keep(*byte);
        }
    }

    /// A message with only the kept members. It has a `result` if the whole message has one.
    pub fn into_message(self) -> Value {
        Value::Object(self.message)
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.string = InString::Yes;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.begin_value();
                self.depth += 1;
                // The items of an array have no key: each is a value.
                let is_value = byte == b'[';
                if let Some(place) = self.place() {
                    *place = Place {
                        key: String::new(),
                        is_value,
                    };
                }
            }
            b'}' | b']' => {
                self.end_token();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' => {
                let key = std::mem::take(&mut self.token);
                if let Some(place) = self.place() {
                    place.key = serde_json::from_slice(&key).unwrap_or_default();
                    place.is_value = true;
                }
            }
            b',' => {
                self.end_token();
                if let Some(place) = self.place() {
                    // In an array no colon follows an item, so an item is never taken for a key.
                    place.is_value = false;
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(byte),
        }
    }

    fn place(&mut self) -> Option<&mut Place> {
        self.places.get_mut(self.depth.checked_sub(1)?)
    }

    fn keep(&mut self, byte: u8) {
        if self.depth <= self.places.len() && self.token.len() <= MAX_TOKEN {
            self.token.push(byte);
        }
    }

    /// Notes that the message has an object `params` or `result`.
    fn begin_value(&mut self) {
        let [outer, _] = &self.places;
        if self.depth == 1 && outer.is_value && matches!(outer.key.as_str(), "params" | "result") {
            let empty = Value::Object(Map::new());
            self.message.entry(outer.key.clone()).or_insert(empty);
        }
    }

    /// Keeps the scalar that ends here, if the list of members has its key.
    fn end_token(&mut self) {
        let token = std::mem::take(&mut self.token);
        let [outer, inner] = &self.places;
        let members = match self.depth {
            1 if outer.is_value && MEMBERS.contains(&outer.key.as_str()) => &mut self.message,
            2 if inner.is_value && INNER.contains(&inner.key.as_str()) => {
                match self.message.get_mut(&outer.key) {
                    Some(Value::Object(members)) => members,
                    _ => return,
                }
            }
            _ => return,
        };
        let key = if self.depth == 1 { outer } else { inner };
        if let Ok(value) = serde_json::from_slice(&token) {
            members.insert(key.key.clone(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &[u8], size: usize) -> Value {
        let mut envelope = Envelope::default();
        for piece in text.chunks(size) {
            envelope.read(piece);
        }
        envelope.into_message()
    }

    #[test]
    fn the_members_are_found_wherever_they_are() {
        let deep = format!("{}9{}", "[{\"id\":".repeat(2_000), "}]".repeat(2_000));
        let long = "x\\\"{[,:".repeat(20_000);
        let cases = [
            (
                format!(
                    r#"{{"jsonrpc":"2.0","params":{{"update":{{"sessionId":"no","content":{deep}}},"sessionId":"s\u0031"}},"method":"session/update"}}"#
                ),
                json!({"method": "session/update", "params": {"sessionId": "s1"}}),
            ),
            (
                format!(
                    r#" {{ "id" : 7 , "result" : {{ "x" : "{long}" , "stopReason" : "end_turn" }} }} "#
                ),
                json!({"id": 7, "result": {"stopReason": "end_turn"}}),
            ),
            (
                format!(r#"{{"id":"a:b","error":{{"message":"{long}","sessionId":"no"}}}}"#),
                json!({"id": "a:b"}),
            ),
            (
                format!(
                    r#"{{"params":["sessionId","x",{{"sessionId":"no"}}],"method":"{long}","id":null}}"#
                ),
                json!({"params": {}, "id": null}),
            ),
            (
                format!(r#"{{"id":1,"_meta":"{long}","result":null}}"#),
                json!({"id": 1, "result": null}),
            ),
            (long, json!({})),
            ("{\"id\"}]]]]:::{{{".to_owned(), json!({})),
        ];
        for (text, expected) in cases {
            for size in [1, 7, text.len()] {
                assert_eq!(read(text.as_bytes(), size), expected);
            }
        }
        let torn = b"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"x\":\"\xff";
        let expected = json!({"method": "session/update", "params": {"sessionId": "s1"}});
        assert_eq!(read(torn, 3), expected);
    }
}
