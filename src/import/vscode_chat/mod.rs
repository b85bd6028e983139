//! VS Code Copilot Chat: `chatSessions/<session>.jsonl` in the folder of a workspace, in older versions `.json`.
//!
//! A `.json` file is the whole state of a session. A `.jsonl` file begins with the state (`kind` 0). Each further line
//! changes it: it sets the value at a path (1), cuts an array and adds elements (2), or deletes the value (3).
//!
//! - The state has a list of `requests`, each with the message of the user and the response. The reader keeps the
//!   places of their parts in the source, and every request that was ever in the list. A request follows the request
//!   that was before it in the list. Requests that were removed or edited stay as a branch.
//! - A request with `shouldBeRemovedOnSend` is hidden, and the next message removes it. The conversation continues
//!   before it.
//! - `result.metadata` has the rounds of the model with their calls, and the results of the calls. If it is missing,
//!   the parts of the response are used, as the user has seen them.
//! - A path or index that does not fit the state changes nothing, and is counted as `bad patch`.
//! - The last response is open. The state or the result of the response is the mark that the response has ended.

mod invocation;
mod map;
mod patch;
mod pieces;
mod reader;
mod request;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};
use super::value::text;
use treelined_core::json;

pub(crate) struct VscodeChat;

impl Format for VscodeChat {
    /// A session that was copied to another workspace has the same id.
    fn has_shared_keys(&self) -> bool {
        false
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::ChatReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}

/// The directory that a `workspace.json` names. A workspace with several folders has a `.code-workspace` file. Its
/// directory is the directory with this file.
pub(crate) fn directory(file: &[u8]) -> Option<String> {
    let [folder, workspace] = json::get_each(file, ["folder", "workspace"]);
    let path = |raw: Option<&[u8]>| {
        let uri = text(raw)?;
        decoded(uri.strip_prefix("file://")?)
    };
    path(folder).or_else(|| {
        let file = path(workspace)?;
        let (folder, _) = file.rsplit_once('/')?;
        (!folder.is_empty()).then(|| folder.to_owned())
    })
}

/// A path with its percent escapes replaced; `None` if it is not UTF-8.
fn decoded(path: &str) -> Option<String> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escape = after.get(..2).filter(|_| *first == b'%');
        let digits = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(out)
        .ok()
        .filter(|path| path.starts_with('/'))
}
