//! Sessions that an older program has imported. `tests/data/import/former` has what that program wrote.
//!
//! If a new mapper changed the entry of such a record, each of these sessions would get a branch as soon as its
//! source grows, because the new entries would be siblings of the old ones. So records that an import has read keep
//! the mapping of that time.

use super::*;
use sha2::{Digest, Sha256};

/// The folder in which the older program had the sources.
const ROOT: &str = "/tmp/former";

/// A session directory of the older program with its source, copied to a folder of the test.
struct Former {
    home: Home,
    source: PathBuf,
    /// The records that the tool writes later.
    rest: String,
}

impl Former {
    fn new(tool: Tool, source: &str) -> Self {
        let data = fixture("former").join(tool.name());
        let home = Home::new(tool);
        let moved = Moved {
            from: format!("{ROOT}/{}", tool.name()),
            to: home.root.path().to_str().unwrap().to_owned(),
            key: |root| format!("{root}/files/{source}"),
            tool,
        };
        moved.copy(&data.join("files"), &home.root.path().join("files"));
        moved.copy(&data.join("sessions"), &home.sessions());
        Self {
            source: home.root.path().join("files").join(source),
            rest: fs::read_to_string(data.join("rest.jsonl")).unwrap(),
            home,
        }
    }

    fn append(&self, text: &str) {
        let before = fs::read_to_string(&self.source).unwrap();
        fs::write(&self.source, before + text).unwrap();
    }

    /// Imports, and checks that the only session has no branch. Returns the number of added entries, and the path.
    #[track_caller]
    fn import(&self) -> (u64, Vec<String>) {
        let imported = self.home.import();
        assert_eq!(imported.totals.failed, 0, "{:?}", imported.files);
        assert_eq!(imported.sessions.len(), 1);
        let row = &imported.sessions[0];
        assert_eq!((row.branches, row.revised), (0, 0));
        (row.entries_added, told(row))
    }

    #[track_caller]
    fn text(&self) -> Vec<u8> {
        let files = self.home.files();
        assert_eq!(files.len(), 1);
        files.into_values().next().unwrap()
    }
}

/// Copies a folder whose files contain their own path.
struct Moved<K: Fn(&str) -> String> {
    from: String,
    to: String,
    key: K,
    tool: Tool,
}

impl<K: Fn(&str) -> String> Moved<K> {
    /// The folder of the source's origin, if the source is below `root`.
    fn origin(&self, root: &str) -> String {
        let hash = Sha256::new()
            .chain_update(self.tool.name())
            .chain_update([0])
            .chain_update((self.key)(root))
            .finalize();
        hash.iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn name(&self, text: &str) -> String {
        let text = text.replace(&self.from, &self.to);
        text.replace(&self.origin(&self.from), &self.origin(&self.to))
    }

    fn copy(&self, from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let to = to.join(self.name(&name));
            match fs::read(entry.path()) {
                Ok(bytes) => {
                    let text = String::from_utf8(bytes).map(|text| self.name(&text).into_bytes());
                    fs::write(to, text.unwrap_or_else(|bytes| bytes.into_bytes())).unwrap();
                }
                Err(_) => self.copy(&entry.path(), &to),
            }
        }
    }
}

/// The path to the leaf: the role and the last text of each message.
fn told(row: &ImportedSession) -> Vec<String> {
    let told = path_of(row).into_iter().map(|entry| {
        let message = &entry["message"];
        let content = &message["content"];
        let last = content.as_array().and_then(|blocks| blocks.last());
        let text = last.map_or(content, |block| &block["text"]);
        let kind = message["role"].as_str().or(entry["type"].as_str());
        format!("{}: {}", kind.unwrap(), text.as_str().unwrap_or("call"))
    });
    told.collect()
}

const CLAUDE_CODE: &str = "projects/-w/5e551000-0000-4000-8000-00000000000a.jsonl";

#[test]
fn a_session_of_an_older_program_gains_no_branch() {
    let former = Former::new(Tool::ClaudeCode, CLAUDE_CODE);
    let before = former.text();
    let (added, path) = former.import();
    assert_eq!(added, 0);
    assert_eq!(former.text(), before);
    let old = [
        "user: part 0: list",
        "assistant: call",
        "toolResult: part 0: no, the other folder",
        "assistant: call",
        "toolResult: done",
        "user: part 0: and hidden ones",
        "user: part 0: and hidden ones",
        "assistant: part 0: done",
        "user: part 0: thanks",
        "assistant: part 0: bye",
    ];
    assert_eq!(path, old);
    former.append(&former.rest);
    let (added, path) = former.import();
    let new = [
        "user: part 1: list",
        "assistant: call",
        "toolResult: done",
        "user: part 1: no, the other folder",
        "assistant: call",
        "toolResult: done",
        "user: part 1: and hidden ones",
        "assistant: part 1: done",
        "user: part 1: thanks",
        "assistant: part 1: bye",
    ];
    assert_eq!(added, 10);
    assert_eq!(path, [&old[..], &new[..]].concat());
    assert_eq!(former.text()[..before.len()], before);
}

/// The ledger may be lost, and so may the kept bytes. Each of them alone says which records were read before.
#[test]
fn ledger_and_kept_bytes_say_what_an_older_program_has_read() {
    for lost in [".imports/ledger.jsonl", ".origins"] {
        let former = Former::new(Tool::ClaudeCode, CLAUDE_CODE);
        let half = former.rest.find("\n").unwrap() + 1;
        for part in [&former.rest[..half], &former.rest[half..]] {
            let lost = former.home.sessions().join(lost);
            let removed = fs::remove_file(&lost).or_else(|_| fs::remove_dir_all(&lost));
            removed.unwrap();
            former.append(part);
            former.import();
        }
        let (added, path) = former.import();
        assert_eq!((added, path.len()), (0, 20), "without {lost:?}");
    }
}

#[test]
fn a_chat_of_an_older_program_keeps_its_compaction() {
    let former = Former::new(Tool::Gemini, "session-2026-01-01T00-00-9e310000.jsonl");
    let before = former.text();
    assert_eq!(former.import().0, 0);
    former.append(&former.rest);
    let imported = former.home.import();
    // The conversation begins a second time, below the kept context. This is a second branch.
    assert_eq!(imported.sessions[0].entries_added, 2);
    assert_eq!(former.text()[..before.len()], before);
    let compactions = |text: &[u8]| memchr::memmem::find_iter(text, b"\"compaction\"").count();
    assert_eq!(compactions(&before), 1);
    assert_eq!(compactions(&former.text()), 1);
}

/// `--again` for a session that exists makes a new file with the present mapper. The old file goes to the trash.
#[test]
fn a_session_is_written_anew_and_its_old_file_is_in_the_trash() {
    let former = Former::new(Tool::ClaudeCode, CLAUDE_CODE);
    let before = former.text();
    let id = former.home.import().sessions[0].session_id.clone();
    let again = || {
        let again = |request: &mut ImportRequest| request.again = Some(id.clone());
        former.home.try_import(again)
    };
    let imported = again().unwrap();
    let row = &imported.sessions[0];
    assert!(row.created && row.session_id == id);
    let path = told(row);
    assert_eq!(path.len(), 10);
    assert_eq!(
        path[2..4],
        ["toolResult: done", "user: part 0: no, the other folder"]
    );
    let trash = former.home.sessions().join(".trash");
    let trashed: Vec<_> = fs::read_dir(trash).unwrap().map(Result::unwrap).collect();
    assert_eq!(trashed.len(), 1);
    assert_eq!(fs::read(trashed[0].path()).unwrap(), before);
    // From now on the records of the session have the mapping of the present mapper, even if the ledger is lost.
    assert_eq!(former.import().0, 0);
    fs::remove_file(former.home.sessions().join(".imports/ledger.jsonl")).unwrap();
    former.append(&former.rest);
    let (added, path) = former.import();
    assert_eq!((added, path.len()), (10, 20));
    // If the source does not exist, nothing changes.
    let before = former.text();
    fs::remove_file(&former.source).unwrap();
    let refused = again().unwrap_err();
    assert!(refused.message.contains("was not found"), "{refused:?}");
    assert_eq!(former.text(), before);
}
