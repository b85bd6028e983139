//! Reads all sessions, and counts each answer once.

use crate::answer::Answer;
use crate::prices::Prices;
use crate::sums::Sums;
use memchr::memmem;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::{Error, Kind as ErrorKind, Result};
use treelined_core::name;
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::{Node, Tree};
use treelined_files::cancel::Cancel;
use treelined_files::log::Log;
use treelined_files::os::file::Location;
use treelined_files::parallel::{self, ThreadPlan};
use treelined_files::store::Store;
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::conversations::Conversations;

/// The most threads that read files.
const MAX_THREADS: usize = 8;
/// The most answers of one count. The key of an answer takes 16 bytes, in a table that may be half empty.
const MOST_ANSWERS: usize = 4 << 20;
/// The row of answers that have no time, if rows are days.
const NO_DAY: &str = "unknown";

/// The groups that become rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The days in UTC.
    Day,
    /// The models, as `provider/model`.
    Model,
    /// The tools from which answers were imported.
    Tool,
    Session,
    /// The directories of sessions.
    Directory,
}

/// The options of a count.
#[derive(Debug, Clone)]
pub struct Request {
    pub by: By,
    /// Only sessions of this directory, and of directories below it, count.
    pub cwd: Option<String>,
    /// Only answers from this time on count.
    pub since: Option<Millis>,
}

/// The sums of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The day, the model, the tool, the directory, or the id of the session.
    pub key: String,
    /// If the group is a session: its name, or its first message.
    pub title: Option<String>,
    pub sums: Sums,
}

/// A session that could not be read.
#[derive(Debug)]
pub struct UnreadFile {
    pub path: PathBuf,
    pub error: Error,
}

/// The result of a count.
#[derive(Debug, Default)]
pub struct Usage {
    /// The rows. Days are in order of time; other groups are ordered by cost and tokens.
    pub rows: Vec<Row>,
    pub total: Sums,
    pub unread: Vec<UnreadFile>,
}

/// Counts the answers of all sessions in the store. If several sessions have the same answer, it counts for the
/// session that was created first.
pub fn usage(store: &Store, request: &Request, prices: &Prices, cancel: &Cancel) -> Result<Usage> {
    let sessions = sessions(store, request)?;
    let read = |_: &mut (), number: usize| {
        let session = sessions.get(number)?;
        let path = &session.listing.path;
        Some((session, Location::of_path(path).and_then(answers)))
    };
    let mut counted = HashSet::new();
    let mut groups = BTreeMap::new();
    let mut usage = Usage::default();
    let plan = ThreadPlan::up_to(MAX_THREADS);
    let take = |read: Option<(&Arc<CatalogueRow>, Result<Vec<Answer>>)>| {
        if cancel.is_cancelled() {
            return ControlFlow::Break(Error::cancelled());
        }
        let Some((session, answers)) = read else {
            return ControlFlow::Continue(());
        };
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                let path = session.listing.path.clone();
                usage.unread.push(UnreadFile { path, error });
                return ControlFlow::Continue(());
            }
        };
        for answer in answers.into_iter().filter(|answer| request.takes(answer)) {
            if !counted.insert(answer.key) {
                continue;
            }
            usage.total.add(&answer, prices);
            let key = request.by.key(session, &answer);
            let (_, sums): &mut (_, Sums) = groups
                .entry(key)
                .or_insert_with(|| (request.by.title(session), Sums::default()));
            sums.add(&answer, prices);
        }
        match counted.len() > MOST_ANSWERS {
            true => ControlFlow::Break(too_many()),
            false => ControlFlow::Continue(()),
        }
    };
    if let ControlFlow::Break(error) =
        parallel::map_in_order(sessions.len(), plan, || (), read, take)
    {
        return Err(error);
    }
    let rows = groups.into_iter();
    usage.rows = rows
        .map(|(key, (title, sums))| Row { key, title, sums })
        .collect();
    if request.by != By::Day {
        usage.rows.sort_by(|one, other| {
            let cost = |row: &Row| row.sums.cost.known().unwrap_or_default();
            let by_cost = cost(other).total_cmp(&cost(one));
            by_cost.then_with(|| other.sums.all_tokens().cmp(&one.sums.all_tokens()))
        });
    }
    Ok(usage)
}

/// The sessions to read, ordered by the time at which they were created.
fn sessions(store: &Store, request: &Request) -> Result<Vec<Arc<CatalogueRow>>> {
    let rows = store.rows()?;
    let conversations = Conversations::of(&rows);
    let imported: HashSet<&str> = rows
        .iter()
        .filter(|row| row.listing.source.is_some())
        .filter_map(|row| Some(row.listing.header.as_ref()?.id.as_str()))
        .collect();
    // An older program may have recorded a conversation in one session and imported it into another. Only the import
    // counts.
    let is_repeated = |row: &CatalogueRow| {
        row.listing.source.is_none()
            && conversations
                .others(&row.listing)
                .iter()
                .any(|other| imported.contains(other.as_str()))
    };
    let is_taken = |row: &&Arc<CatalogueRow>| {
        let header = row.listing.header.as_ref();
        header.is_some_and(|header| request.takes_directory(&header.cwd)) && !is_repeated(row)
    };
    let mut taken: Vec<Arc<CatalogueRow>> = rows.iter().filter(is_taken).cloned().collect();
    taken.sort_by(|one, other| {
        let key = |row: &CatalogueRow| (row.listing.created, row.listing.path.clone());
        key(one).cmp(&key(other))
    });
    Ok(taken)
}

/// The answers in a session file. Copies of other answers in the file are left out.
fn answers(location: Location) -> Result<Vec<Answer>> {
    let opened = Log::open(location)?;
    let (tree, bodies) = (&opened.tree, opened.log.bodies());
    let (mut reader, mut answers) = (bodies.reader(), Vec::new());
    for node in tree.entries().filter(|node| may_be_answer(tree, *node)) {
        let is_answer = tree.role(node) == Role::Assistant;
        let fetch = bodies.fetch(tree, node)?;
        let answer = reader.see_entry(&fetch, |entry| {
            let may_say = is_answer || says_usage(entry);
            may_say.then(|| Answer::read(entry, tree)).flatten()
        })?;
        answers.extend(answer);
    }
    Ok(answers)
}

fn may_be_answer(tree: &Tree, node: Node) -> bool {
    matches!(
        tree.kind(node),
        Kind::Message | Kind::Compaction | Kind::BranchSummary | Kind::Usage
    )
}

/// Whether an entry may have the member `usage`. Its name may be written with escapes.
fn says_usage(entry: &[u8]) -> bool {
    memmem::find(entry, b"usage").is_some() || memmem::find(entry, b"\\u").is_some()
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::InvalidParams,
        format!(
            "there are more than {MOST_ANSWERS} answers: count those of a directory, or since a day"
        ),
    )
}

impl Request {
    fn takes(&self, answer: &Answer) -> bool {
        self.since
            .is_none_or(|since| answer.at.is_some_and(|at| at >= since))
    }

    fn takes_directory(&self, cwd: &str) -> bool {
        let Some(wanted) = self.cwd.as_deref().map(name::directory) else {
            return true;
        };
        let cwd = name::directory(cwd);
        let below = cwd.strip_prefix(&*wanted);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/') || &*wanted == "/")
    }
}

impl By {
    fn key(self, session: &CatalogueRow, answer: &Answer) -> String {
        let header = session.listing.header.as_ref();
        match self {
            Self::Day => answer.at.map_or_else(|| NO_DAY.to_owned(), day),
            Self::Model if answer.provider.is_empty() => answer.model.clone(),
            Self::Model => format!("{}/{}", answer.provider, answer.model),
            Self::Tool => answer.tool.clone(),
            Self::Session => header.map(|header| header.id.clone()).unwrap_or_default(),
            Self::Directory => header.map(|header| header.cwd.clone()).unwrap_or_default(),
        }
    }

    fn title(self, session: &CatalogueRow) -> Option<String> {
        let listing = &session.listing;
        let title = listing.name.as_ref().unwrap_or(&listing.first_message);
        (self == Self::Session).then(|| title.clone())
    }
}

/// The day of a time, such as `2026-11-22`.
fn day(at: Millis) -> String {
    timestamp::format(at)
        .chars()
        .take_while(|char| *char != 'T')
        .collect()
}
