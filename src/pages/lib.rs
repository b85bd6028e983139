//! Entries as people see them: blocks to show, pages, transcripts and files to give away.
//!
//! Nothing that stands in a session runs in a browser: text is escaped or made by the tables here, and a page makes no
//! request. A redacted export has no secret that `treelined-redact` finds, in any of its parts. This crate promises no
//! interface to other programs.

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
