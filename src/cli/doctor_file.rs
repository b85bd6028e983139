//! Opens a session file for the commands of `treelined doctor`, and has the sentence for each kind of
//! damage.

use std::path::Path;
use treelined_core::error::{Error, Result};
use treelined_files::log::diagnostic::Damage;
use treelined_files::log::{Log, OpenedLog};
use treelined_files::os::file::Location;

pub(super) fn open(path: &Path) -> Result<(OpenedLog, u64)> {
    let location = Location::of_path(path)?;
    let size = location
        .status()
        .map_err(|error| Error::io(&format!("stat {}", path.display()), &error))?
        .size;
    Ok((Log::open(location)?, size))
}

/// The consequence of the damage, in words for users of the session.
pub(super) fn meaning(damage: Damage) -> &'static str {
    match damage {
        Damage::TornTail => {
            "The file ends inside a line. The piece is not an entry; the next append begins a new line."
        }
        Damage::InvalidJson => "The line is not JSON. It is not an entry and stays in the file.",
        Damage::NotAnObject => "The line is JSON, but no entry. It stays in the file.",
        Damage::InvalidUtf8 => {
            "The line has bytes that are not UTF-8. The entry is read with U+FFFD in their place."
        }
        Damage::NulBytes => {
            "The line holds zero bytes, as a crash can leave them. They are skipped."
        }
        Damage::GluedLines => "One line holds several entries. All of them are read.",
        Damage::DuplicateId => {
            "Another entry has the same id. If they differ, the body of the last one is used, at the position of the first one."
        }
        Damage::OrphanParent => {
            "The entry's parent is not in the file. The entry is a root until the parent is read."
        }
        Damage::ForwardParent => {
            "The entry's parent is later in the file. The entry is linked to it."
        }
        Damage::SelfParent => "The entry names itself as its parent. It is a root.",
        Damage::Cycle => {
            "The entry's parent descends from the entry. The cycle is cut here: the entry is a root."
        }
        Damage::SecondHeader => {
            "The line is a second header. It is ignored; the first one is used."
        }
        Damage::MissingTrailingNewline => {
            "The last line has no line break. It is read; the next append begins a new line."
        }
        Damage::OversizedLine => {
            "The line is longer than the default limit of a message to clients."
        }
        Damage::DurabilityUnknown => {
            "A sync failed: the last entries may not survive a crash of the machine."
        }
    }
}
