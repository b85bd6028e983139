//! The path that is handed over to another agent: the messages of a context, cleaned by one pure function, so that any
//! agent takes them (protocol.md §3.18), and their hash (session-file.md §4.6).
//!
//! [`NeutralPath::of`] is that function. The writers of `treelined-handoff` make files of its result; an import compares
//! with it what an agent gives back.

mod blocks;
mod clean;
mod hash;
mod loss;
mod path;
#[cfg(test)]
mod tests;
mod tools;

pub use hash::hash;
pub(crate) use hash::{PathHash, Said, parts, parts_of};
pub use loss::{Loss, Losses};
pub use path::{
    Call, CallResult, Message, Model, ModelMessage, ModelPart, NeutralPath, Options, Part,
    UserMessage, text_of, tokens_of,
};
pub use treelined_core::context::handed::PathMessage;
