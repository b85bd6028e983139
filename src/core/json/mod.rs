//! Works on raw JSON in bytes: validates it, finds members, decodes strings, splices.
//!
//! This module has the grammar by which stored lines are read and edited: RFC 8259 as JavaScript's `JSON.parse` accepts
//! it. So lone surrogate escapes, numbers out of range, any nesting depth and duplicate members (the last one counts)
//! are valid. The module never builds or serializes a value: an edit keeps all other bytes. The module does not know
//! entries. It does not check UTF-8: bytes above 0x7f are accepted, and a decoded string has U+FFFD in place of invalid
//! bytes. Nothing recurses: nesting costs one bit per level.

mod block;
mod edit;
mod literal;
mod plain;
mod read;
mod scan;
mod span;
#[cfg(test)]
mod tests;
mod walk;

pub use read::{
    Elements, Member, MemberValues, Members, depth, get, get_each, get_path, skip_value, value_span,
};
pub use scan::{Key, skip_space};
pub use span::{Malformed, Span};

pub use edit::{
    push_one_line, push_raw, push_string, push_strings, quoted, quoted_or_null, splice,
    with_member, without_member,
};
pub use literal::{LONGEST_CHAR, chars, first_char, id, string};
pub use plain::{first_of, plain_words};
pub use walk::{Visitor, walk};

/// `number` without its fraction. A number outside of the range of `u64` becomes the nearest end of the range, and NaN
/// becomes 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn saturated(number: f64) -> u64 {
    number as u64
}
