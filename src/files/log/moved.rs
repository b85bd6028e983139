//! Changes values in the header of a session file; every other byte stays (session-file.md §5.11).

use super::append;
use super::header::CURRENT_VERSION;
use super::repair::locked;
use super::rewrite::{self, copy_range};
use super::state::Log;
use super::upstream::is_replica;
use crate::os::file::{self, Location};
use crate::os::handle::HandleAccess;
use crate::os::process;
use std::io::{self, Write};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json::{self, quoted};

/// A member of the header, and its new value.
pub(crate) type HeaderChange = (&'static str, String);

/// Replaces the file with a file whose header has these members. Fails without a change in three cases: for a replica,
/// since its header is in the team's stream too; for a file of a newer version; and for a file that another program has
/// open for writing.
pub(crate) fn change_header(at: &Location, changes: &[HeaderChange]) -> Result<()> {
    if is_replica(at) {
        let why = "the file is a copy of the team's stream, which has its header too";
        return Err(Error::new(Kind::LogMisconfigured, why));
    }
    let mut opened = Log::open(at.clone())?;
    if opened.log.version() > CURRENT_VERSION {
        let newer = opened.log.version_text();
        let why = format!("{newer} is newer than this program, which does not change it");
        return Err(Error::new(Kind::VersionUnsupported, why));
    }
    let identity = opened.log.identity();
    let writers = identity.and_then(process::writers_of).unwrap_or_default();
    if let Some(writer) = writers.first() {
        let why = format!("process {writer} has it open for writing: end it first");
        return Err(Error::new(Kind::SessionLocked, why));
    }
    let _lock = locked(&mut opened.log)?;
    let place = opened.log.header().map(|header| header.place);
    let place = place.ok_or_else(append::replaced)?;
    let failed = |error: io::Error| Error::io(&format!("move {}", at.path().display()), &error);
    let old = at.folder.file(&at.name, HandleAccess::Read)?;
    let status = file::status_of(&old).map_err(failed)?;
    if Some(status.identity) != identity {
        return Err(append::replaced());
    }
    let mut header = Vec::new();
    let length = u64::from(place.len);
    copy_range(&mut header, &old, place.offset, length).map_err(failed)?;
    for (name, value) in changes {
        header = json::with_member(&header, name, &quoted(value));
    }
    let rest = place.offset + length;
    rewrite::replace(at, at, |out| {
        copy_range(out, &old, 0, place.offset)?;
        out.write_all(&header)?;
        copy_range(out, &old, rest, status.size.saturating_sub(rest))?;
        out.flush()?;
        // pi continues the session with the newest modification time, so the new file gets the time of the old file.
        out.get_ref().set_modified(old.metadata()?.modified()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ENTRY: &str = r#"{"type":"custom","id":"a","parentId":null,"timestamp":"t","data": 1.0}"#;

    fn file(header: &str) -> (tempfile::TempDir, Location) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, format!("{header}\n{ENTRY}\n{{\"type\":\"mess")).unwrap();
        (folder, Location::of_path(&path).unwrap())
    }

    fn header(version: u64) -> String {
        format!(
            r#"{{"type":"session", "version":{version},"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/old","own":[1.0]}}"#
        )
    }

    #[test]
    fn only_the_members_of_the_header_change() {
        let (_folder, at) = file(&header(3));
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        let opened = fs::File::options().append(true).open(at.path()).unwrap();
        opened.set_modified(long_ago).unwrap();
        let changes = [("cwd", "/new \"one\"".to_owned())];
        change_header(&at, &changes).unwrap();
        let expected = header(3).replace("/old", "/new \\\"one\\\"");
        let text = fs::read_to_string(at.path()).unwrap();
        assert_eq!(text, format!("{expected}\n{ENTRY}\n{{\"type\":\"mess"));
        let modified = fs::metadata(at.path()).unwrap().modified().unwrap();
        assert_eq!(modified, long_ago);
    }

    #[test]
    fn replicas_newer_files_and_locked_ones_stay_as_they_are() {
        let changes = [("cwd", "/new".to_owned())];
        let refused = |at: &Location, kind: Kind| {
            let before = fs::read(at.path()).unwrap();
            let error = change_header(at, &changes).unwrap_err();
            assert_eq!(error.kind, kind, "{}", error.message);
            assert_eq!(fs::read(at.path()).unwrap(), before);
        };
        let (_folder, newer) = file(&header(4));
        refused(&newer, Kind::VersionUnsupported);
        let (_folder, replica) = file(&header(3));
        fs::write(replica.beside(".replica").path(), "").unwrap();
        refused(&replica, Kind::LogMisconfigured);
        let (_folder, held) = file(&header(3));
        let holder = fs::File::open(held.path()).unwrap();
        holder.lock().unwrap();
        refused(&held, Kind::SessionLocked);
    }

    #[test]
    fn a_file_that_another_program_writes_stays() {
        let (_folder, at) = file(&header(3));
        let before = fs::read(at.path()).unwrap();
        let opened = fs::File::options().append(true).open(at.path()).unwrap();
        let mut writer = std::process::Command::new("sleep");
        let mut writer = writer.arg("60").stdout(opened).spawn().unwrap();
        let refused = change_header(&at, &[("cwd", "/new".to_owned())]).unwrap_err();
        writer.kill().unwrap();
        writer.wait().unwrap();
        assert_eq!(refused.kind, Kind::SessionLocked);
        assert!(
            refused.message.contains(&writer.id().to_string()),
            "{}",
            refused.message
        );
        assert_eq!(fs::read(at.path()).unwrap(), before);
        change_header(&at, &[("cwd", "/new".to_owned())]).unwrap();
    }
}
