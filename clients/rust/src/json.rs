//! JSON as it was received, and the types that wrap it: messages and their content.
//!
//! The daemon stores entries byte for byte, and these types keep the bytes: members are not lost, numbers
//! keep all digits, and nothing is parsed before it is needed.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Any JSON value. It is stored as text.
#[derive(Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Serializes a value. Fails if the value cannot be written as JSON, for instance a map whose keys are
    /// not strings.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Json, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Json)
    }

    /// Returns the text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Parses the text.
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
        // Serializing a `Value` cannot fail.
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
    /// Returns the text, or the joined text blocks; empty if there are none.
    pub fn text(&self) -> String {
        text_of(&self.0)
    }

    /// Returns the JSON.
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

/// A message of the conversation: an object with a `role`, usually a `content`, and any other members.
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

/// The members that [`Message`] reads. They stay JSON, so that a fault in one member does not affect the
/// other.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageParts {
    role: Json,
    content: Json,
}

impl Message {
    /// Makes a message with this role.
    pub fn new(role: &str, content: impl Into<Content>) -> Message {
        #[derive(Serialize)]
        struct MessageLiteral<'a> {
            role: &'a str,
            content: Content,
        }
        let content = content.into();
        // Serializing strings and JSON cannot fail.
        Message(Json::new(&MessageLiteral { role, content }).unwrap_or_default())
    }

    /// Makes a user message.
    pub fn user(text: impl Into<String>) -> Message {
        Message::new("user", text.into())
    }

    /// Makes an assistant message with one text block.
    pub fn assistant(text: impl Into<String>) -> Message {
        let block = serde_json::json!([{ "type": "text", "text": text.into() }]);
        Message::new("assistant", block)
    }

    /// Returns the role; empty if the message has none.
    pub fn role(&self) -> String {
        self.parts().role.parse().unwrap_or_default()
    }

    /// Returns the text of the content, or its joined text blocks; empty if there are none.
    pub fn text(&self) -> String {
        text_of(&self.parts().content)
    }

    /// Returns the JSON.
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

/// Reads the text blocks of a content. Other blocks may be nested to any depth.
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
    /// A number. This client uses numbers.
    Number(u64),
    /// A text. Other clients and navigations use texts.
    Text(String),
}

/// Defines an enum of strings. A value that only a newer daemon knows is kept as `Unknown`.
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
            /// Returns the value as it is written in the protocol.
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
