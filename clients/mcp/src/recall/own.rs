//! The conversations that a person had here: of this directory alone, on this machine alone, and kept by their own agent.

use crate::history::{History, Result};
use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_client::SessionRow;

/// The rows of sessions of this directory, by their ids.
pub(super) struct OwnSessions {
    rows: HashMap<String, SessionRow>,
    /// The answers about imports, by the id of the session.
    known: HashMap<String, bool>,
}

impl OwnSessions {
    /// `native_id` is the conversation that asks: it knows itself.
    pub(super) async fn list(history: &History, native_id: &str) -> Result<OwnSessions> {
        let rows = history.own_rows().await?.into_iter();
        let rows = rows.filter(|row| is_own(row) && !is_of(row, native_id));
        Ok(OwnSessions {
            rows: rows.map(|row| (row.session_id.clone(), row)).collect(),
            known: HashMap::new(),
        })
    }

    /// The sessions, the newest first.
    pub(super) fn newest(&self) -> Vec<&SessionRow> {
        let mut rows: Vec<&SessionRow> = self.rows.values().collect();
        rows.sort_by(|one, other| other.modified.cmp(&one.modified));
        rows
    }

    /// Whether a session is one of them, and each of its sources is where its agent keeps the conversations of this user. A file
    /// that was named to an import may be an export, or another person's.
    pub(super) async fn have(&mut self, history: &History, id: &str) -> bool {
        let Some(row) = self.rows.get(id) else {
            return false;
        };
        let Some(tool) = row.source.clone() else {
            return true;
        };
        if let Some(known) = self.known.get(id) {
            return *known;
        }
        let sources = history.sources(id).await.unwrap_or_default();
        let is_own = !sources.is_empty() && sources.iter().all(|path| is_in_place(&tool, path));
        self.known.insert(id.to_owned(), is_own);
        is_own
    }
}

/// Whether a session is of this machine alone: others write in that of a team.
fn is_own(row: &SessionRow) -> bool {
    let replica = format!("{}.replica", row.path);
    row.diagnostic.is_none() && row.log.is_none() && !Path::new(&replica).exists()
}

/// Whether a session has the agent's conversation of this id.
fn is_of(row: &SessionRow, native_id: &str) -> bool {
    let natives = row.native_ids.iter().flatten().any(|id| id == native_id);
    let mut agents = row.agent_sessions.iter().flatten();
    natives || agents.any(|agent| agent.native_id == native_id)
}

/// Whether the tool keeps its conversations there.
fn is_in_place(tool: &str, path: &str) -> bool {
    // A session of a database follows behind `#`.
    let file = path.rsplit_once('#').map_or(path, |(file, _)| file);
    let real = |path: &Path| fs::canonicalize(path).ok();
    let Some(place) = place(tool).and_then(|place| real(&place)) else {
        return false;
    };
    // A file that its agent has deleted was where its folder is.
    let path = Path::new(file);
    let file = real(path).or_else(|| real(path.parent()?));
    file.is_some_and(|file| file.starts_with(&place))
}

/// The folder in which a tool keeps its conversations, as `treelined import` looks for it.
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
