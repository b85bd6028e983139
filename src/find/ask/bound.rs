//! The highest score that a candidate of one session can have, found without the tree of the session. Only the tree
//! says whether an entry is on the path to the leaf, and which label it has, so the best case is assumed for both.

use super::answer::{ACTIVE, TextReader};
use super::counted::Candidate;
use super::counts::{role_of, scanned};
use super::gather::Gathered;
use super::request::AskRequest;
use std::io;
use treelined_core::entry::Line;
use treelined_core::error::{Error, Result};
use treelined_core::search::ask::closeness;
use treelined_files::os::FileAt;
use treelined_files::os::file::{File, Location};
use treelined_files::os::handle::HandleAccess;

/// The number of bytes of a line that are read at first, and at most. In a longer line, the words count as if they were
/// as near to each other as possible.
const FIRST: usize = 8 << 10;
const MOST: usize = 1 << 20;

/// The score that no hit among the candidates exceeds, found without reading their lines.
pub(super) fn unread(request: &AskRequest, of_phrase: f64, candidates: &[Candidate]) -> f64 {
    let may_be_phrase = candidates.iter().any(|one| one.has_all);
    let of_phrase = if may_be_phrase { of_phrase } else { 0.0 };
    apart(request, candidates) + of_phrase
}

/// The score that no hit among the candidates exceeds if the hit does not have the question as a phrase.
pub(super) fn apart(request: &AskRequest, candidates: &[Candidate]) -> f64 {
    let candidates = candidates.iter();
    let together = candidates.clone().map(|one| one.together);
    let own = candidates.clone().map(|one| one.own);
    let own: f64 = match candidates.clone().any(|one| one.has_labels) {
        // An entry and its label are one hit, and their scores are added.
        true => own.sum(),
        false => own.fold(0.0, f64::max),
    };
    own * closest(request) * ACTIVE + together.fold(0.0, f64::max)
}

/// The factor for words that are as near to each other as possible. A word alone is not a phrase.
fn closest(request: &AskRequest) -> f64 {
    let phrase = if request.question.len() > 1 { 1.0 } else { 0.0 };
    closeness(phrase, 1.0, 1.0)
}

/// Like `unread`, from the lines of the candidates. If the line of a candidate is no longer an entry, the file has
/// changed after the candidates were counted, and the score is infinite.
pub(super) fn read(
    request: &AskRequest,
    gathered: &Gathered,
    location: &Location,
    candidates: &[Candidate],
) -> Result<f64> {
    if candidates.iter().any(|one| one.has_labels) {
        return Ok(unread(request, gathered.of_phrase, candidates));
    }
    let failed =
        |error: &io::Error| Error::io(&format!("read {}", location.path().display()), error);
    let file = location.folder.file(&location.name, HandleAccess::Read)?;
    let mut texts = TextReader::new(request, gathered);
    let (mut line, mut most) = (Vec::new(), 0.0_f64);
    for candidate in candidates {
        let is_whole = read_line(&file, candidate.offset, &mut line);
        let (close, is_phrase) = match is_whole.map_err(|error| failed(&error))? {
            true => {
                let Some(Line::Entry(envelope)) = scanned(&line) else {
                    return Ok(f64::INFINITY);
                };
                match texts.best(&line, envelope.kind, role_of(&envelope), None) {
                    Some(shown) => (shown.closeness, shown.is_phrase),
                    None => continue,
                }
            }
            false => (closest(request), candidate.has_all),
        };
        let of_phrase = if is_phrase { gathered.of_phrase } else { 0.0 };
        most = most.max(candidate.own * close * ACTIVE + candidate.together + of_phrase);
    }
    Ok(most)
}

/// Reads the line at `offset`, without its line break. Returns whether the whole line was read.
fn read_line(file: &File, offset: u64, line: &mut Vec<u8>) -> io::Result<bool> {
    let (mut read, mut wanted) = (0, FIRST);
    loop {
        line.resize(wanted, 0);
        let part = line.get_mut(read..).unwrap_or_default();
        let more = file.read_at(part, offset + read as u64)?;
        let new = line.get(read..read + more).unwrap_or_default();
        if let Some(end) = memchr::memchr(b'\n', new) {
            line.truncate(read + end);
            return Ok(true);
        }
        read += more;
        if more == 0 || read >= MOST {
            line.truncate(read);
            return Ok(more == 0);
        }
        if read == wanted {
            wanted *= 4;
        }
    }
}
