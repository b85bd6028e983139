//! Names of files. A name is bytes, and JSON and terminals show it as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use treelined_redact::unseen::is_control;

/// The names of files and folders that belong to repositories. Upper and lower case do not differ.
pub const FOREIGN: [&[u8]; 9] = [
    b".git",
    b".hg",
    b".svn",
    b".bzr",
    b".jj",
    b".pijul",
    b"_darcs",
    b".sl",
    b".fslckout",
];

/// A path relative to the root, with `/` between its parts, as in git. It may have any bytes except zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub Vec<u8>);

impl Name {
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Whether the file is below a folder.
    pub fn is_below(&self, folder: &[u8]) -> bool {
        let rest = self.0.strip_prefix(folder);
        rest.is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// Whether a file of this name may be written: no part of the name leads out of the root, or into a repository of
    /// the user.
    pub fn is_safe(&self) -> bool {
        let mut parts = self.0.split(|byte| *byte == b'/');
        let is_foreign = |part: &[u8]| FOREIGN.iter().any(|name| part.eq_ignore_ascii_case(name));
        parts.all(|part| !matches!(part, b"" | b"." | b"..") && !is_foreign(part))
    }
}

/// Shows the name as text. Backslashes, bytes that are not UTF-8, and characters that a terminal would obey are
/// escaped as `\xHH`.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                if char == '\\' || is_control(char) {
                    let mut bytes = [0; 4];
                    for byte in char.encode_utf8(&mut bytes).bytes() {
                        write!(f, "\\x{byte:02x}")?;
                    }
                } else {
                    write!(f, "{char}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            if *byte != b'\\' {
                bytes.push(*byte);
                continue;
            }
            let digits = rest
                .get(1..3)
                .and_then(|digits| std::str::from_utf8(digits).ok());
            let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(value.ok_or_else(|| de::Error::custom("not a name"))?);
            rest = rest.get(3..).unwrap_or_default();
        }
        Ok(Name(bytes))
    }
}
