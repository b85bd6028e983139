//! From the raw `params` of a request to its struct: which spellings of "nothing" are allowed, and
//! which member is named when something is wrong (protocol.md §1, §8). Knows no single method.

use crate::error::Error;
use crate::id::ExpectedLeaf;
use crate::json;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// JSON that is passed on byte for byte.
pub type Raw = Box<RawValue>;

/// Params of a method on one session.
pub trait OnSession {
    /// `sessionId`, if given.
    fn session_id(&self) -> Option<&str>;
}

/// Params of a method that changes a session.
pub trait Mutation: OnSession {
    /// `expectedLeafId`.
    fn expected_leaf(&self) -> &ExpectedLeaf;
}

/// Decodes the `params` member of a request, given as it stands in the frame.
///
/// Absent, `null`, `{}` and `[]` all mean none. Fails with `invalidParams`, naming the member by its
/// path.
pub fn decode<T: DeserializeOwned>(params: Option<&str>) -> Result<T, Error> {
    let text = params.map_or("", |text| text.trim_matches(is_json_space));
    let text = match text.as_bytes() {
        b"" | b"null" => "{}",
        [b'{', ..] => text,
        [b'[', inner @ .., b']'] if inner.iter().all(|b| is_json_space(char::from(*b))) => "{}",
        _ => return Err(Error::invalid_params("", "params go by name, in an object")),
    };
    // The path is kept account of only where there is something to refuse.
    if let Ok(decoded) = serde_json::from_str(text) {
        return Ok(decoded);
    }
    if let Some(Ok(decoded)) = with_readable_ids(text).map(|text| serde_json::from_str(&text)) {
        return Ok(decoded);
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let decoded = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let at = error.path().to_string();
        refusal(if at == "." { "" } else { &at }, &error.into_inner())
    })?;
    json.end().map_err(|error| refusal("", &error))?;
    Ok(decoded)
}

/// The params with lone surrogates in their ids as entries' ids have them here (see [`json::id`]); `None` if
/// there are none. No text of a client can have them, but ids in files may.
fn with_readable_ids(params: &str) -> Option<String> {
    let text = params.as_bytes();
    let mut edits: Vec<(json::Span, Vec<u8>)> = Vec::new();
    let mut readable = |span: json::Span| {
        let Some(id) = text.get(span.clone()).and_then(json::id) else {
            return;
        };
        if id.contains(char::REPLACEMENT_CHARACTER) {
            let mut literal = Vec::new();
            json::push_string(&mut literal, &id);
            edits.push((span, literal));
        }
    };
    let mut members = json::Members::open(text, 0).ok()?;
    while let Some(member) = members.next().ok()? {
        let name = member.name(text);
        if name.ends_with(b"Ids") && text.get(member.value.start) == Some(&b'[') {
            let mut ids = json::Elements::open(text, member.value.start).ok()?;
            while let Some(id) = ids.next().ok()? {
                readable(id);
            }
        } else if name.ends_with(b"Id") && &*name != b"sessionId" {
            readable(member.value);
        }
    }
    let edits: Vec<(json::Span, &[u8])> = edits
        .iter()
        .map(|(span, literal)| (span.clone(), literal.as_slice()))
        .collect();
    if edits.is_empty() {
        return None;
    }
    String::from_utf8(json::splice(text, &edits)).ok()
}

/// Declares the params of a method on one session.
macro_rules! session_params {
    ($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            /// The session; may be left out while exactly one is open.
            pub session_id: Option<String>,
            $($(#[$attribute])* pub $field: $type,)*
        }

        impl $crate::wire::OnSession for $name {
            fn session_id(&self) -> Option<&str> {
                self.session_id.as_deref()
            }
        }
    };
}

/// Declares the params of a method that changes a session.
macro_rules! mutation_params {
    ($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        session_params! {
            $(#[$doc])*
            $name {
                $($(#[$attribute])* $field: $type,)*
                /// Fails with `leafMoved` if the leaf is not this entry; null expects the empty
                /// position. Left out: no check.
                #[serde(default, deserialize_with = "crate::wire::params::nullable_into")]
                #[schemars(with = "Option<String>")]
                expected_leaf_id: $crate::id::ExpectedLeaf,
            }
        }

        impl $crate::wire::Mutation for $name {
            fn expected_leaf(&self) -> &$crate::id::ExpectedLeaf {
                &self.expected_leaf_id
            }
        }
    };
}

/// A position of the leaf that a client names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GivenPosition {
    /// The member is left out: the leaf of the session.
    #[default]
    Leaf,
    /// Null: before the first entry.
    Empty,
    /// The id of an entry.
    At(String),
}

impl From<Option<String>> for GivenPosition {
    fn from(id: Option<String>) -> Self {
        id.map_or(Self::Empty, Self::At)
    }
}

/// For ids where null means something else than absence: the type has one variant for each, and its
/// default is absence.
pub(super) fn nullable_into<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<Option<String>>,
{
    Option::deserialize(deserializer).map(T::from)
}

/// For members that are required, but may be null.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// For objects of which nothing is required: `[]` and null are `{}`.
pub(super) fn lenient_object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    deserializer.deserialize_any(LenientObject(PhantomData))
}

/// [`lenient_object`] where absence differs from an empty object.
pub(super) fn lenient_option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    lenient_object(deserializer).map(Some)
}

/// For optional objects of which something is required. Unlike serde's own, never takes an array
/// for one.
pub(super) fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(OptionalObject(PhantomData))
}

/// For flags that are declared by an empty object; what later versions put into it is ignored.
pub(super) fn declared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    lenient_object(deserializer).map(|AnyObject {}| true)
}

/// For lists that make no sense when empty.
pub(super) fn non_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() {
        return Err(de::Error::invalid_length(0, &"at least one element"));
    }
    Ok(list)
}

/// For `message` and other members that are passed on raw, but must be objects.
pub(super) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    if !raw.get().starts_with('{') {
        return Err(de::Error::custom("must be an object"));
    }
    Ok(raw)
}

/// [`object`] for a member that may be left out or null.
pub(super) fn object_option<'de, D>(deserializer: D) -> Result<Option<Raw>, D::Error>
where
    D: Deserializer<'de>,
{
    match Option::<Raw>::deserialize(deserializer)? {
        Some(raw) if !raw.get().starts_with('{') => Err(de::Error::custom("must be an object")),
        given => Ok(given),
    }
}

/// For counts, sizes and times: a whole number from 0 to 2^53 − 1, in any spelling that JSON has for
/// it. Null is absent.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Count>::deserialize(deserializer)?.map(|Count(value)| value))
}

/// [`count`] for a member that must be there.
pub(super) fn required_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Count::deserialize(deserializer).map(|Count(value)| value)
}

/// The id of a request: a string, or an integer from 0 to 2^53 − 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    Text(String),
    Number(u64),
}

/// The largest integer that every client can represent, 2^53 − 1.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// The wire form of a count; fields hold the `u64` itself.
pub(super) struct Count(u64);

/// The schema of a member that is required, but may be null.
pub(super) struct Nullable<T>(PhantomData<T>);

/// The schema of an object that clients may also write as `[]` or null.
pub(super) struct Lenient<T>(PhantomData<T>);

/// An object whose members are of no interest.
#[derive(Default, Deserialize)]
pub(super) struct AnyObject {}

struct LenientObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for LenientObject<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<T, A::Error> {
        match elements.next_element::<IgnoredAny>()? {
            None => Ok(T::default()),
            Some(_) => Err(de::Error::custom(
                "must be an object, or an empty array for one",
            )),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

struct OptionalObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OptionalObject<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Some)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 to 2^53 - 1")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Count, E> {
                if value > MAX_COUNT {
                    return Err(E::invalid_value(de::Unexpected::Unsigned(value), &self));
                }
                Ok(Count(value))
            }

            // The cast is exact: range and fraction are checked first.
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Count, E> {
                if value.fract() != 0.0 || !(0.0..=MAX_COUNT as f64).contains(&value) {
                    return Err(E::invalid_value(de::Unexpected::Float(value), &self));
                }
                Ok(Count(value as u64))
            }
        }

        deserializer.deserialize_any(Number)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Id;

        impl Visitor<'_> for Id {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a whole number from 0 to 2^53 - 1")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RequestId, E> {
                Ok(RequestId::Text(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<RequestId, E> {
                if value > MAX_COUNT {
                    return Err(E::invalid_value(de::Unexpected::Unsigned(value), &self));
                }
                Ok(RequestId::Number(value))
            }
        }

        deserializer.deserialize_any(Id)
    }
}

impl JsonSchema for Count {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": MAX_COUNT })
    }
}

impl JsonSchema for RequestId {
    fn schema_name() -> Cow<'static, str> {
        "RequestId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a request.",
            "type": ["string", "integer"],
            "minimum": 0,
            "maximum": MAX_COUNT
        })
    }
}

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Nullable{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

impl<T: JsonSchema> JsonSchema for Lenient<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Lenient{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let object = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [object, { "type": "array", "maxItems": 0 }, { "type": "null" }] })
    }
}

impl JsonSchema for AnyObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnyObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// Longest text of a client that an error repeats, in bytes.
const MAX_ECHO: usize = 200;

/// `at` is the path of the struct for what is missing or double, of the member for everything else.
fn refusal(at: &str, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let reason = text
        .rfind(" at line ")
        .and_then(|end| text.get(..end))
        .unwrap_or(&text);
    let unnamed = reason
        .strip_prefix("missing field `")
        .or_else(|| reason.strip_prefix("duplicate field `"))
        .and_then(|rest| rest.strip_suffix('`'));
    let field = match unnamed {
        Some(name) if at.is_empty() => name.to_owned(),
        Some(name) => format!("{at}.{name}"),
        None => at.to_owned(),
    };
    let reason = if reason.starts_with("unknown field `") {
        "no such member".to_owned()
    } else if reason.starts_with("missing field `") {
        "is required".to_owned()
    } else if reason.starts_with("duplicate field `") {
        "stands there twice".to_owned()
    } else {
        shortened(reason)
    };
    Error::invalid_params(shortened(&field), reason)
}

fn shortened(text: &str) -> String {
    match text
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| *at >= MAX_ECHO)
    {
        Some(end) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn is_json_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
