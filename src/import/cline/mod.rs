//! Cline, Roo Code and Kilo Code: a folder for each task, `tasks/<id>/`, below the storage of an editor's extension;
//! and the sessions of Cline's own program, `sessions/<id>/`.
//!
//! A source is one task. The import makes lines from the files of the task (`importer::task_files`): `{"message":{…}}`
//! for each message of the conversation with the model, `{"ui":{…}}` for each message on the screen, and
//! `{"file":…,"row":…}` for the facts about the task. The tools rewrite their files at each turn.
//!
//! - Messages have the form of Anthropic's interface. They are one path, in the order of the file. When the user goes
//!   back, the tool removes messages. At the next import, the messages that replace them become a branch.
//! - The key of a message is its id, else its time, else a hash of its content. So a message keeps its key when earlier
//!   messages are removed.
//! - Older versions write a call as text like `<read_file>`, and a result as a text of the user. Such a call stays in
//!   the text of the answer, and such a result becomes a message of the program.
//! - `<environment_details>` is only in the origin.
//! - Tokens and cost are in the message on the screen that began the request (`api_req_started`), or in `metrics`.

mod map;
mod message;
mod reader;
mod request;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};

pub(crate) struct Cline;

impl Format for Cline {
    fn has_shared_keys(&self) -> bool {
        false
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::TaskReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}
