//! Adds pieces to the configuration of Codex, and removes them. The parser only gives the positions at which text is
//! inserted. An editor that writes the whole document would change its line ends.

use crate::json::Presence;
use crate::refusal::Refusal;
use serde_json::{Value, json};
use toml_edit::{Document, Item, Table};

const NOTIFY: &str = "notify";
const SERVERS: &str = "mcp_servers";
const BOM: char = '\u{feff}';

/// The pieces in the configuration of Codex.
pub(crate) struct Codex {
    /// The program that Codex starts at the end of a turn, with its arguments.
    pub(crate) notify: Vec<String>,
    /// The name of the MCP server.
    pub(crate) server: String,
    /// The program of the server, and its arguments.
    pub(crate) command: (String, Vec<String>),
    /// Whether a program in `notify`, with its arguments, was written by an earlier setup.
    pub(crate) is_our_line: fn(&str, &[String]) -> bool,
    /// Whether a server, with its arguments, was written by an earlier setup.
    pub(crate) is_our_server: fn(&str, &[String]) -> bool,
}

impl Codex {
    /// The line of `notify`.
    fn notify_line(&self) -> String {
        format!("{NOTIFY} = {}", list(&self.notify))
    }

    /// The first line of the server.
    pub(crate) fn header(&self) -> String {
        format!("[{SERVERS}.{}]", self.server)
    }

    /// The lines of the server.
    fn server_lines(&self) -> String {
        let (program, arguments) = &self.command;
        let (program, arguments) = (string(program), list(arguments));
        let header = self.header();
        format!("{header}\ncommand = {program}\nargs = {arguments}")
    }

    /// All lines, for a person who adds them.
    pub(crate) fn lines(&self) -> String {
        format!("{}\n\n{}\n", self.notify_line(), self.server_lines())
    }

    pub(crate) fn presence(&self, text: &str) -> Result<Presence, Refusal> {
        let value = value(without_bom(text).1)?;
        let notify = value.get(NOTIFY).map(|found| match words(found) {
            Some(words) if words == self.notify => Presence::Same,
            Some(words) if self.is_our_line(&words) => Presence::Older,
            _ => Presence::Theirs,
        });
        let server = value.pointer(&format!("/{SERVERS}/{}", self.server));
        let server = server.map(|found| match *found == self.server_value() {
            true => Presence::Same,
            false if self.is_our_server(found) => Presence::Older,
            false => Presence::Theirs,
        });
        use Presence::{Missing, Older, Same, Theirs};
        Ok(match (notify, server) {
            (Some(Same | Theirs), Some(Same | Theirs)) => Same,
            // One of the two pieces is old or missing. Both are written again.
            (Some(Older | Same), _) | (_, Some(Older | Same)) => Older,
            _ => Missing,
        })
    }

    /// Whether Codex starts a program of another tool at the end of a turn. Codex can have only one such program.
    pub(crate) fn has_another_notify(&self, text: &str) -> bool {
        let value = value(without_bom(text).1).unwrap_or_default();
        let is_ours = |found| words(found).is_some_and(|words| self.is_our_line(&words));
        value.get(NOTIFY).is_some_and(|found| !is_ours(found))
    }

    /// Whether the text can be parsed and has a server of this name.
    pub(crate) fn has_server(&self, text: &str) -> bool {
        let value = value(without_bom(text).1).unwrap_or_default();
        let servers = value.get(SERVERS);
        servers.is_some_and(|servers| servers.get(&self.server).is_some())
    }

    /// The text with the missing pieces added.
    pub(crate) fn add(&self, text: &str) -> Result<String, Refusal> {
        let (bom, text) = without_bom(text);
        let mut expected = value(text)?;
        let (mut new, newline) = (text.to_owned(), newline_of(text));
        if expected.get(NOTIFY).is_none() {
            let at = end_of_root(text)?;
            let line = lines_at(&new, at, &self.notify_line(), newline);
            new.insert_str(at, &line);
            insert(&mut expected, NOTIFY, json!(self.notify))?;
        }
        let servers = expected.get(SERVERS).cloned().unwrap_or_else(|| json!({}));
        if servers.get(&self.server).is_none() {
            let is_blank = new.trim().is_empty();
            let before = match (is_blank, new.ends_with('\n')) {
                (true, _) => "",
                (false, true) => newline,
                (false, false) => &format!("{newline}{newline}"),
            };
            new.push_str(before);
            new.push_str(&self.server_lines().replace('\n', newline));
            new.push_str(newline);
            let mut servers = servers;
            insert(&mut servers, &self.server, self.server_value())?;
            insert(&mut expected, SERVERS, servers)?;
        }
        Ok(format!("{bom}{}", checked(new, &expected)?))
    }

    /// The text without the pieces of treelined.
    pub(crate) fn remove(&self, text: &str) -> Result<String, Refusal> {
        let (bom, text) = without_bom(text);
        let mut expected = value(text)?;
        let mut new = text.to_owned();
        let notify = expected.get(NOTIFY).and_then(words);
        if notify.is_some_and(|words| self.is_our_line(&words)) {
            let document = parsed(text)?;
            let span = document
                .get_key_value(NOTIFY)
                .and_then(|(key, item)| Some(key.span()?.start..item.span()?.end));
            let span = span.ok_or_else(unclear)?;
            let start = text
                .get(..span.start)
                .and_then(|it| it.rfind('\n'))
                .map_or(0, |at| at + 1);
            new.replace_range(start..end_of_ours(text, span.end), "");
            remove_member(&mut expected, NOTIFY);
        }
        let server = expected.pointer(&format!("/{SERVERS}/{}", self.server));
        if server.is_some_and(|found| self.is_our_server(found)) {
            new = without_table(&new, &self.header()).ok_or_else(unclear)?;
            if let Some(servers) = expected.get_mut(SERVERS) {
                remove_member(servers, &self.server);
                let is_empty = servers.as_object().is_some_and(serde_json::Map::is_empty);
                // A table with its own header stays, even if it is empty.
                if is_empty && value(&new)?.get(SERVERS).is_none() {
                    remove_member(&mut expected, SERVERS);
                }
            }
        }
        Ok(format!("{bom}{}", checked(new, &expected)?))
    }

    fn server_value(&self) -> Value {
        let (program, arguments) = &self.command;
        json!({"command": program, "args": arguments})
    }

    fn is_our_line(&self, words: &[String]) -> bool {
        let split = words.split_first();
        let is_earlier =
            |(program, arguments): (&String, &[String])| (self.is_our_line)(program, arguments);
        words == self.notify || split.is_some_and(is_earlier)
    }

    fn is_our_server(&self, found: &Value) -> bool {
        let members = found.as_object().map_or(0, serde_json::Map::len);
        let program = found.get("command").and_then(Value::as_str);
        let arguments = found.get("args").and_then(words).unwrap_or_default();
        let is_earlier = |program| (self.is_our_server)(program, &arguments);
        *found == self.server_value() || members == 2 && program.is_some_and(is_earlier)
    }
}

/// The text without a table: without its header and the lines that setup writes into it. Comments after them stay.
fn without_table(text: &str, header: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = lines.iter().position(|line| {
        let rest = line.trim().strip_prefix(header).map(str::trim_start);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    })?;
    let is_ours = |line: &&&str| {
        ["command", "args"]
            .iter()
            .any(|key| line.trim_start().starts_with(key))
    };
    let count = lines.iter().skip(first + 1).take_while(is_ours).count();
    let is_blank = |at: usize| lines.get(at).is_some_and(|line| line.trim().is_empty());
    // Setup also added the blank line before the table.
    let before = first
        .checked_sub(1)
        .filter(|at| is_blank(*at))
        .unwrap_or(first);
    let after = first + 1 + count;
    let mut kept = lines.get(..before)?.concat();
    let line = lines.get(first)?;
    kept.push_str(line.get(end_of_ours(line, line.find(header)? + header.len())..)?);
    for line in lines.get(first + 1..after)? {
        let line_alone = parsed(line).ok()?;
        let end = last_end(&line_alone)?;
        kept.push_str(line.get(end_of_ours(line, end)..)?);
    }
    kept.extend(lines.get(after..)?.iter().copied());
    Some(kept)
}

/// The end of a line whose last value ends at `at`: the start of a comment after the value, or of the next line.
fn end_of_ours(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let comment = rest.trim_start_matches([' ', '\t']);
    match comment.starts_with('#') {
        true => text.len() - comment.len(),
        false => line_end(text, at),
    }
}

/// The end of the last line of top-level keys, before the first table; the beginning of the text if there are no such
/// keys.
fn end_of_root(text: &str) -> Result<usize, Refusal> {
    let document = parsed(text)?;
    Ok(last_end(&document).map_or(0, |end| line_end(text, end)))
}

/// The end of the last value in a table that is before all headers.
fn last_end(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(inner) if inner.is_dotted() => last_end(inner),
        _ => None,
    });
    ends.max()
}

/// The beginning of the next line.
fn line_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |line| at + line + 1)
}

/// A line, with the line ends that it needs to be inserted at `at`.
fn lines_at(text: &str, at: usize, line: &str, newline: &str) -> String {
    let before = text.get(..at).unwrap_or_default();
    match before.is_empty() || before.ends_with('\n') {
        true => format!("{line}{newline}"),
        false => format!("{newline}{line}{newline}"),
    }
}

/// The byte order mark at the beginning of a text, if there is one, and the rest.
fn without_bom(text: &str) -> (&str, &str) {
    match text.strip_prefix(BOM) {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    }
}

fn newline_of(text: &str) -> &'static str {
    match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

fn parsed(text: &str) -> Result<Document<&str>, Refusal> {
    Document::parse(text).map_err(|error| {
        let reason = error.message().to_owned();
        Refusal::new(format!("it cannot be parsed: {reason}"))
    })
}

fn value(text: &str) -> Result<Value, Refusal> {
    toml_edit::de::from_str(text).map_err(|error| {
        let reason = error.message().to_owned();
        Refusal::new(format!("it cannot be parsed: {reason}"))
    })
}

fn checked(new: String, expected: &Value) -> Result<String, Refusal> {
    match value(&new)? == *expected {
        true => Ok(new),
        false => Err(unclear()),
    }
}

fn unclear() -> Refusal {
    Refusal::new("it is arranged in a way that cannot be changed safely")
}

fn insert(object: &mut Value, name: &str, value: Value) -> Result<(), Refusal> {
    let object = object.as_object_mut().ok_or_else(unclear)?;
    object.insert(name.to_owned(), value);
    Ok(())
}

fn remove_member(object: &mut Value, name: &str) {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove(name);
    }
}

/// The strings of a list.
fn words(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

fn string(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| string(word)).collect();
    format!("[{}]", words.join(", "))
}
