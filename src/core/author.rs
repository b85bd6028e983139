//! The writer of an entry, as the member `by` of the entry names it (session-file.md §1.4).

use crate::json;
use crate::name;
use memchr::memmem;
use std::borrow::Cow;
use std::sync::Arc;

/// The longest name of a user or of a machine, in characters.
pub const MOST_CHARS: usize = 64;
/// The member of an entry that names its writer.
const MEMBER: &str = "by";

/// The user, the machine and the daemon that append an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub name: String,
    pub host: String,
    /// The id of the run of the daemon.
    pub daemon: String,
}

impl Author {
    pub fn new(name: &str, host: &str, daemon: String) -> Self {
        Self {
            name: short(name),
            host: short(host),
            daemon,
        }
    }

    /// The writer that an entry names. `None` if the entry has no `by`, or if `by` has another form.
    pub fn of(entry: &[u8]) -> Option<Self> {
        // Most entries are long and have no such member, so they are not parsed.
        memmem::find(entry, b"\"by\"")?;
        let by = json::get(entry, MEMBER)?;
        let texts = json::get_each(by, ["name", "host", "daemon"]);
        let [name, host, daemon] = texts.map(|raw| raw.and_then(json::string));
        Some(Self::new(&name?, &host?, short(&daemon?)))
    }
}

/// The name of a user or of a machine on one line, cut if it is too long.
pub fn short(text: &str) -> String {
    name::normalized(text).chars().take(MOST_CHARS).collect()
}

/// The entry without the member `by`, if this member names a writer. A `by` in any other form stays.
pub fn without(entry: &[u8]) -> Cow<'_, [u8]> {
    match Author::of(entry) {
        Some(_) => Cow::Owned(json::without_member(entry, MEMBER)),
        None => Cow::Borrowed(entry),
    }
}

/// The member `by` of one writer, which is added to lines.
#[derive(Debug, Clone)]
pub struct Signature(Arc<[u8]>);

impl Signature {
    pub fn of(author: &Author) -> Self {
        let mut member = b",\"by\":{\"name\":".to_vec();
        json::push_string(&mut member, &author.name);
        member.extend_from_slice(b",\"host\":");
        json::push_string(&mut member, &author.host);
        member.extend_from_slice(b",\"daemon\":");
        json::push_string(&mut member, &author.daemon);
        member.extend_from_slice(b"}}");
        Self(member.into())
    }

    /// Adds the writer to the line of an entry. A line that has the member already keeps it.
    pub fn sign(&self, line: &mut Vec<u8>) {
        if json::get(line, MEMBER).is_some() {
            return;
        }
        let object = line.trim_ascii_end().strip_suffix(b"}");
        let end = object.map(<[u8]>::len);
        debug_assert!(end.is_some(), "a line is an object");
        if let Some(end) = end {
            line.truncate(end);
            line.extend_from_slice(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        r#"{"type":"custom","id":"a","parentId":null,"timestamp":"t","customType":"x"}"#;

    fn signed(author: &Author, line: &str) -> String {
        let mut line = line.as_bytes().to_vec();
        Signature::of(author).sign(&mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_signed_line_names_its_writer_and_is_the_same_without_it() {
        let ada = Author::new("ada", "laptop", "d1".to_owned());
        let line = signed(&ada, ENTRY);
        let expected = r#","customType":"x","by":{"name":"ada","host":"laptop","daemon":"d1"}}"#;
        assert!(line.ends_with(expected), "{line}");
        assert_eq!(Author::of(line.as_bytes()), Some(ada.clone()));
        assert_eq!(&*without(line.as_bytes()), ENTRY.as_bytes());
        assert_eq!(signed(&ada, &format!("{ENTRY} ")), line);
        let bea = Author::new("bea", "build-7", "d2".to_owned());
        assert_eq!(signed(&bea, &line), line, "a line is signed once");
    }

    #[test]
    fn names_are_short_lines_that_are_read_as_they_were_written() {
        let long = "\u{10ffff}\"".repeat(1000);
        for name in ["a\u{1b}[2J\nb\u{202e}", "\"\\", " ", &long] {
            let author = Author::new(name, name, "d".to_owned());
            assert!(!author.name.contains(crate::terminal::is_control));
            assert!(author.name.chars().count() <= MOST_CHARS);
            let line = signed(&author, ENTRY);
            assert!(line.len() < ENTRY.len() + 1024);
            assert_eq!(Author::of(line.as_bytes()), Some(author));
        }
    }

    #[test]
    fn members_of_other_programs_stay() {
        let ada = Author::new("ada", "laptop", "d1".to_owned());
        for by in [
            "\"someone\"",
            "null",
            "{\"name\":\"x\"}",
            "{\"name\":1,\"host\":\"h\",\"daemon\":\"d\"}",
        ] {
            let line = ENTRY.replace("\"customType\"", &format!("\"by\":{by},\"customType\""));
            assert_eq!(Author::of(line.as_bytes()), None, "{by}");
            assert_eq!(&*without(line.as_bytes()), line.as_bytes());
            assert_eq!(signed(&ada, &line), line);
        }
        assert_eq!(Author::of(b"not JSON"), None);
    }
}
