//! Sessions in folders of small JSON files, as opencode wrote them before it had a database.
//!
//! The folder `storage/` has the sessions in `session/<project>/<session>.json` and the messages in
//! `message/<session>/*.json`. The parts of a message are in `part/<message>/*.json`, or all parts are in
//! `part/*.json`. Each file of a session becomes one line `{"file":"part/<message>/<part>.json","row":{…}}`. First
//! comes the session, then its messages, then their parts, each in the order of names. A file that is not JSON
//! becomes `{"file":…,"text":…}`.

use super::limits::{Limits, too_large};
use super::native::{FaultKind, NativeError, NativeSession};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use treelined_core::json;
use treelined_core::timestamp::Millis;
use treelined_files::os::file::status_of_metadata;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// An opened folder `storage/`.
pub(crate) struct JsonTree {
    root: PathBuf,
    sessions: Vec<NativeSession>,
    /// The file of each session, by the id of the session.
    files: BTreeMap<String, PathBuf>,
    /// The files of `part/*.json`, by the id of their message.
    flat_parts: BTreeMap<String, Vec<PathBuf>>,
}

impl JsonTree {
    pub(crate) fn open(root: &Path) -> Result<Self, NativeError> {
        let mut tree = Self {
            root: root.to_owned(),
            sessions: Vec::new(),
            files: BTreeMap::new(),
            flat_parts: BTreeMap::new(),
        };
        for file in list(&root.join("part"), is_json)? {
            let message = read(&file).ok().and_then(|text| string(&text, "messageID"));
            tree.flat_parts
                .entry(message.unwrap_or_default())
                .or_default()
                .push(file);
        }
        for project in list(&root.join("session"), Metadata::is_dir)? {
            for file in list(&project, is_json)? {
                tree.add(file);
            }
        }
        Ok(tree)
    }

    /// The sessions, in the order of their files.
    pub(crate) fn sessions(&self) -> &[NativeSession] {
        &self.sessions
    }

    /// Writes the files of a session as lines. Fails at a file of more than `most` bytes.
    pub(crate) fn write_session(
        &self,
        id: &str,
        most: u64,
        out: &mut dyn Write,
    ) -> Result<(), NativeError> {
        let Some(session) = self.files.get(id) else {
            return Ok(());
        };
        self.write(session, most, out)?;
        let mut parts = Vec::new();
        for file in self.messages(id)? {
            let message = self.write(&file, most, out)?.or_else(|| stem(&file));
            for folder in message.iter().chain(
                stem(&file)
                    .filter(|stem| message.as_ref() != Some(stem))
                    .iter(),
            ) {
                parts.extend(self.parts(folder)?);
            }
        }
        for file in parts {
            self.write(&file, most, out)?;
        }
        Ok(())
    }

    fn add(&mut self, file: PathBuf) {
        // An unreadable file makes only its own session fail, and only when this session is read.
        let text = read(&file).unwrap_or_default();
        let Some(id) = string(&text, "id").or_else(|| stem(&file)) else {
            return;
        };
        if self.files.contains_key(&id) {
            return;
        }
        let updated = json::get_path(&text, &["time", "updated"]);
        let updated = updated.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<Millis>().ok());
        let messages = self.messages(&id).unwrap_or_default();
        let parts = messages.iter().flat_map(|file| self.parts_of_file(file));
        let all = [file.clone()].into_iter().chain(parts);
        let version = all
            .chain(messages.iter().cloned())
            .fold(0_u64, |sum, file| sum.wrapping_add(self.trace(&file)));
        self.sessions.push(NativeSession {
            id: id.clone(),
            last_activity: updated,
            version,
        });
        self.files.insert(id, file);
    }

    /// The parts of the message in a file. Most files have the id of their message as name; other files are read to
    /// find the id.
    fn parts_of_file(&self, file: &Path) -> Vec<PathBuf> {
        let of = |message: Option<String>| message.and_then(|message| self.parts(&message).ok());
        let named = of(stem(file)).filter(|parts| !parts.is_empty());
        let id = || of(read(file).ok().and_then(|text| string(&text, "id")));
        named.or_else(id).unwrap_or_default()
    }

    /// A hash of a file's name, size and time, which changes whenever the file changes.
    fn trace(&self, file: &Path) -> u64 {
        let name = xxh3_64(self.name(file).as_bytes());
        let content = fs::symlink_metadata(file)
            .map(|data| status_of_metadata(&data))
            .map(|status| {
                [
                    status.size.cast_signed(),
                    status.modified.0,
                    status.modified.1,
                ]
            });
        let content = content.unwrap_or_default().map(i64::to_le_bytes);
        xxh3_64_with_seed(content.as_flattened(), name)
    }

    fn messages(&self, session: &str) -> Result<Vec<PathBuf>, NativeError> {
        match is_name(session) {
            true => list(&self.root.join("message").join(session), is_json),
            false => Ok(Vec::new()),
        }
    }

    fn parts(&self, message: &str) -> Result<Vec<PathBuf>, NativeError> {
        let mut parts = match is_name(message) {
            true => list(&self.root.join("part").join(message), is_json)?,
            false => Vec::new(),
        };
        parts.extend(self.flat_parts.get(message).into_iter().flatten().cloned());
        Ok(parts)
    }

    /// Writes a file as a line. Returns the member `id` of its JSON.
    fn write(
        &self,
        file: &Path,
        most: u64,
        out: &mut dyn Write,
    ) -> Result<Option<String>, NativeError> {
        let text = read_up_to(file, most).map_err(|error| NativeError::io(&error))?;
        let Some(text) = text else {
            let message = too_large(&format!("{} is too long", self.name(file)));
            return Err(NativeError::new(FaultKind::TooLarge, message));
        };
        let mut line = b"{\"file\":".to_vec();
        json::push_string(&mut line, &self.name(file));
        match json::value_span(&text) {
            Ok(span) => {
                line.extend_from_slice(b",\"row\":");
                json::push_one_line(&mut line, text.get(span).unwrap_or_default());
            }
            Err(_) => {
                line.extend_from_slice(b",\"text\":");
                json::push_string(&mut line, &String::from_utf8_lossy(&text));
            }
        }
        line.extend_from_slice(b"}\n");
        out.write_all(&line).map_err(NativeError::Output)?;
        Ok(string(&text, "id"))
    }

    /// The path of a file, relative to `storage/`.
    fn name(&self, file: &Path) -> String {
        file.strip_prefix(&self.root)
            .unwrap_or(file)
            .to_string_lossy()
            .into_owned()
    }
}

/// Whether an id can be the name of one folder.
fn is_name(id: &str) -> bool {
    !id.is_empty() && !id.contains(['/', '\0']) && id != "." && id != ".."
}

fn is_json(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// The folders, or the JSON files, in a folder, ordered by name. `None` if the folder does not exist. Symbolic links
/// are not followed.
fn list(folder: &Path, is_wanted: impl Fn(&Metadata) -> bool) -> Result<Vec<PathBuf>, NativeError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(NativeError::io(&error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| NativeError::io(&error))?;
        let path = entry.path();
        let metadata = entry.metadata().map_err(|error| NativeError::io(&error))?;
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        if is_wanted(&metadata) && (metadata.is_dir() || is_json) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a file; returns no bytes if it is longer than a value may be.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    Ok(read_up_to(file, Limits::default().value)?.unwrap_or_default())
}

/// Reads a file; `None` if it has more than `most` bytes.
fn read_up_to(file: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let (file, mut text) = (fs::File::open(file)?, Vec::new());
    if file.metadata()?.len() > most {
        return Ok(None);
    }
    file.take(most.saturating_add(1)).read_to_end(&mut text)?;
    Ok(Some(text).filter(|text| text.len() as u64 <= most))
}

fn string(object: &[u8], name: &str) -> Option<String> {
    json::get(object, name)
        .and_then(json::string)
        .map(|text| text.into_owned())
}

/// The name of a file without its ending.
fn stem(file: &Path) -> Option<String> {
    Some(file.file_stem()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencode::Opencode;
    use crate::tests::imported;

    fn lines(files: &[(&str, &str)], session: &str) -> (Vec<NativeSession>, String) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let tree = JsonTree::open(folder.path()).unwrap();
        let mut out = Vec::new();
        tree.write_session(session, u64::MAX, &mut out).unwrap();
        (tree.sessions().to_vec(), String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_files_of_a_session_are_lines_in_the_order_of_session_messages_and_parts() {
        let (sessions, lines) = lines(
            &[
                (
                    "session/p/ses_1.json",
                    "{\"id\":\"s\",\n\"time\":{\"updated\":7}}",
                ),
                ("message/s/msg_2.json", r#"{"id":"b"}"#),
                ("message/s/msg_1.json", r#"{"id":"a"}"#),
                ("part/b/1.json", r#"{"type":"text"}"#),
                ("part/a/1.json", "cut {"),
                ("part/0.json", r#"{"messageID":"a"}"#),
                ("message/other/msg.json", r#"{"id":"c"}"#),
            ],
            "s",
        );
        assert_eq!(sessions.len(), 1);
        assert_eq!(sessions[0].last_activity, Some(7));
        let expected = [
            r#"{"file":"session/p/ses_1.json","row":{"id":"s", "time":{"updated":7}}}"#,
            r#"{"file":"message/s/msg_1.json","row":{"id":"a"}}"#,
            r#"{"file":"message/s/msg_2.json","row":{"id":"b"}}"#,
            r#"{"file":"part/a/1.json","text":"cut {"}"#,
            r#"{"file":"part/0.json","row":{"messageID":"a"}}"#,
            r#"{"file":"part/b/1.json","row":{"type":"text"}}"#,
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }

    /// Another program chose the id of the session. The id must not lead out of the folder.
    #[test]
    fn an_id_with_a_path_in_it_leads_nowhere() {
        let (sessions, lines) = lines(
            &[
                ("session/p/1.json", r#"{"id":"../session/p"}"#),
                ("message/x.json", "{}"),
            ],
            "../session/p",
        );
        assert_eq!(sessions.len(), 1);
        assert_eq!(lines.lines().count(), 1);
    }

    /// Both layouts of the folder `storage/` are copies of real files.
    #[test]
    fn folders_of_json_files_are_read_in_both_layouts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import/opencode");
        let session = |layout: &str, id: &str| {
            let tree = JsonTree::open(&root.join(layout)).unwrap();
            let mut lines = Vec::new();
            tree.write_session(id, u64::MAX, &mut lines).unwrap();
            imported(&Opencode, id, &lines).remove(0)
        };
        let legacy = session("storage_legacy", "s_stage0_drift");
        let expected = [
            "0 - user",
            r#"1 0 assistant bash{"command":"cat README.md","cwd":"/tmp/drift"} Read README and extracted the title.…"#,
            "2 1 toolresult # Title\n\nBody…*",
        ];
        assert_eq!(legacy.drawn(), expected.join("\n"));
        let small = session("storage_v2", "s_stage0_small");
        let expected = [
            "0 - user Hello",
            r#"1 0 assistant bash{"command":"ls","cwd":"/tmp/repo"} Found 2 files.…"#,
            "2 1 toolresult a.txt\nb.txt…*",
        ];
        assert_eq!(small.drawn(), expected.join("\n"));
        let large = session("storage_v2", "s_stage0_large");
        let expected = [
            "0 - user Step 1",
            r#"1 0 assistant bash{"command":"ls /non-existent-directory","cwd":"/tmp/large"} Command failed with exit code 1. (Investigating failing command.) !The operation was aborted."#,
            "2 1 toolresult ls: /non-existent-directory: No such file or directory",
            "3 2 user Step 2",
            "4 3 assistant Ok…*",
        ];
        assert_eq!(large.drawn(), expected.join("\n"));
        assert_eq!(large.member.cwd.as_deref(), Some("/tmp/large"));
    }
}
