//! Imports the conversations of other tools: finds their files, keeps their bytes, and writes the sessions.

pub(crate) mod json_tree;
pub(crate) mod native;
pub(crate) mod sqlite;
