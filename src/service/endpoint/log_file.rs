//! The log of a detached daemon, and the limit of its size.

use super::place::Place;
use super::start_lock::open_private;
use std::fs::File;
use std::io::{self, Write};
use treelined_files::os::FileAt;

/// The most bytes of the log. If the log has more, only its end is kept.
const MAX_BYTES: u64 = 1 << 20;
/// The bytes at the end of a long log that are kept.
const KEPT_BYTES: u64 = 256 << 10;
/// The bytes at the end of the log that are shown if a daemon does not start.
const TAIL_BYTES: u64 = 2 << 10;

/// Opens the log for appending. Makes the file (mode 0600) if it is missing.
pub(super) fn open(place: &Place) -> anyhow::Result<File> {
    let file = open_private(&place.log_file())?;
    keep_small(&file)?;
    Ok(file)
}

/// Removes the beginning of a log that is too long. `log` must be open for reading and appending. Anything that is not
/// a file, such as a terminal, is not changed. No other process may write during the call.
pub fn keep_small(mut log: &File) -> io::Result<()> {
    if log.metadata()?.len() <= MAX_BYTES {
        return Ok(());
    }
    let end = end_of(log, KEPT_BYTES)?;
    log.set_len(0)?;
    log.write_all(&end)
}

/// The whole lines at the end of a file, with at most `bytes` bytes.
fn end_of(file: &File, bytes: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let from = size.saturating_sub(bytes);
    let mut end = vec![0; usize::try_from(size - from).unwrap_or(0)];
    file.read_exact_at(&mut end, from)?;
    if from > 0 {
        let line = end.iter().position(|byte| *byte == b'\n');
        end.drain(..line.map_or(0, |line| line + 1));
    }
    Ok(end)
}

/// The end of the log, written as the end of an error message.
pub(super) fn tail(place: &Place) -> String {
    let path = place.log_file();
    let end = File::open(&path).and_then(|file| end_of(&file, TAIL_BYTES));
    match end {
        Ok(end) if !end.is_empty() => format!(
            "; the end of its log {}: {}",
            path.display(),
            String::from_utf8_lossy(&end).trim_end()
        ),
        _ => format!("; its log {} is empty", path.display()),
    }
}
