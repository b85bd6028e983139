//! Reads only the names in a line of the ledger.

use super::line::tool_of;
use std::borrow::Cow;
use treelined_core::agent::Tool;
use treelined_core::json::{self, Elements, Members};

/// The names in a line.
pub(super) enum Head<'a> {
    /// The name of a source, and its native sessions, each with its session.
    Source(Tool, Cow<'a, str>, Vec<(Cow<'a, str>, Cow<'a, str>)>),
    Database(Tool, Cow<'a, str>),
    Session(Tool, Cow<'a, str>),
    /// A native session and its session.
    Placement(Tool, Cow<'a, str>, Cow<'a, str>),
}

/// The members of a line that have names.
#[derive(Default)]
struct Parts<'a> {
    kind: Option<&'a [u8]>,
    tool: Option<&'a [u8]>,
    source: Option<&'a [u8]>,
    natives: Option<&'a [u8]>,
    targets: Option<&'a [u8]>,
    session: Option<&'a [u8]>,
    native: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    /// Reads a line. `None` if it is torn or was written by a newer program. The members after the last name are not
    /// read; they are the greater part of a line.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        if line.last() != Some(&b'}') {
            return None;
        }
        let mut parts = Parts::default();
        let mut members = Members::open(line, 0).ok()?;
        while let Some(member) = members.next_member().ok()? {
            let value = line.get(member.value.clone());
            let place = match &*member.name(line) {
                b"type" => &mut parts.kind,
                b"tool" => &mut parts.tool,
                b"source" => &mut parts.source,
                b"natives" => &mut parts.natives,
                b"targets" => &mut parts.targets,
                b"session" => &mut parts.session,
                b"native" => &mut parts.native,
                _ => continue,
            };
            *place = value;
            if let Some(head) = parts.head() {
                return Some(head);
            }
        }
        None
    }
}

impl<'a> Parts<'a> {
    /// The names; `None` as long as one of them is missing.
    fn head(&self) -> Option<Head<'a>> {
        let tool = tool_of(&json::string(self.tool?)?)?;
        Some(match self.kind? {
            b"\"source\"" => {
                let (natives, targets) = (strings(self.natives?)?, strings(self.targets?)?);
                let placed = natives.into_iter().zip(targets).collect();
                Head::Source(tool, json::string(self.source?)?, placed)
            }
            b"\"database\"" => Head::Database(tool, json::string(self.source?)?),
            b"\"session\"" => Head::Session(tool, json::string(self.session?)?),
            b"\"placed\"" => {
                let (native, session) = (json::string(self.native?)?, json::string(self.session?)?);
                Head::Placement(tool, native, session)
            }
            _ => return None,
        })
    }
}

fn strings(array: &[u8]) -> Option<Vec<Cow<'_, str>>> {
    let mut elements = Elements::open(array, 0).ok()?;
    let mut strings = Vec::new();
    while let Some(value) = elements.next_value().ok()? {
        strings.push(json::string(array.get(value)?)?);
    }
    Some(strings)
}
