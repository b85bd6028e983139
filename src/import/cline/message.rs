//! Reads the blocks of messages, and separates the words of the user from the texts of the program.

use crate::message::elements;
use crate::value::{is_blank, literal, text};
use memchr::memmem;
use treelined_core::json;

/// The tags around the words of the user.
const WORDS: [&str; 5] = ["task", "user_message", "feedback", "answer", "user_input"];
/// The beginnings of texts of the program.
const OF_PROGRAM: [&[u8]; 6] = [
    b"[ERROR]",
    b"[NOTE]",
    b"[TASK RESUMPTION]",
    b"<explicit_instructions",
    b"<file_content",
    b"<mode_notice>",
];
/// The beginning of a text about the editor and the folder.
const ENVIRONMENT: &[u8] = b"<environment_details>";
/// The most bytes in the head of a result, such as `[read_file for 'a.rs'] Result:`.
const HEAD: usize = 512;

/// A block of a message. All members are raw.
#[derive(Debug, Clone, Copy)]
pub(super) enum Block<'a> {
    Text(&'a [u8]),
    Thought {
        said: &'a [u8],
        signature: Option<&'a [u8]>,
    },
    /// A thought that only its provider can read.
    Hidden(&'a [u8]),
    Image {
        data: &'a [u8],
        mime: &'a [u8],
    },
    Call {
        id: Option<&'a [u8]>,
        name: Option<&'a [u8]>,
        input: Option<&'a [u8]>,
    },
    Result,
    /// A value without a type.
    Plain(&'a [u8]),
    /// A block of an unknown type.
    Other(&'a [u8]),
}

/// The blocks of a message, in order. Blank texts are left out.
pub(super) fn blocks(message: &[u8]) -> impl Iterator<Item = Block<'_>> {
    let names = [
        "content",
        "reasoning_content",
        "type",
        "text",
        "encrypted_content",
    ];
    let [content, thought, kind, said, hidden] = json::get_each(message, names);
    let thought = words(thought).map(|said| Block::Thought {
        said,
        signature: None,
    });
    let single = words(content).map(Block::Text);
    // Roo Code writes a thought without an answer as a message of the type `reasoning`.
    let is_thought = text(kind).as_deref() == Some("reasoning");
    let said = words(said).filter(|_| is_thought);
    let said = said.map(|said| Block::Thought {
        said,
        signature: None,
    });
    let hidden = literal(hidden).filter(|_| is_thought).map(Block::Hidden);
    let content = content.into_iter().flat_map(elements).filter_map(block);
    let first = thought.into_iter().chain(said).chain(hidden).chain(single);
    first.chain(content)
}

/// The text, unless it is blank.
fn words(raw: Option<&[u8]>) -> Option<&[u8]> {
    literal(raw).filter(|raw| !is_blank(raw))
}

/// The block, unless it is blank or lacks its content.
pub(super) fn block(raw: &[u8]) -> Option<Block<'_>> {
    let names = ["type", "text", "thinking", "signature", "data"];
    let [kind, said, thought, signature, data] = json::get_each(raw, names);
    Some(match text(kind).as_deref() {
        Some("text") => Block::Text(words(said)?),
        Some("thinking") => Block::Thought {
            said: words(thought)?,
            signature: literal(signature),
        },
        Some("reasoning") => Block::Thought {
            said: words(said)?,
            signature: None,
        },
        Some("redacted_thinking") => Block::Hidden(literal(data)?),
        Some("tool_use") => {
            let [id, name, input] = json::get_each(raw, ["id", "name", "input"]);
            Block::Call { id, name, input }
        }
        Some("tool_result") => Block::Result,
        Some("image") => return image(raw),
        // Entries use this type for blocks of another form.
        Some("toolCall") => return None,
        Some(_) => Block::Other(raw),
        None => Block::Plain(raw),
    })
}

fn image(raw: &[u8]) -> Option<Block<'_>> {
    let [source, data, mime] = json::get_each(raw, ["source", "data", "mediaType"]);
    let [inner, media] = json::get_each(source.unwrap_or(b"{}"), ["data", "media_type"]);
    Some(Block::Image {
        data: literal(inner.or(data))?,
        mime: literal(media.or(mime))?,
    })
}

/// A text of a message of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// The words of the user, without the quotes of the literal.
    User(&'a [u8]),
    /// A text of the program, as a literal.
    Program(&'a [u8]),
}

/// Separates the words of the user from the texts of the program in a message. The texts after the head of a result
/// belong to the result.
#[derive(Debug, Default)]
pub(super) struct Listener {
    is_in_result: bool,
}

impl Listener {
    /// Returns the text of the program and the words of the user that a text has.
    pub(super) fn hear<'a>(&mut self, literal: &'a [u8]) -> [Option<Said<'a>>; 2] {
        let inner = inside(literal);
        if inner.starts_with(ENVIRONMENT) {
            return [None, None];
        }
        let head = inner.get(..inner.len().min(HEAD)).unwrap_or_default();
        self.is_in_result |= inner.starts_with(b"[") && memmem::find(head, b"] Result:").is_some();
        let found = WORDS.iter().find_map(|tag| tagged(inner, tag));
        if let Some((before, words, after)) = found {
            let is_alone = is_space(before) && is_space(after);
            let program = (!is_alone).then_some(Said::Program(literal));
            return [
                program,
                Some(Said::User(words)).filter(|_| !is_space(words)),
            ];
        }
        let is_of_program = OF_PROGRAM.iter().any(|begin| inner.starts_with(begin));
        match self.is_in_result || is_of_program {
            true => [Some(Said::Program(literal)), None],
            false => [None, Some(Said::User(inner))],
        }
    }
}

/// The text before a tag, the text between the tag and its end tag, and the text after the end tag. The search works on
/// the escaped bytes of a JSON string, because the characters `<` and `>` of tags are never escaped.
fn tagged<'a>(inner: &'a [u8], tag: &str) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    let at = memmem::find(inner, format!("<{tag}").as_bytes())?;
    let (before, rest) = inner.split_at_checked(at)?;
    let attributes = rest.get(tag.len() + 1..)?;
    // Only `<user_input mode="act">` has an attribute.
    if !matches!(attributes.first(), Some(b'>' | b' ')) {
        return None;
    }
    let begin = memchr::memchr(b'>', attributes)? + 1;
    let rest = attributes.get(begin..)?;
    let close = format!("</{tag}>");
    let end = memmem::rfind(rest, close.as_bytes())?;
    let after = rest.get(end + close.len()..)?;
    Some((before, trimmed(rest.get(..end)?), after))
}

/// The text without line breaks and spaces at its ends.
fn trimmed(mut inner: &[u8]) -> &[u8] {
    while let Some(rest) = inner
        .strip_prefix(b"\\n")
        .or_else(|| inner.strip_prefix(b" "))
    {
        inner = rest;
    }
    loop {
        let shorter = match inner {
            [rest @ .., b' '] => rest,
            // The `n` after an escaped backslash is a letter.
            [rest @ .., b'\\', b'n'] if backslashes(rest).is_multiple_of(2) => rest,
            _ => return inner,
        };
        inner = shorter;
    }
}

fn backslashes(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
}

fn is_space(inner: &[u8]) -> bool {
    trimmed(inner).is_empty()
}

/// The bytes of a literal without its quotes.
fn inside(literal: &[u8]) -> &[u8] {
    literal
        .get(1..literal.len().saturating_sub(1))
        .unwrap_or_default()
}

/// The facts in the text about the environment: the folder and the model.
pub(super) fn environment(message: &[u8]) -> [Option<String>; 2] {
    let mut found = [None, None];
    for block in blocks(message) {
        let Block::Text(literal) = block else {
            continue;
        };
        let inner = inside(literal);
        if !inner.starts_with(ENVIRONMENT) {
            continue;
        }
        let folder = between(inner, b"# Current Working Directory (", b")")
            .or_else(|| between(inner, b"# Current Workspace Directory (", b")"));
        let model = between(inner, b"<model>", b"</model>");
        for (slot, value) in found.iter_mut().zip([folder, model]) {
            *slot = value.or(slot.take());
        }
    }
    found
}

fn between(inner: &[u8], begin: &[u8], end: &[u8]) -> Option<String> {
    let at = memmem::find(inner, begin)? + begin.len();
    let rest = inner.get(at..)?;
    let found = rest.get(..memmem::find(rest, end)?)?;
    let found = text(Some(&[b"\"", found, b"\""].concat()))?.into_owned();
    let is_name = !found.is_empty() && found.len() <= 4096 && !found.contains('\n');
    is_name.then_some(found)
}
