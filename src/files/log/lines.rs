//! Reads a file line by line through one reused buffer. Memory is limited by the longest line. If the file shrinks
//! meanwhile, reading ends early, without an error. A line that is too long for memory is skipped: its bytes are
//! searched for the line break, but not kept, and holes in the file are not read.

use crate::cancel::Cancel;
use crate::os::FileAt;
use crate::os::file::{File, behind_hole};
use memchr::{memchr, memrchr};
use std::io;
use std::ops::Range;
use treelined_core::bytes::index;
use treelined_core::json;

/// The number of bytes that are requested at a time.
pub(crate) const CHUNK: usize = 1 << 20;
/// The number of bytes that are requested first; later reads are longer.
const FIRST: usize = 64 << 10;
/// Lines longer than this, in bytes, are skipped.
pub(crate) const MAX_LINE_BYTES: usize = 256 << 20;
/// If a line has more bytes than this, its end is searched before the rest of it is read into memory.
const LONG: usize = 4 << 20;

/// One line, without its line break.
#[derive(Debug, PartialEq, Eq)]
pub struct RawLine<'a> {
    /// The offset in bytes from the start of the file.
    pub offset: u64,
    /// The bytes of the line; `None` if it is longer than `MAX_LINE_BYTES`.
    pub bytes: Option<&'a [u8]>,
    /// The length in bytes.
    pub len: u64,
    /// Whether a line break follows.
    pub terminated: bool,
}

/// Reads lines from `offset` to the end of the file. If the file grows meanwhile, the new lines are read too.
pub struct Lines<'f> {
    file: &'f File,
    buffer: Vec<u8>,
    /// The index in `buffer` of the first unread byte.
    start: usize,
    end: usize,
    /// The offset of `buffer[start]` in the file.
    offset: u64,
    max_line: usize,
    /// The number of bytes that are requested at a time.
    chunk: usize,
    cancel: Option<&'f Cancel>,
}

impl<'f> Lines<'f> {
    pub fn new(file: &'f File, offset: u64) -> Self {
        Self::in_chunks(file, offset, CHUNK)
    }

    /// Like [`Lines::new`], reading `chunk` bytes at a time.
    pub fn in_chunks(file: &'f File, offset: u64, chunk: usize) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset,
            max_line: MAX_LINE_BYTES,
            chunk,
            cancel: None,
        }
    }

    /// Uses this buffer instead of a new one.
    #[must_use]
    pub fn with_buffer(self, buffer: Vec<u8>) -> Self {
        Self { buffer, ..self }
    }

    /// Reading fails with `Interrupted` once `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(self, cancel: &'f Cancel) -> Self {
        Self {
            cancel: Some(cancel),
            ..self
        }
    }

    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The next line; `None` at the end of the file.
    // This is not an iterator, since the line borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        if self.cancel.is_some_and(Cancel::is_cancelled) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.start == self.end && self.buffer.len() > 2 * LONG {
            // The memory of a long line is freed.
            self.buffer = Vec::new();
            (self.start, self.end) = (0, 0);
        }
        let mut searched = 0;
        loop {
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            let fresh = unread.get(searched..).unwrap_or_default();
            if let Some(found) = memchr(b'\n', fresh) {
                return Ok(Some(self.take(searched + found, true)));
            }
            searched = unread.len();
            if searched > LONG.min(self.max_line) {
                return self.long(searched).map(Some);
            }
            if !self.fill()? {
                let rest = self.end - self.start;
                return Ok((rest > 0).then(|| self.take(rest, false)));
            }
        }
    }

    /// The next lines together: as many whole lines as are in memory, with the line breaks between them. A longer
    /// line, or a line without a line break, is returned alone, as by [`Lines::next`]. `None` at the end of the file.
    pub fn next_lines(&mut self) -> io::Result<Option<RawLine<'_>>> {
        if self.cancel.is_some_and(Cancel::is_cancelled) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        loop {
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            if let Some(last) = memrchr(b'\n', unread) {
                return Ok(Some(self.take(last, true)));
            }
            if unread.len() > LONG || self.buffer.len() > 2 * LONG {
                return self.next();
            }
            if !self.fill()? {
                let rest = self.end - self.start;
                return Ok((rest > 0).then(|| self.take(rest, false)));
            }
        }
    }

    fn take(&mut self, len: usize, terminated: bool) -> RawLine<'_> {
        let (start, offset) = (self.start, self.offset);
        let step = len + usize::from(terminated);
        self.start += step;
        self.offset += step as u64;
        RawLine {
            offset,
            bytes: self
                .buffer
                .get(start..start + len)
                .filter(|line| line.len() <= self.max_line),
            len: len as u64,
            terminated,
        }
    }

    /// Appends the next bytes of the file to the buffer; returns false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        let unread = self.end - self.start;
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, unread);
        }
        // A short file does not need a whole chunk, which would have to be filled with zeros first.
        let chunk = self.chunk.min(FIRST.max(2 * self.buffer.len()));
        // The buffer is doubled, so that copying a long line stays linear.
        let wanted = unread + chunk.max(unread);
        if self.buffer.len() < wanted {
            match unread {
                // New memory from the system is zero already.
                0 => self.buffer = vec![0; wanted],
                _ => self.buffer.resize(wanted, 0),
            }
        }
        let room = self.buffer.get_mut(unread..wanted).unwrap_or_default();
        let read = read_at(self.file, room, self.offset + unread as u64)?;
        self.end += read;
        Ok(read > 0)
    }

    /// The current line, which is long. Its first `held` bytes are in the buffer.
    fn long(&mut self, held: usize) -> io::Result<RawLine<'_>> {
        let (len, terminated) = self.find_end(held as u64)?;
        let offset = self.offset;
        if len > self.max_line as u64 {
            self.buffer = Vec::new();
            (self.start, self.end) = (0, 0);
            self.offset = offset + len + u64::from(terminated);
            return Ok(RawLine {
                offset,
                bytes: None,
                len,
                terminated,
            });
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, held);
        let len = index(len);
        let wanted = len + usize::from(terminated);
        self.buffer
            .reserve_exact(wanted.saturating_sub(self.buffer.len()));
        self.buffer.resize(wanted.max(held), 0);
        while let Some(room) = self.buffer.get_mut(self.end..wanted) {
            let read = read_at(self.file, room, offset + self.end as u64)?;
            self.end += read;
            if read == 0 {
                // The file has shrunk, or all of it was read.
                break;
            }
        }
        let whole = self.end == wanted;
        let len = if whole { len } else { self.end };
        Ok(self.take(len, whole && terminated))
    }

    /// The length of the current line, and whether it ends with a line break. Its first `searched` bytes have none.
    fn find_end(&self, searched: u64) -> io::Result<(u64, bool)> {
        let mut buffer = vec![0; CHUNK];
        let mut len = searched;
        loop {
            if self.cancel.is_some_and(Cancel::is_cancelled) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let read = read_at(self.file, &mut buffer, self.offset + len)?;
            let fresh = buffer.get(..read).unwrap_or_default();
            if let Some(found) = memchr(b'\n', fresh) {
                return Ok((len + found as u64, true));
            }
            if read == 0 {
                return Ok((len, false));
            }
            len += read as u64;
            if fresh.iter().all(|byte| *byte == 0) {
                len = behind_hole(self.file, self.offset + len).saturating_sub(self.offset);
            }
        }
    }
}

/// One `pread`, repeated if a signal interrupts it.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The range of the text without the white space around it.
pub(super) fn trimmed(text: &[u8]) -> Range<usize> {
    let start = json::skip_space(text, 0);
    let spaces = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_whitespace());
    start..(text.len() - spaces.count()).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(content: &[u8], max_line: usize) -> Vec<(u64, Option<Vec<u8>>, u64, bool)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let mut lines = Lines::new(&file, 0);
        lines.max_line = max_line;
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((
                line.offset,
                line.bytes.map(<[u8]>::to_vec),
                line.len,
                line.terminated,
            ));
        }
        all
    }

    #[test]
    fn lines_and_their_places() {
        assert_eq!(
            read(b"a\n\nbcd\ne", 100),
            vec![
                (0, Some(b"a".to_vec()), 1, true),
                (2, Some(b"".to_vec()), 0, true),
                (3, Some(b"bcd".to_vec()), 3, true),
                (7, Some(b"e".to_vec()), 1, false),
            ]
        );
        assert_eq!(read(b"", 100), vec![]);
    }

    #[test]
    fn several_lines_come_together() {
        let long = "x".repeat(100);
        let content = format!("a\n\nbcd\n{long}\ne\nf");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        for chunk in 1..120 {
            let mut lines = Lines::in_chunks(&file, 0, chunk);
            let mut whole = String::new();
            while let Some(some) = lines.next_lines().unwrap() {
                assert_eq!(some.offset, whole.len() as u64, "{chunk}");
                whole += str::from_utf8(some.bytes.unwrap()).unwrap();
                assert_eq!(some.terminated, whole.len() < content.len(), "{chunk}");
                whole.extend(some.terminated.then_some('\n'));
            }
            assert_eq!(whole, content, "{chunk}");
        }
    }

    #[test]
    fn a_line_across_many_chunks_and_one_over_the_limit() {
        let long = vec![b'x'; 3 * CHUNK + 5];
        let mut content = long.clone();
        content.extend_from_slice(b"\nshort\n");
        assert_eq!(
            read(&content, usize::MAX / 4),
            vec![
                (0, Some(long.clone()), long.len() as u64, true),
                (long.len() as u64 + 1, Some(b"short".to_vec()), 5, true),
            ]
        );
        assert_eq!(
            read(&content, CHUNK),
            vec![
                (0, None, long.len() as u64, true),
                (long.len() as u64 + 1, Some(b"short".to_vec()), 5, true),
            ]
        );
        assert_eq!(
            read(&long, CHUNK),
            vec![(0, None, long.len() as u64, false)]
        );
    }

    /// A line of more than four megabytes was once read into a buffer that doubled up to twice the length of the line.
    /// A line that was too long for memory was first read up to the limit: this took 540 to 790 MB. A long line must
    /// take as much memory as its length, and a line that is too long must take none.
    #[test]
    fn a_long_line_takes_no_more_memory_than_its_length() {
        let mut file = tempfile::tempfile().unwrap();
        let long = vec![b'x'; 3 * LONG + 7];
        file.write_all(&long).unwrap();
        file.write_all(b"\nshort\n").unwrap();
        for (max_line, most) in [(usize::MAX / 4, long.len() + 1), (2 * LONG, 0)] {
            let mut lines = Lines::new(&file, 0);
            lines.max_line = max_line;
            let line = lines.next().unwrap().unwrap();
            let held = line.bytes.map(<[u8]>::len);
            assert_eq!((line.len, line.terminated), (long.len() as u64, true));
            assert_eq!(held, (most > 0).then_some(long.len()));
            assert!(lines.buffer.capacity() <= most.max(1), "{max_line}");
            assert_eq!(lines.next().unwrap().unwrap().bytes, Some(&b"short"[..]));
        }
    }

    /// Opening a sparse file of 200 GB once read every byte of its hole, and could not be cancelled. Holes are skipped
    /// without being read, and reading ends when it is cancelled.
    #[test]
    fn a_hole_is_passed_and_reading_can_be_cancelled() {
        const HOLE: u64 = 200 << 30;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"first\n").unwrap();
        file.set_len(HOLE).unwrap();
        std::io::Seek::seek(&mut file, io::SeekFrom::End(0)).unwrap();
        file.write_all(b"\nlast\n").unwrap();
        let mut lines = Lines::new(&file, 0);
        assert_eq!(lines.next().unwrap().unwrap().len, 5);
        let hole = lines.next().unwrap().unwrap();
        assert_eq!((hole.len, hole.bytes), (HOLE - 6, None));
        assert_eq!(lines.next().unwrap().unwrap().bytes, Some(&b"last"[..]));

        let cancel = Cancel::new();
        let mut lines = Lines::new(&file, 0).with_cancel(&cancel);
        assert_eq!(lines.next().unwrap().unwrap().len, 5);
        cancel.cancel();
        let stopped = lines.next().unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }
}
