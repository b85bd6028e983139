//! Restores the rows of the ledger that say in which session each native session is. All such rows are missing if the
//! ledger was lost, and some if an import was killed just after it wrote sessions. The leaf records in the session
//! files have the same facts.

use super::ledger::Ledger;
use super::ledger::rows::{SessionRow, SourceRow, placement_name};
use super::source::facts::SourceStatus;
use crate::importer::report::ImportedSession;
use crate::mapping::Former;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use treelined_core::agent::Tool;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_files::cancel::Cancel;
use treelined_files::log::OpenedLog;
use treelined_files::os::file::{Identity, Location};
use treelined_files::store::Store;

/// Imported sessions have UUIDs of this version.
const VERSION: usize = 8;

/// The facts in the leaf record of an import.
struct Placement {
    /// The time of the first import.
    since: String,
    tool: Tool,
    row: ImportedSession,
    natives: Vec<String>,
    is_home: bool,
}

/// Adds the rows that are missing to the ledger.
pub(super) fn rebuild(
    ledger: &mut Ledger,
    store: &Store,
    known: &HashMap<String, Location>,
    cancel: &Cancel,
) -> Result<()> {
    let is_imported = |id: &str| {
        let id = uuid::Uuid::try_parse(id);
        id.is_ok_and(|id| id.get_version_num() == VERSION)
    };
    let missing = known
        .iter()
        .filter(|(id, _)| !ledger.has_noted(id) && is_imported(id));
    let mut found: Vec<Placement> = Vec::new();
    for (_, at) in missing {
        if let Ok(opened) = store.open(at.clone(), cancel) {
            found.extend(placements_of(&opened)?);
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    found.sort_by(|a, b| (&a.since, &a.row.session_id).cmp(&(&b.since, &b.row.session_id)));
    let (sources, sessions) = found.into_iter().map(rows).unzip();
    ledger.note(sources, sessions)
}

/// Reads the first and the last import of each tool into a session.
fn placements_of(opened: &OpenedLog) -> Result<Vec<Placement>> {
    let tree = &opened.tree;
    let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
    let mut found: Vec<Placement> = Vec::new();
    let mut continued: HashSet<String> = HashSet::new();
    for node in nodes.filter(|node| tree.kind(*node) == EntryKind::LeafRecord) {
        let line = opened.log.bodies().read(tree.place(node))?;
        let tool = json::get_path(&line, &["data", "continuation", "tool"]);
        continued.extend(tool.and_then(json::string).map(Cow::into_owned));
        if let Some(next) = read(&line) {
            match found.iter_mut().find(|first| first.tool == next.tool) {
                Some(first) => {
                    first.row = next.row;
                    first.natives = next.natives;
                    first.is_home |= next.is_home;
                }
                None => found.push(next),
            }
        }
    }
    for placement in &mut found {
        placement.is_home |= continued.contains(placement.tool.name());
    }
    Ok(found)
}

/// Reads the leaf record of an import; `None` for another leaf record.
fn read(line: &[u8]) -> Option<Placement> {
    let import = json::get_path(line, &["data", "import"])?;
    let row = json::get_path(import, &["report", "session"])?;
    let row: ImportedSession = serde_json::from_slice(row).ok()?;
    let tool = Tool::ALL.into_iter().find(|tool| tool.name() == row.tool)?;
    Some(Placement {
        since: json::string(json::get(line, "timestamp")?)?.into_owned(),
        tool,
        natives: serde_json::from_slice(json::get(import, "natives")?).ok()?,
        is_home: json::get(import, "adopted").is_some(),
        row,
    })
}

fn rows(found: Placement) -> (SourceRow, SessionRow) {
    let Placement {
        tool,
        row,
        natives,
        is_home,
        ..
    } = found;
    let source = placement(tool, &row.session_id, natives);
    (source, SessionRow::of(tool, &row, is_home))
}

/// A row without a source: it only says that these native sessions are in the session. If several native sessions share
/// an entry, the first of them owns it.
pub(super) fn placement(tool: Tool, session_id: &str, natives: Vec<String>) -> SourceRow {
    SourceRow {
        tool,
        source: placement_name(session_id),
        targets: vec![session_id.to_owned(); natives.len()],
        bases: Vec::new(),
        natives,
        status: SourceStatus {
            size: 0,
            modified: (0, 0),
            identity: Identity {
                device: 0,
                inode: 0,
            },
            version: 0,
        },
        len: 0,
        hash: [0; 32],
        origin: String::new(),
        held_until: None,
        version: 0,
        former: Former::default(),
    }
}
