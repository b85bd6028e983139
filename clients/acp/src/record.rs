//! The sessions that record an agent's: made, continued, aligned and forked through a treelined daemon.

use crate::conversation::{Change, ChangeKind};
use crate::journal::{ChangeIds, make_folder};
use crate::turn::{Item, key};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_client::{Builder, Client, Entry, ErrorKind, Json};
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
    /// The name of the agent's program.
    agent: String,
    folder: PathBuf,
    /// The positions of this run, by their files.
    positions: HashMap<PathBuf, Position>,
}

impl Recorder {
    pub fn new(daemon: Builder, state: &Path) -> anyhow::Result<Recorder> {
        let folder = state.join(FOLDER);
        make_folder(&folder)?;
        Ok(Recorder {
            daemon,
            client: None,
            agent: String::new(),
            folder,
            positions: HashMap::new(),
        })
    }

    /// Says of which agent the changes to come are.
    pub fn set_agent(&mut self, name: &str) {
        name.clone_into(&mut self.agent);
    }

    /// Makes a change. It may be made again after a crash: its entries have the ids that the journal gives them.
    pub async fn make(&mut self, change: Change, ids: ChangeIds) -> anyhow::Result<()> {
        let Change {
            agent_session,
            kind,
        } = change;
        if agent_session.is_empty() {
            return Ok(());
        }
        match kind {
            ChangeKind::Begin { cwd } => self.begin(&agent_session, &cwd, ids).await,
            ChangeKind::Append { items, .. } => {
                self.append(&agent_session, with_ids(items, ids)).await
            }
            ChangeKind::Align { cwd, items } => self.align(&agent_session, &cwd, items, ids).await,
            ChangeKind::Fork { source, cwd, items } => {
                match self.position(&source) {
                    Some(position) => self.keep(&agent_session, position)?,
                    // The agent's session began before the recorder.
                    None if items.is_empty() => return Ok(()),
                    None => {}
                }
                self.align(&agent_session, &cwd, items, ids).await
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

    async fn begin(
        &mut self,
        agent_session: &str,
        cwd: &str,
        ids: ChangeIds,
    ) -> anyhow::Result<()> {
        let client = self.client().await?;
        let session_id = ids.session();
        // The run that was killed may have made it.
        match client.open_session().session_id(&session_id).await {
            Err(error) if error.is(ErrorKind::SessionNotFound) => {
                let create = client.create_session().session_id(&session_id);
                create.cwd(cwd).await?;
            }
            opened => drop(opened?),
        }
        let id = ids.entry("about");
        let about = json!({
            "type": "custom",
            "id": id,
            "parentId": null,
            "customType": "acp.session",
            "data": { "agent": self.agent, "sessionId": agent_session },
        });
        write(
            &client.with_session(&session_id),
            &[(id.clone(), about.into())],
        )
        .await?;
        let leaf = Some(id);
        self.keep(agent_session, Position { session_id, leaf })
    }

    async fn append(
        &mut self,
        agent_session: &str,
        items: Vec<(String, Item)>,
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
        let mut entries = Vec::new();
        for (id, item) in items {
            let entry = self.entry(item, &id, leaf.as_deref());
            entries.push((id.clone(), Json::from(entry)));
            leaf = Some(id);
        }
        write(&client, &entries).await?;
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
        ids: ChangeIds,
    ) -> anyhow::Result<()> {
        let Some(position) = self.known(agent_session).await? else {
            self.begin(agent_session, cwd, ids).await?;
            return self.append(agent_session, with_ids(items, ids)).await;
        };
        let told: Vec<_> = items.iter().filter_map(Item::key).collect();
        // A resumed session tells nothing, and one that is not told whole cannot be compared: it goes on where it was.
        if told.is_empty() || items.iter().any(Item::is_gap) {
            return self.keep(agent_session, position);
        }
        let client = self.open(&position).await?;
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
        let rest = after_messages(with_ids(items, ids), found);
        let leaf = if found == 0 { None } else { at };
        self.keep(agent_session, Position { leaf, ..position })?;
        self.append(agent_session, rest).await
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

    fn position(&self, agent_session: &str) -> Option<Position> {
        let file = self.file(agent_session);
        if let Some(position) = self.positions.get(&file) {
            return Some(position.clone());
        }
        let bytes = fs::read(file).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn keep(&mut self, agent_session: &str, position: Position) -> anyhow::Result<()> {
        let file = self.file(agent_session);
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&temporary, serde_json::to_vec(&position)?)
            .and_then(|()| fs::rename(&temporary, &file))
            .with_context(|| format!("write {}", file.display()))?;
        self.positions.insert(file, position);
        Ok(())
    }

    fn file(&self, agent_session: &str) -> PathBuf {
        let name = format!("{}\0{agent_session}", self.agent);
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
        self.folder.join(format!("{id}.json"))
    }
}

/// The items with the ids of their entries. The number of an item does not depend on the tree.
fn with_ids(items: Vec<Item>, ids: ChangeIds) -> Vec<(String, Item)> {
    let items = items.into_iter().enumerate();
    items
        .map(|(number, item)| (ids.entry(&number.to_string()), item))
        .collect()
}

/// Appends entries, except those that the run that was killed has written.
async fn write(client: &Client, mut entries: &[(String, Json)]) -> anyhow::Result<()> {
    let all = entries.iter().map(|(_, entry)| entry.clone());
    match client.append_entries(all).await {
        Err(error) if error.is(ErrorKind::DuplicateEntryId) => {}
        appended => return Ok(appended.map(drop)?),
    }
    while let [(id, _), rest @ ..] = entries {
        match client.get_entry(id).await {
            Ok(_) => entries = rest,
            Err(error) if error.is(ErrorKind::EntryNotFound) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if !entries.is_empty() {
        let missing = entries.iter().map(|(_, entry)| entry.clone());
        client.append_entries(missing).await?;
    }
    Ok(())
}

/// The items after the first `count` messages.
fn after_messages(items: Vec<(String, Item)>, count: usize) -> Vec<(String, Item)> {
    let mut passed = 0;
    let mut is_passed = |(_, item): &(String, Item)| {
        passed += usize::from(item.key().is_some());
        passed <= count
    };
    items
        .into_iter()
        .skip_while(|item| is_passed(item))
        .collect()
}

/// The message below `at` that is this one; entries between that are not messages are passed over.
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
