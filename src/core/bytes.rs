//! Parts of byte strings, and the encoding of fields in cache files: numbers are little-endian, and the length of a
//! byte string precedes its bytes. Decoding invalid bytes returns `None` and never panics.

use std::slice::SliceIndex;

/// A file offset or length as an index. A value that does not fit becomes the greatest index. No buffer is so long, so
/// every later `get` returns `None`.
pub fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The part of `bytes` at `span`. A parser has found the span in these bytes.
#[inline]
pub fn part<I: SliceIndex<[u8], Output = [u8]>>(bytes: &[u8], span: I) -> &[u8] {
    let part = bytes.get(span);
    debug_assert!(part.is_some(), "the span is of other bytes");
    part.unwrap_or_default()
}

/// Encodes fields, to be decoded by [`Cursor`].
#[derive(Default)]
pub struct Fields(pub Vec<u8>);

impl Fields {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub fn count(&mut self, value: usize) {
        self.u64(value as u64);
    }
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
    pub fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Decodes fields in order. Each method returns `None` if the next bytes are not a field of its type.
pub struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
    /// The number of bytes that are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }
    /// Reads the number of items that follow. `None` if it is greater than the number of bytes left, since
    /// each item has at least one byte.
    pub fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.u64()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.count()?;
        self.take(len)
    }
    pub fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }
    /// The outer `None` means invalid bytes, the inner one an absent value.
    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.u8()? {
            0 => Some(None),
            1 => read(self).map(Some),
            _ => None,
        }
    }
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }
}
