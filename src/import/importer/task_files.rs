//! The files of a task of Cline, Roo Code or Kilo Code, as lines.
//!
//! A task has the folder `tasks/<id>/` with the file `api_conversation_history.json`, a JSON array; a session of
//! Cline's own program has `sessions/<id>/<id>.messages.json`, an object with an array. This file is the source. Each
//! element becomes a line `{"message":…}`. The lines of other files follow: `{"ui":…}` for each message on the screen,
//! and `{"file":name,"row":…}` for a file with facts. The part of a file that is not JSON becomes
//! `{"file":…,"text":…}`.

use super::limits::{TOO_LARGE, too_large};
use super::source::facts::{Extraction, Parts, ScanFailure, SourceFailure};
use super::source::regular;
use hashbrown::HashMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use treelined_core::agent::Tool;
use treelined_core::error::Error;
use treelined_core::json::{self, Elements, Span};
use treelined_files::lock::lock;
use treelined_files::os::file::Status;

/// The name of the file with the conversation of a task.
pub(super) const HISTORY: &str = "api_conversation_history.json";
/// The ending of the file with the messages of a session of Cline's program.
pub(super) const MESSAGES: &str = ".messages.json";
const SCREEN: &str = "ui_messages.json";
/// The files of a task with facts about it.
const FACTS: [&str; 3] = [
    "history_item.json",
    "task_metadata.json",
    "context_history.json",
];
/// The list of all tasks, from the folder of a task.
const LIST: &str = "../../state/taskHistory.json";

/// Makes the lines of the tasks of one tool.
pub(super) struct TaskFiles {
    tool: Tool,
    /// The list of tasks that was read last. Tasks are mostly read one after the other.
    list: Mutex<Option<Arc<TaskList>>>,
}

/// The list of all tasks of a folder.
struct TaskList {
    path: PathBuf,
    status: Status,
    text: Vec<u8>,
    tasks: HashMap<String, Span>,
}

impl TaskFiles {
    pub(super) const fn of(tool: Tool) -> Self {
        Self {
            tool,
            list: Mutex::new(None),
        }
    }

    pub(super) fn close(&self) {
        *lock(&self.list) = None;
    }

    fn list(&self, path: PathBuf, most: u64) -> io::Result<Arc<TaskList>> {
        let (file, status) = regular::open(&path)?;
        let mut last = lock(&self.list);
        if let Some(list) = last
            .as_ref()
            .filter(|list| list.path == path && list.status == status)
        {
            return Ok(Arc::clone(list));
        }
        let mut text = Vec::new();
        file.take(most).read_to_end(&mut text)?;
        let mut tasks = HashMap::new();
        let _torn = each_element::<io::Error>(&text, &mut |span| {
            let id = json::get(text.get(span.clone()).unwrap_or_default(), "id");
            if let Some(id) = id.and_then(json::string) {
                tasks.insert(id.into_owned(), span);
            }
            Ok(())
        })?;
        let list = Arc::new(TaskList {
            path,
            status,
            text,
            tasks,
        });
        *last = Some(Arc::clone(&list));
        Ok(list)
    }

    fn lines(&self, path: &Path, most: u64, out: &mut dyn Write) -> Result<(), Failure> {
        let folder = path.parent().unwrap_or(path);
        let mut lines = Lines { out, most };
        let name = name(path);
        if let Some(stem) = name.strip_suffix(MESSAGES) {
            lines.session(path, &name)?;
            for ending in ["json", "compaction.json"] {
                lines.facts(folder, &format!("{stem}.{ending}"))?;
            }
            return Ok(());
        }
        lines.array(path, &name, "message")?;
        let screen = folder.join(SCREEN);
        match lines.array(&screen, SCREEN, "ui") {
            Err(Failure::Source(error)) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        for name in FACTS {
            lines.facts(folder, name)?;
        }
        let id = folder.file_name().unwrap_or_default().to_string_lossy();
        let list = self.list(folder.join(LIST), most).ok();
        let task = list.as_ref().and_then(|list| {
            let span = list.tasks.get(&*id)?;
            list.text.get(span.clone())
        });
        match task {
            Some(task) => lines.line(&[b"{\"file\":\"taskHistory.json\",\"row\":"], task),
            None => Ok(()),
        }
    }
}

impl Extraction for TaskFiles {
    fn parts(&self, _path: &Path) -> Result<Parts, SourceFailure> {
        // Each task is a separate source.
        Ok(Parts::default())
    }

    fn write(
        &self,
        path: &Path,
        _part: &str,
        most: u64,
        out: &mut dyn Write,
    ) -> Result<(), ScanFailure> {
        self.lines(path, most, out)
            .map_err(|failure| match failure {
                Failure::Output(error) => ScanFailure::Import(Error::io("keep a session", &error)),
                Failure::Source(error) => SourceFailure::io(Some(self.tool), path, &error).into(),
                Failure::TooLarge(name) => ScanFailure::Source(SourceFailure {
                    tool: Some(self.tool),
                    path: path.to_owned(),
                    kind: TOO_LARGE,
                    message: too_large(&format!("{name} is too long")),
                }),
            })
    }
}

/// The reason why the lines of a task cannot be written.
enum Failure {
    Source(io::Error),
    TooLarge(String),
    Output(io::Error),
}

struct Lines<'o> {
    out: &'o mut dyn Write,
    /// The most bytes of a file.
    most: u64,
}

impl Lines<'_> {
    /// Writes a line: its beginning, a value, and a closing brace.
    fn line(&mut self, beginning: &[&[u8]], value: &[u8]) -> Result<(), Failure> {
        let mut line = beginning.concat();
        json::push_one_line(&mut line, value);
        line.extend_from_slice(b"}\n");
        self.out.write_all(&line).map_err(Failure::Output)
    }

    /// Writes the elements of the array in a file, each as a member of this name.
    fn array(&mut self, path: &Path, file: &str, member: &str) -> Result<(), Failure> {
        let text = self.read(path, file)?;
        self.elements(&text, file, member)
    }

    fn elements(&mut self, text: &[u8], file: &str, member: &str) -> Result<(), Failure> {
        let beginning = format!("{{\"{member}\":");
        let rest = each_element(text, &mut |span| {
            let element = text.get(span).unwrap_or_default();
            self.line(&[beginning.as_bytes()], element)
        })?;
        match rest {
            Some(rest) => self.text(file, text.get(rest..).unwrap_or_default()),
            None => Ok(()),
        }
    }

    /// Writes the messages of a session, and then its other members.
    fn session(&mut self, path: &Path, file: &str) -> Result<(), Failure> {
        let text = self.read(path, file)?;
        let object = json::value_span(&text).ok().and_then(|span| text.get(span));
        let Some(object) = object.filter(|object| object.starts_with(b"{")) else {
            return self.text(file, &text);
        };
        if let Some(messages) = json::get(object, "messages") {
            self.elements(messages, file, "message")?;
        }
        self.line(
            &[b"{\"session\":"],
            &json::without_member(object, "messages"),
        )
    }

    /// Writes a file with facts, if it is there.
    fn facts(&mut self, folder: &Path, file: &str) -> Result<(), Failure> {
        let text = match self.read(&folder.join(file), file) {
            Err(Failure::Source(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        match json::value_span(&text).ok().and_then(|span| text.get(span)) {
            Some(value) => {
                let name = json::quoted(file);
                self.line(&[b"{\"file\":", &name, b",\"row\":"], value)
            }
            None => self.text(file, &text),
        }
    }

    /// Writes a part of a file that is not JSON.
    fn text(&mut self, file: &str, text: &[u8]) -> Result<(), Failure> {
        let (name, text) = (
            json::quoted(file),
            json::quoted(&String::from_utf8_lossy(text)),
        );
        self.line(&[b"{\"file\":", &name, b",\"text\":"], &text)
    }

    fn read(&self, path: &Path, file: &str) -> Result<Vec<u8>, Failure> {
        let (opened, status) = regular::open(path).map_err(Failure::Source)?;
        let mut text = Vec::new();
        let most = self.most.saturating_add(1);
        if status.size <= self.most {
            opened
                .take(most)
                .read_to_end(&mut text)
                .map_err(Failure::Source)?;
        }
        match status.size > self.most || text.len() as u64 > self.most {
            true => Err(Failure::TooLarge(file.to_owned())),
            false => Ok(text),
        }
    }
}

/// Passes each element of an array to `take`. Returns the position from which the array is not JSON.
fn each_element<E>(
    text: &[u8],
    take: &mut dyn FnMut(Span) -> Result<(), E>,
) -> Result<Option<usize>, E> {
    let start = json::skip_space(text, 0);
    let Ok(mut elements) = Elements::open(text, start) else {
        return Ok(Some(start).filter(|start| *start < text.len()));
    };
    let mut end = start;
    loop {
        match elements.next_value() {
            Ok(Some(span)) => {
                end = span.end;
                take(span)?;
            }
            Ok(None) => return Ok(None),
            Err(_) => return Ok(Some(end)),
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
