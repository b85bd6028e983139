//! Reads all sessions, and counts each answer once.

use crate::answer::Answer;
use crate::branch::{Division, Named};
use crate::prices::Prices;
use crate::sums::Sums;
use memchr::memmem;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
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
    /// The branches of each session.
    Branch,
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
    /// Only the session with this id counts.
    pub session: Option<String>,
}

/// The sums of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The day, the model, the tool, the directory, the id of the session, or the id of the last entry of the branch.
    pub key: String,
    /// If the group is a session: its name, or its first message. If it is a branch: its name.
    pub title: Option<String>,
    /// If the group is a branch: its place.
    pub branch: Option<BranchPlace>,
    pub sums: Sums,
}

/// The session of a branch, and whether the leaf is in the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchPlace {
    pub session_id: String,
    pub is_active: bool,
    /// Why the branch was left, if a note says it.
    pub reason: Option<String>,
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

/// The answers of a session file, and the branches that they are in if rows are branches.
#[derive(Default)]
struct SessionAnswers {
    /// Each answer with the index of its branch.
    answers: Vec<(Answer, Option<usize>)>,
    branches: HashMap<usize, Named>,
}

/// The sums so far.
#[derive(Default)]
struct Groups {
    /// The keys of the answers that were counted.
    counted: HashSet<u64>,
    /// The rows, by session and key. The session is empty unless rows are branches.
    rows: BTreeMap<(String, String), Row>,
    total: Sums,
}

/// Counts the answers of all sessions in the store. If several sessions have the same answer, the answer counts for the
/// session that was created first.
pub fn usage(store: &Store, request: &Request, prices: &Prices, cancel: &Cancel) -> Result<Usage> {
    let sessions = sessions(store, request)?;
    let read = |_: &mut (), number: usize| {
        let session = sessions.get(number)?;
        let path = &session.listing.path;
        let read = |location| answers(location, request.by == By::Branch);
        Some((session, Location::of_path(path).and_then(read)))
    };
    let mut groups = Groups::default();
    let mut unread = Vec::new();
    let plan = ThreadPlan::up_to(MAX_THREADS);
    let take = |read: Option<(&Arc<CatalogueRow>, Result<SessionAnswers>)>| {
        if cancel.is_cancelled() {
            return ControlFlow::Break(Error::cancelled());
        }
        let Some((session, answers)) = read else {
            return ControlFlow::Continue(());
        };
        match answers {
            Ok(answers) => groups.add(answers, request, prices, |answer| {
                request.by.row(session, answer)
            }),
            Err(error) => {
                let path = session.listing.path.clone();
                unread.push(UnreadFile { path, error });
            }
        }
        match groups.counted.len() > MOST_ANSWERS {
            true => ControlFlow::Break(too_many()),
            false => ControlFlow::Continue(()),
        }
    };
    if let ControlFlow::Break(error) =
        parallel::map_in_order(sessions.len(), plan, || (), read, take)
    {
        return Err(error);
    }
    Ok(Usage {
        total: groups.total,
        rows: sorted(groups.rows, request.by),
        unread,
    })
}

/// Counts the answers of one session file by branches. Answers count even if an earlier session has them.
pub fn branches(path: &Path, prices: &Prices) -> Result<Vec<Row>> {
    let found = answers(Location::of_path(path)?, true)?;
    let request = Request {
        by: By::Branch,
        cwd: None,
        since: None,
        session: None,
    };
    let mut groups = Groups::default();
    groups.add(found, &request, prices, |_| Row::of(String::new()));
    Ok(sorted(groups.rows, By::Branch))
}

fn sorted(rows: BTreeMap<(String, String), Row>, by: By) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.into_values().collect();
    if by != By::Day {
        rows.sort_by(|one, other| {
            let cost = |row: &Row| row.sums.cost.known().unwrap_or_default();
            let by_cost = cost(other).total_cmp(&cost(one));
            by_cost.then_with(|| other.sums.all_tokens().cmp(&one.sums.all_tokens()))
        });
    }
    rows
}

impl Groups {
    /// Adds the answers of one session. `row` makes the empty row of an answer.
    fn add(
        &mut self,
        found: SessionAnswers,
        request: &Request,
        prices: &Prices,
        row: impl Fn(&Answer) -> Row,
    ) {
        let answers = found.answers.into_iter();
        for (answer, branch) in answers.filter(|(answer, _)| request.takes(answer)) {
            if !self.counted.insert(answer.key) {
                continue;
            }
            self.total.add(&answer, prices);
            let mut row = row(&answer);
            if let Some(named) = branch.and_then(|branch| found.branches.get(&branch)) {
                row = row.of_branch(named);
            }
            let session = row.branch.as_ref().map(|place| place.session_id.clone());
            let key = (session.unwrap_or_default(), row.key.clone());
            self.rows
                .entry(key)
                .or_insert(row)
                .sums
                .add(&answer, prices);
        }
    }
}

impl Row {
    fn of(key: String) -> Self {
        Self {
            key,
            title: None,
            branch: None,
            sums: Sums::default(),
        }
    }

    /// The row of a branch, made from the row of its session.
    fn of_branch(self, named: &Named) -> Self {
        Self {
            title: Some(named.title.clone()),
            branch: Some(BranchPlace {
                session_id: self.key,
                is_active: named.is_active,
                reason: named.reason.clone(),
            }),
            ..Self::of(named.tip.clone())
        }
    }
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
        let is_wanted = |id: &str| request.session.as_ref().is_none_or(|wanted| wanted == id);
        header.is_some_and(|header| request.takes_directory(&header.cwd) && is_wanted(&header.id))
            && (request.session.is_some() || !is_repeated(row))
    };
    let mut taken: Vec<Arc<CatalogueRow>> = rows.iter().filter(is_taken).cloned().collect();
    if let Some(id) = request.session.as_deref().filter(|_| taken.is_empty()) {
        return Err(Error::session_not_found(id));
    }
    taken.sort_by(|one, other| {
        let key = |row: &CatalogueRow| (row.listing.created, row.listing.path.clone());
        key(one).cmp(&key(other))
    });
    Ok(taken)
}

/// The answers in a session file. Copies of other answers in the file are left out.
fn answers(location: Location, by_branch: bool) -> Result<SessionAnswers> {
    let opened = Log::open(location)?;
    let (tree, bodies) = (&opened.tree, opened.log.bodies());
    let division = by_branch.then(|| Division::of(tree));
    let (mut reader, mut answers) = (bodies.reader(), Vec::new());
    for node in tree.entries().filter(|node| may_be_answer(tree, *node)) {
        let is_answer = tree.role(node) == Role::Assistant;
        let fetch = bodies.fetch(tree, node)?;
        let answer = reader.see_entry(&fetch, |entry| {
            let may_say = is_answer || says_usage(entry);
            may_say.then(|| Answer::read(entry, tree)).flatten()
        })?;
        let branch = || division.as_ref()?.branch(node);
        answers.extend(answer.map(|answer| (answer, branch())));
    }
    let branches = match &division {
        Some(division) => {
            let used: BTreeSet<usize> = answers.iter().filter_map(|(_, branch)| *branch).collect();
            division.named(used.into_iter(), &mut reader)?
        }
        None => HashMap::new(),
    };
    Ok(SessionAnswers { answers, branches })
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
    /// The empty row of an answer of a session. If rows are branches, this is the row of the session.
    fn row(self, session: &CatalogueRow, answer: &Answer) -> Row {
        let listing = &session.listing;
        let header = listing.header.as_ref();
        let key = match self {
            Self::Day => answer.at.map_or_else(|| NO_DAY.to_owned(), day),
            Self::Model if answer.provider.is_empty() => answer.model.clone(),
            Self::Model => format!("{}/{}", answer.provider, answer.model),
            Self::Tool => answer.tool.clone(),
            Self::Session | Self::Branch => {
                header.map(|header| header.id.clone()).unwrap_or_default()
            }
            Self::Directory => header.map(|header| header.cwd.clone()).unwrap_or_default(),
        };
        let title = listing.name.as_ref().unwrap_or(&listing.first_message);
        Row {
            title: (self == Self::Session).then(|| title.clone()),
            ..Row::of(key)
        }
    }
}

/// The day of a time, such as `2026-11-22`.
fn day(at: Millis) -> String {
    timestamp::format(at)
        .chars()
        .take_while(|char| *char != 'T')
        .collect()
}
