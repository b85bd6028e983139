//! Selects the conversations of this user in this directory. They must be only on this machine, and the user's own
//! agent must keep them.

use crate::clean::is_plain_id;
use crate::conversations::Conversations;
use crate::history::{History, Result};
use std::collections::{HashMap, HashSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_client::SessionRow;

/// The sessions of this directory that may be recalled, and all sessions from which they may come.
pub(super) struct OwnSessions {
    rows: Vec<SessionRow>,
    pub(super) conversations: Conversations,
    /// The ids of the sessions of this directory that are not archived. The conversation that asks is not among them.
    here: HashSet<String>,
    /// Whether [`OwnSessions::is_kept`] accepts a session, by its id.
    known: HashMap<String, bool>,
}

impl OwnSessions {
    /// `native_id` is the agent's id of the conversation that asks. This conversation is left out, since its agent
    /// already has it.
    pub(super) async fn list(history: &History, native_id: &str) -> Result<OwnSessions> {
        let rows = history.rows().await?;
        let mut directories = history.scope().directories();
        let here = rows.iter().filter(|row| {
            // A person archives a session to hide it, so it is not recalled.
            let is_shown = !row.archived.unwrap_or_default() && is_plain_id(&row.session_id);
            is_shown && directories.is_own(&row.cwd) && !is_of(row, native_id)
        });
        let here = here.map(|row| row.session_id.clone()).collect();
        let mut conversations = Conversations::default();
        rows.iter().for_each(|row| conversations.add(row));
        Ok(OwnSessions {
            rows,
            conversations,
            here,
            known: HashMap::new(),
        })
    }

    /// The sessions, the newest first.
    pub(super) fn newest(&self) -> Vec<&SessionRow> {
        let here = |row: &&SessionRow| self.here.contains(&row.session_id);
        let mut rows: Vec<&SessionRow> = self.rows.iter().filter(here).collect();
        rows.sort_by(|one, other| other.modified.cmp(&one.modified));
        rows
    }

    /// Whether a session may be recalled: it must be in `here`, and the session and all sessions from which it comes
    /// must belong to this user. A fork has the text of its parent, but may have no record of the import. A parent that
    /// is not listed may belong to another person.
    pub(super) async fn have(&mut self, history: &History, id: &str) -> bool {
        if !self.here.contains(id) {
            return false;
        }
        let (mut waiting, mut seen) = (vec![id.to_owned()], HashSet::new());
        while let Some(name) = waiting.pop() {
            let named = |row: &&SessionRow| row.session_id == name || row.path == name;
            let rows: Vec<SessionRow> = self.rows.iter().filter(named).cloned().collect();
            if rows.is_empty() {
                return false;
            }
            for row in rows.into_iter().filter(|row| seen.insert(row.path.clone())) {
                if !is_of_one(&row) || !self.is_kept(history, &row).await {
                    return false;
                }
                waiting.extend(row.parent_session);
            }
        }
        true
    }

    /// Whether each source of a session is in the folder where its agent keeps the conversations of this user. A file
    /// that a person named to an import may be an export, or belong to another person.
    async fn is_kept(&mut self, history: &History, row: &SessionRow) -> bool {
        let Some(tool) = &row.source else {
            return true;
        };
        if let Some(known) = self.known.get(&row.session_id) {
            return *known;
        }
        let sources = history.sources(&row.session_id).await.unwrap_or_default();
        let is_kept = !sources.is_empty() && sources.iter().all(|path| is_in_place(tool, path));
        self.known.insert(row.session_id.clone(), is_kept);
        is_kept
    }
}

/// Whether a session is only on this machine. Other machines can write to a session of a team.
fn is_of_one(row: &SessionRow) -> bool {
    let replica = format!("{}.replica", row.path);
    row.diagnostic.is_none() && row.log.is_none() && !Path::new(&replica).exists()
}

/// Whether a session was imported from the agent's conversation with this id.
fn is_of(row: &SessionRow, native_id: &str) -> bool {
    let natives = row.native_ids.iter().flatten().any(|id| id == native_id);
    let mut agents = row.agent_sessions.iter().flatten();
    natives || agents.any(|agent| agent.native_id == native_id)
}

/// Whether the path is in the folder where the tool keeps its conversations.
fn is_in_place(tool: &str, path: &str) -> bool {
    // The path of a database is followed by `#` and the session in it.
    let file = path.rsplit_once('#').map_or(path, |(file, _)| file);
    let real = |path: &Path| fs::canonicalize(path).ok();
    let Some(place) = place(tool).and_then(|place| real(&place)) else {
        return false;
    };
    // The agent may have deleted the file. Its folder still shows where the file was.
    let path = Path::new(file);
    let file = real(path).or_else(|| real(path.parent()?));
    file.is_some_and(|file| file.starts_with(&place))
}

/// The folder in which a tool keeps its conversations. `treelined import` looks in the same folder.
fn place(tool: &str) -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let home = PathBuf::from(variable("HOME")?);
    let given = |name: &str| variable(name).map(PathBuf::from);
    let data = given("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.unwrap_or_else(|| home.join(".local/share"));
    Some(match tool {
        "claude-code" => given("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude")),
        "codex" => given("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
        "gemini" => given("GEMINI_CLI_HOME").unwrap_or(home).join(".gemini"),
        "goose" => given("GOOSE_PATH_ROOT").unwrap_or_else(|| data.join("goose")),
        "opencode" => data.join("opencode"),
        "pi" => given("PI_CODING_AGENT_DIR").unwrap_or_else(|| home.join(".pi/agent")),
        _ => return None,
    })
}
