//! Describes a session to other machines, from its file.

use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::TeamRow;
use treelined_core::timestamp;
use treelined_files::log::Log;
use treelined_files::os::file::Location;
use treelined_files::store::listing::Listing;

/// The description of a session, read from its file.
pub struct Description {
    /// The row, without the host and the sequence, which the file does not have.
    pub row: TeamRow,
    /// The id of the leaf at which the file opens; `None` at the empty position.
    pub(crate) leaf: Option<String>,
}

/// Reads the file of a session. Fails with `headerMissing` if the file has no header.
pub fn describe(at: &Location) -> Result<Description> {
    let opened = Log::open(at.clone())?;
    let tree = &opened.tree;
    let entries = tree.entry_count() as u64;
    let leaf = tree.file_leaf().map(|leaf| tree.id(leaf).to_owned());
    let listing = Listing::of(at, Ok(opened))?;
    let Some(header) = listing.header else {
        let why = format!("{} has no session header", at.path().display());
        return Err(Error::new(Kind::HeaderMissing, why));
    };
    let row = TeamRow {
        session_id: header.id,
        name: listing.name,
        first_message: listing.first_message,
        cwd: header.cwd,
        created: timestamp::format(listing.created),
        modified: timestamp::format(listing.modified),
        entries,
        host: String::new(),
        sequence: 0,
        is_trashed: false,
    };
    Ok(Description { row, leaf })
}
