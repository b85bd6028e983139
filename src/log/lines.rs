//! A file's bytes, line by line, through one reused buffer: memory stays at the longest line, and
//! a file that shrinks meanwhile is an early end, not a fault.

use memchr::memchr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes asked for at a time.
pub const CHUNK: usize = 1 << 20;
/// Lines longer than this, in bytes, are passed over: nothing holds them in memory.
pub const MAX_LINE_BYTES: usize = 256 << 20;

/// One line, without its line break.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// `None` if it is longer than [`MAX_LINE_BYTES`].
    pub bytes: Option<&'a [u8]>,
    /// Bytes.
    pub len: u64,
    /// Whether a line break follows.
    pub terminated: bool,
}

/// Reads lines from `offset` up to where the file ends at the time.
pub struct Lines<'f> {
    file: &'f File,
    buffer: Vec<u8>,
    /// The unread part of `buffer`.
    start: usize,
    end: usize,
    /// Where `buffer[start]` stands in the file.
    offset: u64,
    max_line: usize,
    /// Bytes asked for at a time.
    chunk: usize,
}

impl<'f> Lines<'f> {
    pub fn new(file: &'f File, offset: u64) -> Self {
        Self::in_chunks(file, offset, CHUNK)
    }

    /// As [`Lines::new`], `chunk` bytes at a time: for whoever wants few.
    pub fn in_chunks(file: &'f File, offset: u64, chunk: usize) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset,
            max_line: MAX_LINE_BYTES,
            chunk,
        }
    }

    /// With a buffer that has served before.
    #[must_use]
    pub fn with_buffer(self, buffer: Vec<u8>) -> Self {
        Self { buffer, ..self }
    }

    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The next line; `None` at the end.
    // (not an Iterator: the line borrows the buffer)
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            let fresh = unread.get(searched..).unwrap_or_default();
            if let Some(found) = memchr(b'\n', fresh) {
                return Ok(Some(self.take(searched + found, true)));
            }
            searched = unread.len();
            if searched > self.max_line {
                return self.skip_long().map(Some);
            }
            if !self.fill()? {
                let rest = self.end - self.start;
                return Ok((rest > 0).then(|| self.take(rest, false)));
            }
        }
    }

    fn take(&mut self, len: usize, terminated: bool) -> Line<'_> {
        let (start, offset) = (self.start, self.offset);
        let step = len + usize::from(terminated);
        self.start += step;
        self.offset += step as u64;
        Line {
            offset,
            bytes: self
                .buffer
                .get(start..start + len)
                .filter(|line| line.len() <= self.max_line),
            len: len as u64,
            terminated,
        }
    }

    /// Appends more of the file to the buffer; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        let unread = self.end - self.start;
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, unread);
        }
        // Doubling keeps the copying of a long line linear.
        let wanted = unread + self.chunk.max(unread);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let room = self.buffer.get_mut(unread..wanted).unwrap_or_default();
        let read = read_at(self.file, room, self.offset + unread as u64)?;
        self.end += read;
        Ok(read > 0)
    }

    fn skip_long(&mut self) -> io::Result<Line<'_>> {
        let offset = self.offset;
        let mut len = (self.end - self.start) as u64;
        self.buffer = vec![0; CHUNK];
        (self.start, self.end) = (0, 0);
        loop {
            let read = read_at(self.file, &mut self.buffer, offset + len)?;
            let fresh = self.buffer.get(..read).unwrap_or_default();
            let found = memchr(b'\n', fresh);
            let terminated = found.is_some();
            len += found.unwrap_or(read) as u64;
            if terminated || read == 0 {
                self.offset = offset + len + u64::from(terminated);
                return Ok(Line {
                    offset,
                    bytes: None,
                    len,
                    terminated,
                });
            }
        }
    }
}

/// One `pread`, interruptions aside.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
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
}
