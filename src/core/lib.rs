//! The pure part of treelined: entries, trees, rows, contexts, the lines of each operation, and raw JSON.
//!
//! The core does no input or output, and knows no clock, randomness, thread or runtime. It waits for no lock. A static
//! table is computed once, when it is first used. Functions get all other data as arguments. So each function gives the
//! same answer for the same bytes on every machine, and tests of the core need no files. Bytes that came from outside
//! are read in linear time and without recursion; lines that the core does not understand are kept unchanged.
//! `treelined-files` uses the core to keep sessions on disk.
//!
//! ```
//! use treelined_core::entry::{Kind, Line, scan::scan_line};
//!
//! let line = br#"{"type":"message","id":"a1","parentId":null,"message":{"role":"user","content":"Hello"}}"#;
//! let Ok(Line::Entry(entry)) = scan_line(line) else { panic!("not an entry") };
//! assert_eq!((entry.kind, entry.id.as_deref()), (Kind::Message, Some("a1")));
//! // A damaged line is an error. It hides no other line.
//! assert!(scan_line(&line[1..]).is_err());
//! ```

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

pub mod agent;
pub mod author;
pub mod budget;
pub mod bytes;
pub mod context;
pub mod defect;
pub mod durability;
pub mod entry;
pub mod error;
pub mod flow;
pub mod id;
pub mod json;
pub mod name;
pub mod search;
pub mod shape;
pub mod stats;
pub mod suggest;
pub mod summary;
pub mod tags;
pub mod team;
pub mod terminal;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
pub mod timestamp;
pub mod tools;
pub mod tree;
pub mod view;
