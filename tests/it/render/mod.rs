//! Entries as blocks, branches side by side, and statistics: `render_entries`, `compare_branches`, `get_stats`.
//! protocol.md §15.

mod blocks;
mod calls;
mod compare;
mod limits;

use crate::harness::*;

fn opened(log: &Log) -> Daemon {
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d
}

/// The blocks of one entry.
#[track_caller]
fn blocks(d: &mut Daemon, id: &str) -> Json {
    let mut result = d.ok("render_entries", json!({"entryIds": [id]}));
    assert_eq!(result["entries"][0]["entryId"], id, "{result}");
    result["entries"][0]["blocks"].take()
}
