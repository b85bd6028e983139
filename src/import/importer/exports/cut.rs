//! Cuts a stream into objects. The stream is one JSON array of objects, or a single object.

use treelined_core::bytes::part;

/// The longest object that is read, in bytes. An object is in memory as a whole; a longer object is only counted.
pub(super) const LONGEST: usize = 64 << 20;
/// After an object of more bytes than this, its memory is freed.
const LARGE: usize = 8 << 20;

/// One object of the stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut<'a> {
    /// The position of the object in the stream, in bytes.
    pub(super) at: u64,
    pub(super) len: u64,
    /// The bytes of the object; empty if it is longer than [`LONGEST`].
    pub(super) bytes: &'a [u8],
}

/// The position in the structure of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    /// Between two elements of the array.
    Between,
    /// In an element. Objects are cut; other values are skipped.
    Inside,
    After,
    /// At bytes that are neither an element nor the end of the array.
    Wrong,
}

/// The result of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    /// The stream ends in the middle of the array.
    Torn,
    /// The stream is not an array of objects. The wrong bytes begin at this position.
    Other(u64),
}

/// Reads the stream in chunks of any size. Takes linear time, and keeps at most one object in memory.
#[derive(Debug)]
pub(super) struct Cutter {
    place: Place,
    /// Whether the stream is a single object.
    is_single: bool,
    at: u64,
    start: u64,
    depth: u64,
    is_string: bool,
    is_escaped: bool,
    is_long: bool,
    kept: Vec<u8>,
}

impl Default for Cutter {
    fn default() -> Self {
        Self {
            place: Place::Before,
            is_single: false,
            at: 0,
            start: 0,
            depth: 0,
            is_string: false,
            is_escaped: false,
            is_long: false,
            kept: Vec::new(),
        }
    }
}

impl Cutter {
    /// Reads the next bytes, and passes each object that is complete to `take`.
    pub(super) fn push(&mut self, chunk: &[u8], take: &mut dyn FnMut(Cut<'_>)) {
        let mut rest = chunk;
        while !rest.is_empty() && !matches!(self.place, Place::After | Place::Wrong) {
            let used = match self.place {
                Place::Inside => self.inside(rest, take),
                _ => self.outside(rest),
            };
            rest = part(rest, used..);
        }
    }

    pub(super) fn end(&self) -> End {
        match self.place {
            Place::After => End::Whole,
            Place::Wrong => End::Other(self.at),
            Place::Before => End::Other(0),
            Place::Between | Place::Inside => End::Torn,
        }
    }

    /// Skips bytes up to the next object. Returns the number of skipped bytes.
    fn outside(&mut self, bytes: &[u8]) -> usize {
        for (used, byte) in bytes.iter().enumerate() {
            let place = match (self.place, byte) {
                // White space, and the byte order mark of UTF-8 before the array.
                (_, b' ' | b'\t' | b'\r' | b'\n') | (Place::Before, 0xef | 0xbb | 0xbf) => {
                    self.place
                }
                (Place::Before, b'[') => Place::Between,
                (Place::Before, b'{') => {
                    self.is_single = true;
                    Place::Inside
                }
                (Place::Between, b',') => Place::Between,
                (Place::Between, b']') => Place::After,
                (Place::Between, b'{') => Place::Inside,
                _ => Place::Wrong,
            };
            self.place = place;
            match place {
                Place::Inside => {
                    self.start = self.at;
                    (self.depth, self.is_long) = (0, false);
                    self.kept.clear();
                    return used;
                }
                Place::Wrong => return bytes.len(),
                _ => self.at += 1,
            }
        }
        bytes.len()
    }

    /// Reads bytes of an object, at most up to its end. Returns the number of bytes.
    fn inside(&mut self, bytes: &[u8], take: &mut dyn FnMut(Cut<'_>)) -> usize {
        let mut at = 0;
        let mut is_whole = false;
        while let Some(byte) = bytes.get(at) {
            if self.is_escaped {
                self.is_escaped = false;
            } else if self.is_string {
                let rest = part(bytes, at..);
                match memchr::memchr2(b'"', b'\\', rest) {
                    None => {
                        at = bytes.len();
                        break;
                    }
                    Some(found) => {
                        at += found;
                        self.is_escaped = bytes.get(at) == Some(&b'\\');
                        self.is_string = self.is_escaped;
                    }
                }
            } else {
                match byte {
                    b'"' => self.is_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                is_whole = self.depth == 0;
            }
            at += 1;
            if is_whole {
                break;
            }
        }
        self.keep(part(bytes, ..at));
        self.at += at as u64;
        if is_whole {
            take(Cut {
                at: self.start,
                len: self.at - self.start,
                bytes: &self.kept,
            });
            self.kept.clear();
            self.kept.shrink_to(LARGE);
            self.place = match self.is_single {
                true => Place::After,
                false => Place::Between,
            };
        }
        at
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.is_long |= self.kept.len() + bytes.len() > LONGEST;
        match self.is_long {
            true => self.kept = Vec::new(),
            false => self.kept.extend_from_slice(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &[u8], size: usize) -> (Vec<(u64, String)>, End) {
        let mut cutter = Cutter::default();
        let mut found = Vec::new();
        for chunk in text.chunks(size) {
            cutter.push(chunk, &mut |cut| {
                assert_eq!(cut.len, cut.bytes.len() as u64);
                found.push((cut.at, String::from_utf8(cut.bytes.to_vec()).unwrap()));
            });
        }
        (found, cutter.end())
    }

    #[test]
    fn objects_of_an_array_are_cut_at_every_size_of_chunks() {
        let text = b"\xef\xbb\xbf [ {\"a\":\"}]\\\"\\\\\"} ,\n{\"b\":[{}, []]}]  \n";
        let expected = [
            (6, "{\"a\":\"}]\\\"\\\\\"}".to_owned()),
            (23, "{\"b\":[{}, []]}".to_owned()),
        ];
        for size in 1..text.len() {
            let (found, end) = cut(text, size);
            assert_eq!(found, expected, "{size}");
            assert_eq!(end, End::Whole);
        }
    }

    #[test]
    fn one_object_alone_is_cut_too() {
        let (found, end) = cut(b" {\"a\":1}\n", 3);
        assert_eq!(found, [(1, "{\"a\":1}".to_owned())]);
        assert_eq!(end, End::Whole);
    }

    #[test]
    fn a_torn_array_gives_what_is_whole() {
        let text = b"[{\"a\":1},{\"b\":2}]";
        for len in 1..text.len() {
            let (found, end) = cut(&text[..len], 4);
            assert_eq!(end, End::Torn, "{len}");
            assert_eq!(found.len(), usize::from(len > 7) + usize::from(len > 15));
        }
    }

    #[test]
    fn other_streams_are_named() {
        for (text, at) in [("", 0), ("[1]", 1), ("null", 0), ("[{}x", 3), ("  ", 0)] {
            assert_eq!(cut(text.as_bytes(), 2).1, End::Other(at), "{text}");
        }
    }
}
