//! The rows of `list_sessions`, kept in the cache between processes (storage.md §5).
//!
//! A row counts for a file of the same path, identity, length and time; any other is read anew. Lost or
//! damaged, all are.

use crate::cache::{Cache, Cursor, Fields};
use crate::error::Kind;
use crate::listing::Listing;
use crate::log::file::{Identity, Status};
use crate::log::index::{get_header, put_header};
use hashbrown::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// To be changed with everything that is written below.
const FORMAT: &[u8; 16] = b"treelined rows 1";
const NAME: &str = "sessions.rows";

/// A row, and what its file was like.
pub type Row = (Status, Arc<Listing>);

/// The rows by path, in its bytes: comparing components takes longer than asking for a file's status.
pub type Rows = HashMap<OsString, Row>;

/// What the last process left; empty if there is nothing to be believed.
pub fn load(cache: &Cache) -> Rows {
    let read = cache.read(NAME, FORMAT, |contents| {
        let bytes = contents.take(contents.left())?;
        let mut fields = Cursor::new(&bytes);
        let rows = fields.list(|fields| {
            let row = get(fields)?;
            Some((row.1.path.clone().into_os_string(), row))
        })?;
        fields.is_at_end().then_some(rows)
    });
    read.unwrap_or_default().into_iter().collect()
}

/// The rows as they are written.
pub fn encode(rows: &Rows) -> Vec<u8> {
    let mut out = Fields::default();
    out.count(rows.len());
    for row in rows.values() {
        put(&mut out, row);
    }
    out.0
}

/// Nothing depends on this.
pub fn save(cache: &Cache, encoded: &[u8]) {
    if let Err(error) = cache.write(NAME, FORMAT, &[encoded]) {
        tracing::info!(%error, "the list of sessions could not be kept");
    }
}

fn put(out: &mut Fields, (status, row): &Row) {
    out.u64(status.identity.device);
    out.u64(status.identity.inode);
    out.u64(status.size);
    out.i64(status.modified.0);
    out.i64(status.modified.1);
    out.bytes(row.path.as_os_str().as_bytes());
    out.optional(row.header.as_ref(), put_header);
    out.optional(row.name.as_deref(), Fields::text);
    out.i64(row.created);
    out.i64(row.modified);
    out.u64(row.message_count);
    out.text(&row.first_message);
    out.u8(u8::from(row.problem.is_some()));
}

fn get(fields: &mut Cursor<'_>) -> Option<Row> {
    let status = Status {
        identity: Identity {
            device: fields.u64()?,
            inode: fields.u64()?,
        },
        size: fields.u64()?,
        modified: (fields.i64()?, fields.i64()?),
    };
    let listing = Listing {
        path: PathBuf::from(OsStr::from_bytes(fields.bytes()?)),
        header: fields.optional(get_header)?,
        name: fields.optional(|fields| Some(fields.text()?.to_owned()))?,
        created: fields.i64()?,
        modified: fields.i64()?,
        message_count: fields.u64()?,
        first_message: fields.text()?.to_owned(),
        problem: match fields.u8()? {
            0 => None,
            // The only one a row can have.
            _ => Some(Kind::HeaderMissing),
        },
    };
    Some((status, Arc::new(listing)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::file::Folder;
    use std::fs;

    fn row(path: &str, size: u64) -> (OsString, Row) {
        let status = Status {
            identity: Identity {
                device: 1,
                inode: size,
            },
            size,
            modified: (3, 4),
        };
        let listing = Listing {
            path: path.into(),
            header: Some(crate::log::new_header("s", 5, "/c", Some("p"))),
            name: Some("n\u{2028}".to_owned()),
            created: -1,
            modified: 2,
            message_count: 120,
            first_message: "first".to_owned(),
            problem: None,
        };
        (listing.path.clone().into(), (status, Arc::new(listing)))
    }

    #[test]
    fn rows_come_back_or_none_do() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::of(Arc::new(Folder::open_to_stay(folder.path()).unwrap()));
        assert!(load(&cache).is_empty());
        let mut rows = Rows::from_iter([row("/a", 7), row("/b", 8)]);
        let (path, (status, broken)) = row("/c", 9);
        let broken = Listing {
            header: None,
            name: None,
            problem: Some(Kind::HeaderMissing),
            ..(*broken).clone()
        };
        rows.insert(path, (status, Arc::new(broken)));
        save(&cache, &encode(&rows));
        assert_eq!(load(&cache), rows);
        let path = folder.path().join(".cache").join(NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            assert!(load(&cache).is_empty(), "byte {at}");
        }
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(load(&cache).is_empty(), "length {len}");
        }
    }
}
