//! How members of params are decoded: the values that a member takes, and the spellings of "nothing" (protocol.md §1).

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;
use treelined_core::id::ExpectedLeaf;

/// JSON whose bytes are passed on unchanged.
pub type Raw = Box<RawValue>;

/// Params of a method on one session.
pub trait OnSession {
    /// `sessionId`, if the client gives it.
    fn session_id(&self) -> Option<&str>;
}

/// Params of a method that changes a session.
pub trait Mutation: OnSession {
    /// The leaf that the client expects.
    fn expected_leaf(&self) -> &ExpectedLeaf;
}

/// Declares the params of a method on one session.
macro_rules! session_params {
    ($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        $(#[$doc])*
        pub struct $name {
            /// The id of the session. Default: the session that is open, if exactly one is.
            pub session_id: Option<String>,
            $($(#[$attribute])* pub $field: $type,)*
        }

        impl $crate::params::OnSession for $name {
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
                /// The leaf that the client expects; null expects the empty position. The request fails with
                /// `leafMoved` if the leaf is another one. Default: no check.
                #[serde(default, deserialize_with = "crate::params::nullable_into")]
                #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
                expected_leaf_id: treelined_core::id::ExpectedLeaf,
            }
        }

        impl $crate::params::Mutation for $name {
            fn expected_leaf(&self) -> &treelined_core::id::ExpectedLeaf {
                &self.expected_leaf_id
            }
        }
    };
}

/// A position of the leaf that a client chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GivenPosition {
    /// The member is left out: the leaf of the session is meant.
    #[default]
    Leaf,
    /// Null: the empty position, before the first entry, is meant.
    Empty,
    /// The id of an entry.
    At(String),
}

impl From<Option<String>> for GivenPosition {
    fn from(id: Option<String>) -> Self {
        id.map_or(Self::Empty, Self::At)
    }
}

/// Decodes an id for which null has its own meaning. `T` has a variant for null; its default stands for an absent
/// member.
pub(super) fn nullable_into<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<Option<String>>,
{
    Option::deserialize(deserializer).map(T::from)
}

/// Decodes a required member that may be null.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// Decodes an object without required members: `[]` and null mean `{}`.
pub(super) fn lenient_object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    deserializer.deserialize_any(LenientObject(PhantomData))
}

/// Decodes like [`lenient_object`], but distinguishes an absent member from an empty object.
pub(super) fn lenient_option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    lenient_object(deserializer).map(Some)
}

/// Decodes an optional object that has required members. The decoder of serde accepts an array for an object; this
/// decoder does not.
pub(super) fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(OptionalObject(PhantomData))
}

/// Decodes a flag that an empty object declares. Members that later versions add are ignored.
pub(super) fn declared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    lenient_object(deserializer).map(|AnyObject {}| true)
}

/// Decodes a list of names, or an object that has these names as members. Members that are null or false are left out.
pub(super) fn names<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(Names)
}

/// Decodes a list that must not be empty.
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

/// Decodes a member that must be an object and is passed on raw.
pub(super) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    if !raw.get().starts_with('{') {
        return Err(de::Error::custom("must be an object"));
    }
    Ok(raw)
}

/// Like [`object`], but the member may be left out or null.
pub(super) fn object_option<'de, D>(deserializer: D) -> Result<Option<Raw>, D::Error>
where
    D: Deserializer<'de>,
{
    match Option::<Raw>::deserialize(deserializer)? {
        Some(raw) if !raw.get().starts_with('{') => Err(de::Error::custom("must be an object")),
        given => Ok(given),
    }
}

/// Decodes a count, size or time: a whole number from 0 to 2^53 − 1, in any form that JSON allows. Null means that it
/// is absent.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Count>::deserialize(deserializer)?.map(|Count(value)| value))
}

/// Like [`count`], but the member is required.
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

/// The largest integer that every client can represent.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// Carries the schema and the decoder of a count; fields have the type `u64` itself.
pub(super) struct Count(u64);

/// An object whose members are ignored.
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

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Option<Vec<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of names")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = elements.next_element()? {
            names.push(name);
        }
        Ok(Some(names))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut names = Vec::new();
        while let Some((name, value)) = members.next_entry::<String, serde_json::Value>()? {
            if !(value.is_null() || value == false) {
                names.push(name);
            }
        }
        Ok(Some(names))
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

            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "range and fraction are checked first"
            )]
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
