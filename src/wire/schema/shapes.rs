//! The schemas of types whose decoder accepts more, or less, than the type tells.

use crate::params::{AnyObject, Count, MAX_COUNT};
use crate::{RequestId, TreeFold, UserValue};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The schema of a required member that may be null.
pub(crate) struct Nullable<T>(PhantomData<T>);

/// The schema of an object that clients may also write as `[]` or null.
pub(crate) struct Lenient<T>(PhantomData<T>);

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

impl JsonSchema for UserValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "UserValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Generators of types cannot represent a union of a string and a boolean.
        json_schema!({})
    }
}

impl JsonSchema for TreeFold {
    fn schema_name() -> Cow<'static, str> {
        "TreeFold".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What to fold: the descendants of these entries, or the branches that were left.",
            "anyOf": [{ "const": "left" }, { "type": "array", "items": { "type": "string" } }],
        })
    }
}
