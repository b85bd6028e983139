//! The measurements: a file for each group of rows.

pub mod append;
mod call;
mod clients;
mod export;
mod fork;
mod idle;
mod import;
mod index;
mod list;
mod open;
mod read;
mod search;
mod socket;
mod text;
mod tree;

use crate::Bench;
use crate::table::Table;
use anyhow::Result;

type Group = fn(&Bench, &mut Table) -> Result<()>;

/// The groups in the order of the table.
pub const GROUPS: [(&str, Group); 17] = [
    ("start", call::start),
    ("call", call::round_trip),
    ("socket", socket::round_trip),
    ("socket-clients", clients::clients),
    ("open", open::open),
    ("reopen", open::reopen),
    ("append", append::append),
    ("tree", tree::tree),
    ("read", read::read),
    ("fork", fork::fork),
    ("export", export::export),
    ("text", text::text),
    ("list", list::list),
    ("search", search::search),
    ("index", index::index),
    ("import", import::import),
    ("idle", idle::idle),
];

/// A size as text: `1k`, `100k`, `1M`.
fn size(entries: u32) -> String {
    match entries {
        0..1_000 => entries.to_string(),
        1_000..1_000_000 => format!("{}k", entries / 1_000),
        _ => format!("{}M", entries / 1_000_000),
    }
}
