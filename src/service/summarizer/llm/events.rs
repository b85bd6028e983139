//! Splits a stream of bytes into server-sent events, and keeps their data. Model servers use no other field.
//!
//! The time is linear in the bytes. The memory is at most [`MAX_EVENT_BYTES`] and a chunk. The crate
//! `eventsource-stream` is not used, since it copies the rest of a chunk for every event and has no limit.

use super::api::ModelFailure;
use std::collections::VecDeque;

/// The longest event, in bytes.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// Reads events. If the end of the stream cuts an event off, the event is dropped.
#[derive(Default)]
pub(super) struct EventSplitter {
    /// The incomplete last line.
    line: Vec<u8>,
    /// The data lines of the incomplete event.
    data: Option<Vec<u8>>,
    /// Whether the last byte was a carriage return. A line feed after it belongs to the same line end.
    after_return: bool,
    whole: VecDeque<String>,
}

impl EventSplitter {
    /// Reads a chunk. Fails if an event is too long or is not UTF-8.
    pub(super) fn push(&mut self, mut chunk: &[u8]) -> Result<(), ModelFailure> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_return)
                && let Some(rest) = chunk.strip_prefix(b"\n")
            {
                chunk = rest;
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', chunk);
            let (text, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            let unfinished = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if unfinished + text.len() > MAX_EVENT_BYTES {
                return Err(ModelFailure::TooLong);
            }
            self.line.extend_from_slice(text);
            chunk = rest;
            if let Some((ending, rest)) = chunk.split_first() {
                self.after_return = *ending == b'\r';
                chunk = rest;
                self.end_line()?;
            }
        }
        Ok(())
    }

    /// The data of the next whole event.
    pub(super) fn next(&mut self) -> Option<String> {
        self.whole.pop_front()
    }

    fn end_line(&mut self) -> Result<(), ModelFailure> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                let data = String::from_utf8(data).map_err(|_| ModelFailure::BadResponse)?;
                self.whole.push_back(data);
            }
        } else if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": comment\r\nevent: x\r\ndata: one\r\ndata:two\r\n\r\n\n\
                          id: 1\ndata:  é\n\nretry: 5\n\ndata\rdata: last\r\rdata: cut off\n";

    #[test]
    fn however_it_is_cut_into_chunks_the_events_are_the_same() {
        for size in 1..STREAM.len() {
            let mut events = EventSplitter::default();
            let mut said = Vec::new();
            for chunk in STREAM.as_bytes().chunks(size) {
                events.push(chunk).unwrap();
                said.extend(std::iter::from_fn(|| events.next()));
            }
            assert_eq!(said, ["one\ntwo", " é", "last"], "chunks of {size}");
        }
    }

    #[test]
    fn an_event_too_long_or_no_text_is_refused() {
        let long = "data: x\n".repeat(1 << 20);
        assert_eq!(
            EventSplitter::default().push(long.as_bytes()),
            Err(ModelFailure::TooLong)
        );
        let line = vec![b'x'; MAX_EVENT_BYTES + 1];
        assert_eq!(
            EventSplitter::default().push(&line),
            Err(ModelFailure::TooLong)
        );
        let no_text = EventSplitter::default().push(b"data: \xff\n\n");
        assert_eq!(no_text, Err(ModelFailure::BadResponse));
    }
}
