//! A whole line of a session file, with the number that the line also has in the team's stream.

use super::body::Bodies;
use super::upstream::FileLine;
use crate::os::FileAt;
use crate::os::file::{self, File};
use memchr::{memchr, memchr_iter, memrchr};
use std::io;
use treelined_core::bytes::index;
use treelined_core::error::{Error, Result};
use treelined_core::tree::FilePlace;

/// The bytes that are read at a time.
const WINDOW: usize = 64 << 10;

impl Bodies {
    /// The line that has the entry at `place`; `None` if no file in a stream can have the entry. Reads the file up to
    /// the end of this line.
    pub fn line_of(&self, place: FilePlace) -> Result<Option<FileLine>> {
        let Some((file, _)) = self.stored_file() else {
            return Ok(None);
        };
        let failed = |error: io::Error| Error::io("read the session file", &error);
        line_at(file, place).map(Some).map_err(failed)
    }
}

fn line_at(file: &File, place: FilePlace) -> io::Result<FileLine> {
    let mut window = vec![0; WINDOW];
    let (mut at, mut number, mut start) = (0, 1, 0);
    while at < place.offset {
        let left = index(place.offset - at).min(WINDOW);
        let read = read_some(file, window.get_mut(..left).unwrap_or_default(), at)?;
        let part = window.get(..read).unwrap_or_default();
        number += memchr_iter(b'\n', part).count() as u64;
        if let Some(last) = memrchr(b'\n', part) {
            start = at + last as u64 + 1;
        }
        at += read as u64;
    }
    let mut bytes = Vec::new();
    let mut at = start;
    // The entry may be a part of a damaged line, so the break after the entry ends the line.
    let rest_at = place.offset + u64::from(place.len);
    loop {
        let read = match file.read_at(&mut window, at) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let part = window.get(..read).unwrap_or_default();
        let from = index(rest_at.saturating_sub(at)).min(read);
        let end = memchr(b'\n', part.get(from..).unwrap_or_default());
        let taken = end.map_or(read, |end| from + end + 1);
        bytes.extend_from_slice(part.get(..taken).unwrap_or_default());
        at += taken as u64;
        if read == 0 || end.is_some() {
            break;
        }
    }
    Ok(FileLine {
        number,
        bytes,
        end: at,
        file: file::status_of(file)?.identity,
    })
}

/// Reads at least one byte.
fn read_some(file: &File, window: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(window, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::file::Location;
    use crate::os::handle::HandleAccess;
    use std::fs;

    /// The numbers and the bytes must equal the numbers and bytes that the servers count, also for lines longer than
    /// the window.
    #[test]
    fn each_place_has_its_whole_line_and_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let long = "x".repeat(3 * WINDOW);
        let lines = [
            "{}\n",
            "\n",
            &format!("{long}\n"),
            "damaged {\"id\":1} rest\n",
            "torn",
        ];
        fs::write(&path, lines.concat()).unwrap();
        let at = Location::of_path(&path).unwrap();
        let file = at.folder.file(&at.name, HandleAccess::Read).unwrap();
        let mut start = 0;
        for (number, line) in (1..).zip(lines) {
            let content = line.trim_end_matches('\n');
            let place = FilePlace {
                offset: start,
                len: u32::try_from(content.len()).unwrap(),
            };
            let found = line_at(&file, place).unwrap();
            assert_eq!((found.number, &*found.bytes), (number, line.as_bytes()));
            start += line.len() as u64;
            assert_eq!(found.end, start);
        }
        let inner = lines.concat().find("{\"id\"").unwrap() as u64;
        let place = FilePlace {
            offset: inner,
            len: 8,
        };
        let found = line_at(&file, place).unwrap();
        assert_eq!((found.number, &*found.bytes), (4, lines[3].as_bytes()));
        let beyond = FilePlace {
            offset: start + 9,
            len: 1,
        };
        assert!(line_at(&file, beyond).is_err());
    }
}
