//! The path that is handed over to another agent. One pure function makes it: it cleans the messages of a context so
//! that any agent accepts them (protocol.md §3.18). The path also has a hash (session-file.md §4.6).
//!
//! [`NeutralPath::of`] is that function. `treelined-handoff` writes its result into files. An import compares it with
//! the conversation that an agent returns.

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
