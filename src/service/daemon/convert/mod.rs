//! Conversions between the session's types and those of `wire`, a file for each group of types.
//!
//! [`stored`] makes members of stored JSON. [`diagnostics`] converts diagnostics, and [`error`] converts errors.
//! [`line`] makes one line of JSON, [`message`] a notification, and [`member`] single members of an object that is
//! written as text.

pub(crate) mod diagnostics;
pub(crate) mod error;
pub(crate) mod line;
pub(crate) mod member;
pub(crate) mod message;
pub(crate) mod stored;
