//! Reads the conversations in a `.zip` without unpacking all of it. The list at the end of the file has their
//! positions.

use flate2::{Crc, read::DeflateDecoder};
use std::fs::File;
use std::io::{self, Read};
use std::slice::SliceIndex;
use treelined_core::bytes::index;
use treelined_files::os::FileAt;

/// The first bytes of a `.zip`.
pub(super) const ZIP: &[u8] = b"PK\x03\x04";
/// The most bytes at the end of the file in which the position of the list is looked for.
const TAIL: u64 = 66 << 10;
/// The longest list that is read, in bytes.
const LONGEST_LIST: u64 = 64 << 20;
/// The most unpacked bytes for each byte of the `.zip`. Packing makes conversations at most ten times smaller.
const MOST_TIMES: u64 = 100;
/// The number of unpacked bytes that are always allowed, even if the `.zip` is very small.
const LEAST: u64 = 16 << 20;

/// The row of a packed file in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) name: String,
    is_encrypted: bool,
    method: u16,
    crc: u32,
    /// The number of packed bytes.
    stored: u64,
    /// The position of the file's header in the `.zip`, in bytes.
    header_at: u64,
}

/// The packed files that have conversations, in the order of their names: `conversations.json`, or the numbered files
/// of a large export.
pub(super) fn conversations(file: &File, len: u64) -> io::Result<Vec<Packed>> {
    let mut found = list(file, len)?;
    found.retain(|packed| is_conversations(&packed.name));
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Whether an export has conversations in a file of this name, such as `conversations.json` or
/// `conversations-000.json`.
pub(super) fn is_conversations(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let number = name
        .strip_prefix("conversations")
        .and_then(|rest| rest.strip_suffix(".json"));
    number.is_some_and(|number| {
        let digits = number.strip_prefix('-').unwrap_or(number);
        digits.bytes().all(|byte| byte.is_ascii_digit()) && number.is_empty() == digits.is_empty()
    })
}

/// The most unpacked bytes of all files in a `.zip` of `len` bytes.
pub(super) fn budget(len: u64) -> u64 {
    len.saturating_mul(MOST_TIMES).max(LEAST)
}

/// Passes the unpacked bytes of a file to `take`. `left` is the number of bytes that may still be unpacked.
pub(super) fn unpack(
    file: &File,
    packed: &Packed,
    left: &mut u64,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    if packed.is_encrypted {
        return Err(wrong("it is encrypted; unpack it and import the folder"));
    }
    let mut header = [0; 30];
    file.read_exact_at(&mut header, packed.header_at)?;
    if !header.starts_with(ZIP) {
        return Err(wrong("its list names a place without a file"));
    }
    let names = u64::from(short(&header, 26)) + u64::from(short(&header, 28));
    let stored = Section {
        file,
        at: packed.header_at.saturating_add(30 + names),
        left: packed.stored,
    };
    let mut from: Box<dyn Read> = match packed.method {
        0 => Box::new(stored),
        8 => Box::new(DeflateDecoder::new(stored)),
        method => {
            let message =
                format!("it is packed by method {method}; unpack it and import the folder");
            return Err(wrong(&message));
        }
    };
    let (mut chunk, mut crc) = (vec![0; CHUNK], Crc::new());
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        *left = left.checked_sub(read as u64).ok_or_else(|| {
            let message = format!(
                "it unpacks to more than {MOST_TIMES} times its size; unpack it and import the folder"
            );
            wrong(&message)
        })?;
        let bytes = within(&chunk, ..read);
        crc.update(bytes);
        take(bytes)?;
    }
    match crc.sum() == packed.crc {
        true => Ok(()),
        false => Err(wrong("it is damaged; download it again")),
    }
}

/// The most bytes that are read at a time.
const CHUNK: usize = 256 << 10;

/// All rows of the list at the end of the file.
fn list(file: &File, len: u64) -> io::Result<Vec<Packed>> {
    let most = len.min(TAIL);
    let mut tail = vec![0; index(most)];
    file.read_exact_at(&mut tail, len - most)?;
    let end = memchr::memmem::rfind(&tail, b"PK\x05\x06");
    let torn = || wrong("it is not whole; download it again");
    let end = end.and_then(|at| tail.get(at..)).ok_or_else(torn)?;
    let tail_at = len - end.len() as u64;
    let (mut size, mut at) = (u64::from(long(end, 12)), u64::from(long(end, 16)));
    if size == u64::from(u32::MAX) || at == u64::from(u32::MAX) {
        (size, at) = large_list(file, tail_at)?;
    }
    if size > LONGEST_LIST || at.checked_add(size).is_none_or(|end| end > len) {
        return Err(torn());
    }
    let mut bytes = vec![0; index(size)];
    file.read_exact_at(&mut bytes, at)?;
    let (mut rest, mut found) = (&*bytes, Vec::new());
    while rest.starts_with(b"PK\x01\x02") {
        let lengths = [short(rest, 28), short(rest, 30), short(rest, 32)].map(usize::from);
        let [name, extra, comment] = lengths;
        let names = within(rest, 46..);
        found.push(packed(
            rest,
            within(names, ..name),
            within(names, name..name + extra),
        ));
        rest = within(rest, 46 + name + extra + comment..);
    }
    Ok(found)
}

/// The size and the position of the list in a file of more than 4 GiB.
fn large_list(file: &File, end_at: u64) -> io::Result<(u64, u64)> {
    let torn = || wrong("it is not whole; download it again");
    let mut locator = [0; 20];
    file.read_exact_at(&mut locator, end_at.checked_sub(20).ok_or_else(torn)?)?;
    let mut record = [0; 56];
    file.read_exact_at(&mut record, huge(&locator, 8))?;
    match locator.starts_with(b"PK\x06\x07") && record.starts_with(b"PK\x06\x06") {
        true => Ok((huge(&record, 40), huge(&record, 48))),
        false => Err(torn()),
    }
}

/// Reads a row of the list.
fn packed(line: &[u8], name: &[u8], extra: &[u8]) -> Packed {
    let mut sizes = [24, 20, 42].map(|at| u64::from(long(line, at)));
    let mut more = large_sizes(extra);
    for size in sizes
        .iter_mut()
        .filter(|size| **size == u64::from(u32::MAX))
    {
        if more.len() >= 8 {
            *size = huge(more, 0);
            more = within(more, 8..);
        }
    }
    let [_, stored, header_at] = sizes;
    Packed {
        name: String::from_utf8_lossy(name).into_owned(),
        is_encrypted: short(line, 8) & 1 == 1,
        method: short(line, 10),
        crc: long(line, 16),
        stored,
        header_at,
    }
}

/// The extra field of a row that has its sizes as numbers of eight bytes; empty if there is none.
fn large_sizes(mut extra: &[u8]) -> &[u8] {
    while extra.len() >= 4 {
        let len = usize::from(short(extra, 2));
        if short(extra, 0) == 1 {
            return within(extra, 4..4 + len);
        }
        extra = within(extra, 4 + len..);
    }
    &[]
}

fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    let found = from.get(at..at.saturating_add(N));
    found
        .and_then(|found| found.try_into().ok())
        .unwrap_or([0; N])
}

fn short(from: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(from, at))
}

fn long(from: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(from, at))
}

fn huge(from: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(from, at))
}

fn wrong(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// A range of bytes; empty if the bytes end before it.
fn within<I: SliceIndex<[u8], Output = [u8]>>(bytes: &[u8], span: I) -> &[u8] {
    bytes.get(span).unwrap_or_default()
}

/// A range of a file.
struct Section<'f> {
    file: &'f File,
    at: u64,
    left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(index(self.left));
        let into = into.get_mut(..most).unwrap_or_default();
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
