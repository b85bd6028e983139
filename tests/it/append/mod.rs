//! Appends: messages, entries and labels; ids that make retries safe; entries that are refused; and the bytes of a
//! client's entry, which are stored unchanged. protocol.md §3 and §9, session-file.md §1 and §3.

mod background;
mod bytes;
mod entries;
mod expected_leaf;
mod group;
mod labels_and_names;
mod refused;
mod retries;

use std::fs;
use std::path::PathBuf;

use crate::harness::*;

/// A daemon with the open session u1 → a1, and its file.
fn begun() -> (Daemon, std::path::PathBuf) {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1"]);
    let path = d.home.only_file();
    (d, path)
}
