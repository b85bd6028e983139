//! JSON as it came, and what is easy to make of it: messages and their content.
//!
//! What the daemon stores byte for byte stays as its bytes here too: no member is lost, no number
//! loses digits, and nothing is parsed before somebody asks.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Any JSON, as its text.
#[derive(Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The JSON of a value; fails where that has none, such as maps whose keys are no strings.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Json, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Json)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value, as another type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    pub(crate) fn into_raw(self) -> Box<RawValue> {
        self.0
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Json {
        Json(raw)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Json {
        // A `Value` always has a JSON.
        Json::new(&value).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Json)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// The content of a message: a text, or content blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Content(Json);

impl Content {
    /// The text, or the text blocks one after the other. Empty if there is none.
    pub fn text(&self) -> String {
        text_of(&self.0)
    }

    /// As it is.
    pub fn json(&self) -> &Json {
        &self.0
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content(Value::from(text).into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content(Value::from(text).into())
    }
}

impl From<Value> for Content {
    fn from(content: Value) -> Content {
        Content(content.into())
    }
}

impl From<Json> for Content {
    fn from(content: Json) -> Content {
        Content(content)
    }
}

/// A message of the conversation: an object with a `role`, mostly a `content`, and whatever else.
///
/// ```
/// use treelined_client::Message;
///
/// let message = Message::user("Why does the build fail?");
/// assert_eq!(message.role(), "user");
/// assert_eq!(message.text(), "Why does the build fail?");
///
/// let message: Message = serde_json::json!({ "role": "user", "content": "?", "mood": "tired" }).into();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message(Json);

/// What [`Message`] looks into. The parts stay JSON, so that what is odd about one spoils no other.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageParts {
    role: Json,
    content: Json,
}

impl Message {
    /// A message of that role.
    pub fn new(role: &str, content: impl Into<Content>) -> Message {
        #[derive(Serialize)]
        struct Parts<'a> {
            role: &'a str,
            content: Content,
        }
        let content = content.into();
        // Strings and JSON always have a JSON.
        Message(Json::new(&Parts { role, content }).unwrap_or_default())
    }

    /// The user's text.
    pub fn user(text: impl Into<String>) -> Message {
        Message::new("user", text.into())
    }

    /// The model's text, in one text block.
    pub fn assistant(text: impl Into<String>) -> Message {
        let block = serde_json::json!([{ "type": "text", "text": text.into() }]);
        Message::new("assistant", block)
    }

    /// The role of the message; empty if it has none.
    pub fn role(&self) -> String {
        self.parts().role.parse().unwrap_or_default()
    }

    /// The text of its content, or its text blocks one after the other. Empty if there is none.
    pub fn text(&self) -> String {
        text_of(&self.parts().content)
    }

    /// As it is.
    pub fn json(&self) -> &Json {
        &self.0
    }

    fn parts(&self) -> MessageParts {
        self.0.parse().unwrap_or_default()
    }
}

impl From<Value> for Message {
    fn from(message: Value) -> Message {
        Message(message.into())
    }
}

impl From<Json> for Message {
    fn from(message: Json) -> Message {
        Message(message)
    }
}

/// However deep the blocks are nested that are no text.
fn text_of(content: &Json) -> String {
    #[derive(Deserialize)]
    struct Block {
        #[serde(default)]
        r#type: Json,
        #[serde(default)]
        text: Json,
    }
    if let Ok(text) = content.parse() {
        return text;
    }
    let blocks: Vec<Block> = content.parse().unwrap_or_default();
    blocks
        .iter()
        .filter(|block| block.r#type.get() == "\"text\"")
        .filter_map(|block| block.text.parse::<String>().ok())
        .collect()
}

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// As this client makes them.
    Number(u64),
    /// As others do, and navigations.
    Text(String),
}

/// Enums that a newer daemon may have more values of.
macro_rules! string_enum {
    ($(#[$doc:meta])* pub enum $name:ident { $($variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)+
            /// A value that this client does not know.
            Unknown(String),
        }

        impl $name {
            /// As in the protocol.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $text,)+
                    $name::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                match text {
                    $($text => $name::$variant,)+
                    text => $name::Unknown(text.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = crate::json::any_text(deserializer)?;
                Ok($name::from(&*text))
            }
        }
    };
}
pub(crate) use string_enum;

pub(crate) fn any_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Cow<'de, str>, D::Error> {
    Cow::deserialize(deserializer)
}
