//! The sessions that record an agent's: made, continued, aligned and forked through a treelined daemon.

use crate::conversation::{Change, ChangeKind};
use crate::journal::{EntryIds, make_folder};
use crate::turn::{Item, key};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use treelined_client::{Builder, Client, Entry, ErrorKind};
use uuid::Uuid;

/// The name of the folder of the records' positions in the folder of the state.
const FOLDER: &str = "sessions";
/// The most entries without a message that may follow each other where a history is aligned.
const MAX_BETWEEN: usize = 1_000;

/// Where a session of the agent is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Position {
    session_id: String,
    /// The last recorded entry; none in an empty session.
    leaf: Option<String>,
}

/// Writes changes to sessions.
pub struct Recorder {
    daemon: Builder,
    client: Option<Client>,
    /// The program's name.
    agent: String,
    folder: PathBuf,
    /// The positions of this run, by the agent's session.
    positions: HashMap<String, Position>,
}

impl Recorder {
    pub fn new(
        daemon: Builder,
        agent: String,
        state: &std::path::Path,
    ) -> anyhow::Result<Recorder> {
        let folder = state.join(FOLDER);
        make_folder(&folder)?;
        Ok(Recorder {
            daemon,
            client: None,
            agent,
            folder,
            positions: HashMap::new(),
        })
    }

    /// Makes a change. It may be made again after a crash: its entries have the ids that the journal gives them.
    pub async fn make(&mut self, change: Change, ids: EntryIds) -> anyhow::Result<()> {
        let Change {
            agent_session,
            kind,
        } = change;
        if agent_session.is_empty() {
            return Ok(());
        }
        match kind {
            ChangeKind::Begin { cwd } => self.begin(&agent_session, &cwd).await,
            ChangeKind::Append { items, .. } => self.append(&agent_session, items, ids).await,
            ChangeKind::Align { cwd, items } => self.align(&agent_session, &cwd, items, ids).await,
            ChangeKind::Fork { source } => {
                let Some(position) = self.position(&source) else {
                    return Ok(());
                };
                self.keep(&agent_session, position)
            }
        }
    }

    /// Closes the daemon.
    pub async fn close(&mut self) -> anyhow::Result<()> {
        match self.client.take() {
            Some(client) => Ok(client.close().await?),
            None => Ok(()),
        }
    }

    /// The daemon, started anew if it has ended.
    async fn client(&mut self) -> anyhow::Result<Client> {
        if let Some(client) = self.client.take().filter(|client| !client.is_closed()) {
            return Ok(self.client.insert(client).clone());
        }
        let client = self.daemon.spawn().await?;
        Ok(self.client.insert(client).clone())
    }

    /// A client of the open session.
    async fn open(&mut self, position: &Position) -> anyhow::Result<Client> {
        let client = self.client().await?;
        let session = client.with_session(&position.session_id);
        // Open already: that is what is wanted.
        client
            .open_session()
            .session_id(&position.session_id)
            .await?;
        Ok(session)
    }

    async fn begin(&mut self, agent_session: &str, cwd: &str) -> anyhow::Result<()> {
        let client = self.client().await?;
        let session = client.create_session().cwd(cwd).await?.session;
        let about = json!({
            "type": "custom",
            "customType": "acp.session",
            "data": { "agent": self.agent, "sessionId": agent_session },
        });
        let client = client.with_session(&session.session_id);
        let appended = client.append_entries([about]).await?;
        let position = Position {
            session_id: session.session_id,
            leaf: Some(appended.leaf_id),
        };
        self.keep(agent_session, position)
    }

    async fn append(
        &mut self,
        agent_session: &str,
        items: Vec<Item>,
        ids: EntryIds,
    ) -> anyhow::Result<()> {
        let Some(position) = self.position(agent_session) else {
            // The agent's session began before the recorder: nothing says in which directory.
            return Ok(());
        };
        if items.is_empty() {
            return Ok(());
        }
        let client = self.open(&position).await?;
        let mut leaf = position.leaf.clone();
        let mut entries: Vec<Value> = Vec::new();
        for (number, item) in items.into_iter().enumerate() {
            let id = ids.id(number);
            entries.push(self.entry(item, &id, leaf.as_deref()));
            leaf = Some(id);
        }
        match client.append_entries(entries).await {
            Ok(_) => {}
            // The run that was killed has written them, and its position too.
            Err(error) if error.is(ErrorKind::DuplicateEntryId) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        self.keep(agent_session, Position { leaf, ..position })
    }

    fn entry(&self, item: Item, id: &str, parent: Option<&str>) -> Value {
        match item {
            Item::Message(mut message) => {
                if let Value::Object(members) = &mut message
                    && members.get("role").is_some_and(|role| role == "assistant")
                {
                    members.insert("api".to_owned(), json!("acp"));
                    members.insert("provider".to_owned(), json!(self.agent));
                }
                json!({ "type": "message", "id": id, "parentId": parent, "message": message })
            }
            Item::Custom(custom_type, data) => json!({
                "type": "custom",
                "id": id,
                "parentId": parent,
                "customType": custom_type,
                "data": data,
            }),
        }
    }

    /// Finds the history that the agent has told in the tree, and appends a branch from the first message that
    /// differs.
    async fn align(
        &mut self,
        agent_session: &str,
        cwd: &str,
        items: Vec<Item>,
        ids: EntryIds,
    ) -> anyhow::Result<()> {
        let Some(position) = self.known(agent_session).await? else {
            self.begin(agent_session, cwd).await?;
            return self.append(agent_session, items, ids).await;
        };
        // A resumed session tells nothing: it goes on where it was.
        if items.is_empty() {
            return self.keep(agent_session, position);
        }
        let client = self.open(&position).await?;
        let told: Vec<_> = items.iter().filter_map(Item::key).collect();
        let mut at: Option<String> = None;
        let mut found = 0;
        while let Some(message) = told.get(found) {
            let Some(next) = child(&client, at.as_deref(), message).await? else {
                break;
            };
            at = Some(next);
            found += 1;
        }
        if found == told.len() {
            let is_behind = match (&position.leaf, &at) {
                (Some(leaf), Some(at)) => follows(&client, leaf, at).await?,
                _ => false,
            };
            let leaf = if is_behind { position.leaf } else { at };
            client.set_leaf(leaf.as_deref()).await?;
            return self.keep(agent_session, Position { leaf, ..position });
        }
        let rest = after_messages(items, found);
        let leaf = if found == 0 { None } else { at };
        self.keep(agent_session, Position { leaf, ..position })?;
        self.append(agent_session, rest, ids).await
    }

    /// The position of an agent's session whose record still exists.
    async fn known(&mut self, agent_session: &str) -> anyhow::Result<Option<Position>> {
        let Some(position) = self.position(agent_session) else {
            return Ok(None);
        };
        let client = self.client().await?;
        match client.open_session().session_id(&position.session_id).await {
            Ok(_) => Ok(Some(position)),
            Err(error) if error.is(ErrorKind::SessionNotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn position(&mut self, agent_session: &str) -> Option<Position> {
        if let Some(position) = self.positions.get(agent_session) {
            return Some(position.clone());
        }
        let bytes = fs::read(self.file(agent_session)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn keep(&mut self, agent_session: &str, position: Position) -> anyhow::Result<()> {
        let file = self.file(agent_session);
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&temporary, serde_json::to_vec(&position)?)
            .and_then(|()| fs::rename(&temporary, &file))
            .with_context(|| format!("write {}", file.display()))?;
        self.positions.insert(agent_session.to_owned(), position);
        Ok(())
    }

    fn file(&self, agent_session: &str) -> PathBuf {
        let name = format!("{}\0{agent_session}", self.agent);
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
        self.folder.join(format!("{id}.json"))
    }
}

/// The items after the first `count` messages.
fn after_messages(items: Vec<Item>, count: usize) -> Vec<Item> {
    let mut passed = 0;
    let mut is_passed = |item: &Item| {
        passed += usize::from(item.key().is_some());
        passed <= count
    };
    items
        .into_iter()
        .skip_while(|item| is_passed(item))
        .collect()
}

/// The message below `at` that is this one; entries between that are no messages are passed over.
async fn child(
    client: &Client,
    at: Option<&str>,
    message: &(String, String),
) -> anyhow::Result<Option<String>> {
    let mut above: Vec<Option<String>> = vec![at.map(str::to_owned)];
    let mut looked = 0;
    while let Some(parent) = above.pop() {
        looked += 1;
        if looked > MAX_BETWEEN {
            bail!("too many entries without a message follow each other");
        }
        for entry in client.get_children(parent.as_deref()).await?.entries {
            match message_key(&entry) {
                Some(key) if key == *message => {
                    return Ok(Some(entry.id().to_owned()));
                }
                Some(_) => {}
                None => above.push(Some(entry.id().to_owned())),
            }
        }
    }
    Ok(None)
}

/// Whether `leaf` is `at`, or below it with no message between.
async fn follows(client: &Client, leaf: &str, at: &str) -> anyhow::Result<bool> {
    let mut place = leaf.to_owned();
    for _step in 0..MAX_BETWEEN {
        if place == at {
            return Ok(true);
        }
        let entry = client.get_entry(&place).await?.entry;
        match entry.parent_id() {
            Some(parent) if message_key(&entry).is_none() => place = parent.to_owned(),
            _ => return Ok(false),
        }
    }
    Ok(false)
}

fn message_key(entry: &Entry) -> Option<(String, String)> {
    let entry: Value = serde_json::from_str(entry.json().get()).ok()?;
    entry.get("message").map(key)
}
