//! Entries in the forms that people see: blocks to show, pages, transcripts and files for other people.
//!
//! No text of a session runs in a browser: text is escaped or replaced by markup from the tables of this crate, and a
//! page makes no requests. No part of a redacted export has a secret that `treelined-redact` finds. This crate has no
//! stable interface for other programs.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

pub mod export;
pub mod page;
pub mod redact;
pub mod render;
pub mod renderers;
pub mod session_render;
