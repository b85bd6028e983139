//! Records the sessions of an agent in a treelined daemon: begins, continues, aligns and forks their records.

use crate::conversation::{Change, ChangeKind};
use crate::find::{Among, find, follows, found, imported_tip, pass_results, words};
use crate::history::{History, without_words_for_calls};
use crate::journal::{ChangeIds, make_folder};
use crate::turn::Item;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_client::{AgentSession, Builder, Client, ErrorKind, Json};
use uuid::Uuid;

/// The folder of the positions of records, in the folder of the state.
const FOLDER: &str = "sessions";
/// How often the recorder looks for imported entries before an append, at most. After the last time it appends the
/// entries in any case.
const MAX_LOOKS: usize = 5;
/// After this number of bytes, the next entries of a change are in another write.
const MAX_WRITE: usize = 4 << 20;

/// The position up to which a session of the agent is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Position {
    session_id: String,
    /// The last recorded entry; `None` in an empty session.
    leaf: Option<String>,
    /// Whether the agent got the earlier part of the conversation as one text. The record does not have this text.
    #[serde(default)]
    is_text: bool,
}

/// A position in a session that is open.
pub struct Place {
    /// A client that has the session open.
    pub client: Client,
    pub session_id: String,
    /// The last recorded entry; `None` in an empty session.
    pub leaf: Option<String>,
    /// Whether the agent got the earlier part of the conversation as one text.
    pub is_text: bool,
}

/// The session of treelined that already has the conversation of a session of the agent.
struct Home {
    session_id: String,
    /// Whether an import has written the conversation there.
    is_imported: bool,
    /// The last entry of the path that was handed over to the agent's session, if a path was handed over.
    handed_over: Option<String>,
    /// The entry at which the record of the agent's session begins, if it has one.
    record: Option<String>,
}

/// Writes changes to sessions.
pub struct Recorder {
    daemon: Builder,
    client: Option<Client>,
    /// The name of the agent's program.
    agent: String,
    folder: PathBuf,
    /// The positions that this run has written, by their files.
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

    /// Sets the agent to which the next changes belong.
    pub fn set_agent(&mut self, name: &str) {
        name.clone_into(&mut self.agent);
    }

    /// Records a change. After a crash the same change may be recorded again: its entries have the same ids then.
    pub async fn make(&mut self, change: Change, ids: ChangeIds) -> anyhow::Result<()> {
        let Change {
            agent_session,
            kind,
        } = change;
        if agent_session.is_empty() {
            return Ok(());
        }
        match kind {
            ChangeKind::Begin { cwd } => match self.home(&agent_session).await? {
                // Some agents use an id again. If neither an import nor a handoff has made this session, its record
                // is of another conversation.
                Some(home)
                    if home.session_id != ids.session()
                        && (home.is_imported || home.handed_over.is_some()) =>
                {
                    self.join_at_beginning(&agent_session, home, ids).await
                }
                _ => self.begin(&agent_session, &cwd, ids).await,
            },
            ChangeKind::Append { items, .. } => {
                self.append(&agent_session, with_ids(items, ids)).await
            }
            ChangeKind::Align { cwd, items } => self.align(&agent_session, &cwd, items, ids).await,
            ChangeKind::Fork { source, cwd, items } => {
                match self.position(&source) {
                    Some(position) => self.keep(&agent_session, position)?,
                    // The agent's session began before the recorder started, so it has no record.
                    None if items.is_empty() => return Ok(()),
                    None => {}
                }
                self.align(&agent_session, &cwd, items, ids).await?;
                self.note(&agent_session, ids).await
            }
        }
    }

    /// The position up to which a session of the agent is recorded; its session is opened. `None` without a record.
    pub async fn place(&mut self, agent_session: &str) -> anyhow::Result<Option<Place>> {
        let Some(position) = self.position(agent_session) else {
            return Ok(None);
        };
        Ok(Some(Place {
            client: self.open(&position).await?,
            session_id: position.session_id,
            leaf: position.leaf,
            is_text: position.is_text,
        }))
    }

    /// The position of an entry in a session, which is opened.
    pub async fn place_in(&mut self, session_id: &str, entry: &str) -> anyhow::Result<Place> {
        let position = Position {
            session_id: session_id.to_owned(),
            leaf: Some(entry.to_owned()),
            is_text: false,
        };
        Ok(Place {
            client: self.open(&position).await?,
            session_id: position.session_id,
            leaf: position.leaf,
            is_text: position.is_text,
        })
    }

    /// Begins the record of a new session of the agent, which has the conversation at `place` up to `entry`. If
    /// `is_text` is true, the agent got that conversation as a text, and replays it as one message of the user.
    pub async fn begin_at(
        &mut self,
        agent_session: &str,
        place: &Place,
        entry: Option<String>,
        is_text: bool,
    ) -> anyhow::Result<()> {
        place.client.set_leaf(entry.as_deref()).await?;
        let position = Position {
            session_id: place.session_id.clone(),
            leaf: entry,
            is_text,
        };
        self.keep(agent_session, position)?;
        self.note(agent_session, ChangeIds::fresh()).await
    }

    /// Deletes the position of a session of the agent that is not used any more.
    pub fn forget(&mut self, agent_session: &str) {
        let file = self.file(agent_session);
        let _missing = fs::remove_file(&file);
        self.positions.remove(&file);
    }

    /// The ids of the agent's sessions that are recorded in the session of `place`.
    pub async fn recorded_in(&mut self, place: &Place) -> anyhow::Result<Vec<String>> {
        let client = self.client().await?;
        let info = client
            .list_sessions()
            .query(&place.session_id)
            .await?
            .sessions;
        let row = info
            .into_iter()
            .find(|row| row.session_id == place.session_id);
        let agents = row.and_then(|row| row.agent_sessions).unwrap_or_default();
        let records = agents.into_iter().filter(|agent| agent.tool.is_none());
        Ok(records.map(|agent| agent.native_id).collect())
    }

    /// Ends the connection with the daemon.
    pub async fn close(&mut self) -> anyhow::Result<()> {
        match self.client.take() {
            Some(client) => Ok(client.close().await?),
            None => Ok(()),
        }
    }

    /// The client of the daemon. If the daemon has ended, a new one is started.
    pub async fn client(&mut self) -> anyhow::Result<Client> {
        if let Some(client) = self.client.take().filter(|client| !client.is_closed()) {
            return Ok(self.client.insert(client).clone());
        }
        let client = self.daemon.spawn().await?;
        Ok(self.client.insert(client).clone())
    }

    /// Opens the session of a position, and returns a client for this session.
    async fn open(&mut self, position: &Position) -> anyhow::Result<Client> {
        let client = self.client().await?;
        let session = client.with_session(&position.session_id);
        // If the session is open already, this is not an error.
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
        // The run that was killed may have made this session already.
        match client.open_session().session_id(&session_id).await {
            Err(error) if error.is(ErrorKind::SessionNotFound) => {
                let create = client.create_session().session_id(&session_id);
                create.cwd(cwd).await?;
            }
            opened => drop(opened?),
        }
        let leaf = None;
        let position = Position {
            session_id,
            leaf,
            is_text: false,
        };
        self.keep(agent_session, position)?;
        self.note(agent_session, ids).await
    }

    /// Appends the entry `acp.session`, with which the record of a session of the agent begins.
    async fn note(&mut self, agent_session: &str, ids: ChangeIds) -> anyhow::Result<()> {
        let Some(position) = self.position(agent_session) else {
            return Ok(());
        };
        let client = self.open(&position).await?;
        let id = ids.entry("about");
        let about = json!({
            "type": "custom",
            "id": id,
            "parentId": position.leaf,
            "customType": "acp.session",
            "data": { "agent": self.agent, "sessionId": agent_session, "in": position.session_id },
        });
        write(&client, &[(id.clone(), about.into())], None).await?;
        let leaf = Some(id);
        self.keep(agent_session, Position { leaf, ..position })
    }

    async fn append(
        &mut self,
        agent_session: &str,
        items: Vec<(String, Item)>,
    ) -> anyhow::Result<()> {
        let Some(position) = self.position(agent_session) else {
            // The agent's session began before the recorder started, so its directory is not known.
            return Ok(());
        };
        if items.is_empty() {
            return Ok(());
        }
        let client = self.open(&position).await?;
        'look: for look in 1..=MAX_LOOKS {
            let (leaf, missing) = self.missing(&client, &position, &items).await?;
            let mut end = leaf.clone();
            for piece in pieces(&missing) {
                let above = end.clone();
                let mut entries = Vec::with_capacity(piece.len());
                for (id, item) in piece {
                    let entry = self.entry(item, id, end.as_deref());
                    entries.push((id.clone(), Json::from(entry)));
                    end = Some(id.clone());
                }
                let expected = (look < MAX_LOOKS).then_some(above.as_deref());
                match write(&client, &entries, expected).await {
                    // An import has written more entries since they were looked for, or another program has moved the
                    // leaf.
                    Err(error) if is_moved(&error) => {
                        client.set_leaf(leaf.as_deref()).await?;
                        continue 'look;
                    }
                    written => written?,
                }
            }
            let leaf = end;
            return self.keep(agent_session, Position { leaf, ..position });
        }
        Ok(())
    }

    /// Looks for items that an import has already written. This is possible because the agent stores its messages
    /// too, and an import reads them. Returns the last entry that is there, and the items to append below it.
    async fn missing<'i>(
        &self,
        client: &Client,
        position: &Position,
        items: &'i [(String, Item)],
    ) -> anyhow::Result<(Option<String>, Cow<'i, [(String, Item)]>)> {
        let mut history = History::of_items(items);
        let known = position.leaf.as_deref();
        let mut leaf = find(client, known, &mut history, Among::Imported).await?;
        let mut items = match history.is_begun() {
            true => Cow::Owned(history.rest(items.to_vec())),
            false => Cow::Borrowed(items),
        };
        if leaf != position.leaf {
            leaf = pass_results(client, leaf, items.to_mut()).await?;
        }
        Ok((leaf, items))
    }

    fn entry(&self, item: &Item, id: &str, parent: Option<&str>) -> Value {
        match item {
            Item::Message(message) => {
                let mut message = message.clone();
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

    /// Finds in the tree the history that the agent has replayed. If it differs from the tree, appends the messages
    /// from the first difference on, as a branch.
    async fn align(
        &mut self,
        agent_session: &str,
        cwd: &str,
        mut items: Vec<Item>,
        ids: ChangeIds,
    ) -> anyhow::Result<()> {
        without_words_for_calls(&mut items);
        let Some(position) = self.known(agent_session).await? else {
            if let Some(home) = self.home(agent_session).await? {
                return self.join(agent_session, home, items, ids).await;
            }
            self.begin(agent_session, cwd, ids).await?;
            return self.append(agent_session, with_ids(items, ids)).await;
        };
        let mut history = History::of(&items);
        let client = self.open(&position).await?;
        // Only a complete history can be compared. A resumed session has no history, a history may have gaps, and a
        // history may begin with the text of a handoff. In these cases the conversation continues after the last
        // recorded entry, or after the entries that an import has written below it.
        if history.is_found() || position.is_text || items.iter().any(Item::is_gap) {
            let leaf = imported_tip(&client, position.leaf).await?;
            return self.keep(agent_session, Position { leaf, ..position });
        }
        let at = found(&client, position.leaf.as_deref(), &mut history).await?;
        if history.is_found() {
            let is_behind = match (&position.leaf, &at) {
                (Some(leaf), Some(at)) => follows(&client, leaf, at).await?,
                _ => false,
            };
            let leaf = if is_behind { position.leaf } else { at };
            client.set_leaf(leaf.as_deref()).await?;
            return self.keep(agent_session, Position { leaf, ..position });
        }
        self.keep(
            agent_session,
            Position {
                leaf: at,
                ..position
            },
        )?;
        self.append(agent_session, history.rest(with_ids(items, ids)))
            .await
    }

    /// Continues the record in a session that already has the agent's conversation: an import has written it there,
    /// another run has begun its record there, or one of its paths was handed over to the agent.
    async fn join(
        &mut self,
        agent_session: &str,
        home: Home,
        items: Vec<Item>,
        ids: ChangeIds,
    ) -> anyhow::Result<()> {
        let position = Position {
            session_id: home.session_id,
            leaf: None,
            is_text: false,
        };
        let client = self.open(&position).await?;
        let mut history = History::of(&items);
        let is_whole = !history.is_found() && !items.iter().any(Item::is_gap);
        let leaf = match (home.handed_over, home.record) {
            (Some(entry), _) => {
                let path = client.get_path().entry_id(&entry).await?.entries;
                let path: Vec<_> = path.iter().flat_map(words).collect();
                match is_whole && history.pass_path(&path) {
                    true => find(&client, Some(&entry), &mut history, Among::All).await?,
                    false => imported_tip(&client, Some(entry)).await?,
                }
            }
            (None, record) if !is_whole => match record {
                Some(record) => Some(record),
                None => client.get_leaf().await?.leaf_id,
            },
            (None, _) => find(&client, None, &mut history, Among::All).await?,
        };
        // The agent has another history: the conversation continues at the leaf.
        let leaf = match leaf {
            None => client.get_leaf().await?.leaf_id,
            found => found,
        };
        self.keep(agent_session, Position { leaf, ..position })?;
        self.note(agent_session, ids).await?;
        match is_whole && history.is_begun() {
            true => {
                self.append(agent_session, history.rest(with_ids(items, ids)))
                    .await
            }
            false => Ok(()),
        }
    }

    /// Begins the record in the session to which an import has already written the conversation. Later, each message
    /// that is already there is found and not recorded again.
    async fn join_at_beginning(
        &mut self,
        agent_session: &str,
        home: Home,
        ids: ChangeIds,
    ) -> anyhow::Result<()> {
        let beginning = Position {
            session_id: home.session_id,
            leaf: None,
            is_text: false,
        };
        self.keep(agent_session, beginning.clone())?;
        if home.record.is_none() {
            self.note(agent_session, ids).await?;
        }
        self.keep(agent_session, beginning)
    }

    /// The session of treelined that already has the conversation of a session of the agent.
    async fn home(&mut self, agent_session: &str) -> anyhow::Result<Option<Home>> {
        let client = self.client().await?;
        let found = client.list_sessions().query(agent_session).await?.sessions;
        for row in found {
            let its = |agent: &&AgentSession| agent.native_id == agent_session;
            let agents = || row.agent_sessions.iter().flatten().filter(its);
            let natives = row.native_ids.iter().flatten();
            let is_imported = natives.into_iter().any(|id| id == agent_session);
            let of = |is_record: bool| {
                let mut agents = agents().filter(|agent| agent.tool.is_none() == is_record);
                agents.next_back().map(|agent| agent.entry_id.clone())
            };
            let (record, handed_over) = (of(true), of(false));
            if is_imported || record.is_some() || handed_over.is_some() {
                return Ok(Some(Home {
                    session_id: row.session_id.clone(),
                    is_imported,
                    handed_over,
                    record,
                }));
            }
        }
        Ok(None)
    }

    /// The position of a session of the agent, if the session that records it still exists.
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

/// Gives each item the id of its entry. The id depends on the number of the item, not on the tree.
fn with_ids(items: Vec<Item>, ids: ChangeIds) -> Vec<(String, Item)> {
    let items = items.into_iter().enumerate();
    items
        .map(|(number, item)| (ids.entry(&number.to_string()), item))
        .collect()
}

/// The items in pieces that are written one after the other. The data that is made for a write takes several times the
/// bytes of its items.
fn pieces(mut rest: &[(String, Item)]) -> impl Iterator<Item = &[(String, Item)]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let is_full = |(_, item): &(String, Item)| {
            let is_full = bytes >= MAX_WRITE;
            bytes += item.bytes();
            is_full
        };
        let end = rest.iter().position(is_full).unwrap_or(rest.len());
        let piece;
        (piece, rest) = rest.split_at(end);
        (!piece.is_empty()).then_some(piece)
    })
}

/// Appends entries, except the ones that the killed run has written. `expected` is the leaf before the append. Fails
/// with `LeafMoved` if the leaf is another entry.
async fn write(
    client: &Client,
    mut entries: &[(String, Json)],
    expected: Option<Option<&str>>,
) -> anyhow::Result<()> {
    let all = entries.iter().map(|(_, entry)| entry.clone());
    let mut append = client.append_entries(all);
    if let Some(leaf) = expected {
        append = append.expected_leaf_id(leaf);
    }
    match append.await {
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

fn is_moved(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<treelined_client::Error>();
    error.is_some_and(|error| error.is(ErrorKind::LeafMoved))
}
