//! A writer: a process that calls the verbs of `treelined-files`, one after the other, as a seed chooses them.

mod lockless;
mod mistakes;

use crate::book::{Acked, Book};
use crate::history::{SESSIONS, Setting};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use treelined_core::defect;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::{self, NewEntry};
use treelined_core::flow::fork::{self, ForkSide};
use treelined_core::flow::navigate::{self, Navigation};
use treelined_core::flow::{PlannedLines, branch};
use treelined_core::id::Source;
use treelined_core::tree::Node;
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::log::header::Header;
use treelined_files::log::repair::repair;
use treelined_files::log::{Log, OpenedLog};
use treelined_files::os::file::{File, Folder};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::simulated::{self, World};
use treelined_files::os::time;
use treelined_files::session::fork::ForkContent;
use treelined_files::session::shed::ColdMove;
use treelined_files::session::sync::UnsyncedFile;
use treelined_files::session::{Session, SessionState};
use treelined_files::store::Store;

/// The verbs of a writer that mostly moves branches and sessions.
const MOVES: [usize; 12] = [0, 15, 16, 18, 19, 20, 22, 22, 22, 23, 24, 24];

/// Longer than the interval of the durability `interval`.
const THINK: Duration = Duration::from_millis(60);

pub struct Writer<'h> {
    pub number: usize,
    pub world: &'h World,
    pub book: &'h Book,
    pub setting: &'h Setting,
    store: Arc<Store>,
    pub durability: Durability,
    open: Vec<Arc<Session>>,
    /// The number of entries and sessions that this writer has made.
    made: usize,
    /// The sessions of which a sync has failed after its answers.
    failed_late: Arc<Mutex<BTreeSet<String>>>,
    /// The file of a writer without a lock, which it keeps open.
    kept: Option<(String, File)>,
}

/// Runs the calls of a process, whose timers use the simulated clock.
pub fn block_on<T>(calls: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(calls)
}

fn choose(end: usize) -> usize {
    usize::try_from(simulated::choose(end as u64)).unwrap()
}

/// The directories of the sessions that are made.
pub const PROJECTS: [&str; 2] = ["/home/ada/project", "/home/ada/other"];

fn some_project() -> &'static str {
    PROJECTS[choose(PROJECTS.len())]
}

impl<'h> Writer<'h> {
    pub fn new(number: usize, world: &'h World, book: &'h Book, setting: &'h Setting) -> Self {
        let durability = [Durability::Always, Durability::Interval, Durability::Os];
        Self {
            number,
            world,
            book,
            setting,
            store: Arc::new(Store::new(PathBuf::from(SESSIONS))),
            durability: durability[choose(3)],
            open: Vec::new(),
            made: 0,
            failed_late: Arc::default(),
            kept: None,
        }
    }

    /// Runs all verbs of this writer.
    pub fn run(mut self) {
        block_on(async {
            for _ in 0..4 + choose(10) {
                let done = match self.setting.lockless == Some(self.number) {
                    true => self.lockless_append(),
                    false => self.step().await,
                };
                if let Err(error) = done {
                    simulated::note(|| format!("{:?} {}", error.kind, error.message));
                    self.judge(&error);
                    // A fact does not hold.
                    if error.kind == Kind::InternalError {
                        return;
                    }
                }
            }
            if self.setting.lockless.is_some() {
                self.follow_late_lines().await;
            }
            while let Some(session) = self.open.pop() {
                self.close(session).await;
            }
        });
        self.book.lock().ended.insert(self.number);
    }

    /// Records an answer that cannot be right on a disk that does not fail, or a defect.
    fn judge(&self, error: &Error) {
        let is_wrong = match error.kind {
            Kind::InternalError => true,
            Kind::DurabilityUnknown => !self.setting.breaks,
            // A file may be deleted between the search for it and its opening.
            Kind::StorageFull | Kind::StorageIo => {
                !self.setting.fills && !self.setting.deletes && !self.setting.breaks
            }
            _ => false,
        };
        if is_wrong {
            let fault = format!("writer {}: {:?} {}", self.number, error.kind, error.message);
            self.book.lock().faults.push(fault);
        }
    }

    /// Calls a verb, or makes the mistake that breaks a fact.
    async fn step(&mut self) -> Result<()> {
        match defect::broken() {
            Some(fact) if choose(3) == 0 => self.mistake(fact).await,
            _ => self.verb().await,
        }
    }

    async fn verb(&mut self) -> Result<()> {
        let verb = match self.setting.moves {
            true => MOVES[choose(MOVES.len())],
            false => choose(30),
        };
        simulated::note(|| format!("verb {verb}"));
        match verb {
            0..=12 => self.append().await,
            13 | 14 => self.create_in(some_project()).await,
            15 | 16 => self.navigate().await,
            17 => self.fork().await,
            18 if self.setting.lockless.is_none() => {
                if let Some(session) = self.open.pop() {
                    self.close(session).await;
                }
                Ok(())
            }
            19 if self.setting.deletes => self.trash().await,
            20 if self.setting.deletes => self.restore(),
            21 if self.setting.lockless.is_none() => self.repair(),
            22 | 23 => self.shed().await,
            24 | 28 | 29 => self.unshed().await,
            25 if self.setting.fills => {
                let free = (choose(2) == 0).then(|| choose(6000) as u64);
                self.world.limit_space(free);
                Ok(())
            }
            26 if self.setting.breaks => {
                let one_in = (choose(3) > 0).then(|| 2 + choose(30) as u64);
                match choose(2) {
                    0 => self.world.break_disk(one_in),
                    _ => self.world.break_syncs(one_in.map(|one_in| one_in / 4 + 1)),
                }
                Ok(())
            }
            _ => {
                self.think(THINK).await;
                Ok(())
            }
        }
    }

    /// Lets the timers of this writer run.
    pub async fn pause(&self) {
        self.think(THINK).await;
    }

    /// Lets other writers run, and then the timers of this one.
    async fn think(&self, pause: Duration) {
        let until = self.book.moment();
        simulated::sleep(pause);
        tokio::time::sleep(pause).await;
        simulated::check();
        self.note_late_failures();
        if self.durability != Durability::Os {
            self.book.made_durable(self.number, None, until);
        }
    }

    /// Calls nothing durable that may have been in a failed sync.
    fn note_late_failures(&self) {
        for session in std::mem::take(&mut *self.failed_late.lock().unwrap()) {
            self.book.sync_failed(self.number, &session);
        }
    }

    /// The callback of a session for a sync that fails after its answers.
    fn on_late_failure(&self, session: &Session) -> impl FnOnce() + Send + 'static {
        let (failed, id) = (
            Arc::clone(&self.failed_late),
            session.id.as_str().to_owned(),
        );
        move || {
            failed.lock().unwrap().insert(id);
        }
    }

    async fn session(&mut self) -> Result<Arc<Session>> {
        let known = self.book.lock().sessions.clone();
        self.opened(&known[choose(known.len())])
    }

    pub fn opened(&mut self, id: &str) -> Result<Arc<Session>> {
        if let Some(open) = self.open.iter().find(|open| open.id.as_str() == id) {
            return Ok(Arc::clone(open));
        }
        let opened = self.store.open(self.store.find(id)?, &Cancel::new())?;
        Ok(self.keep(opened))
    }

    fn keep(&mut self, opened: OpenedLog) -> Arc<Session> {
        let session = Session::new(opened, false, self.durability);
        self.open.push(Arc::clone(&session));
        session
    }

    async fn close(&self, session: Arc<Session>) {
        let until = self.book.moment();
        if let Err(error) = session.syncer.flush().await {
            self.book.sync_failed(self.number, session.id.as_str());
            return self.judge(&error);
        }
        self.note_late_failures();
        if self.durability != Durability::Os {
            let id = session.id.as_str();
            self.book.made_durable(self.number, Some(id), until);
        }
    }

    async fn commit<P>(&self, session: &Session, plan: P) -> Result<(Vec<String>, bool)>
    where
        P: FnMut(&SessionState) -> Result<PlannedLines> + Send + 'static,
    {
        session.check_version()?;
        session.syncer.check()?;
        let guard = session.guard(time::now(), ())?;
        let (_, _, outcome) = guard.commit(&Cancel::new(), plan).await;
        let outcome = outcome?;
        // The first write is synced with its folder, with any durability.
        let is_first = outcome.wrote && outcome.unsynced.is_none();
        if let Some(file) = outcome.unsynced {
            let syncer = &session.syncer;
            let durability = syncer.durability();
            let failed = self.on_late_failure(session);
            syncer.after_write(durability, file, failed).await?;
        }
        let ids = outcome.entry_ids.iter().map(|id| id.as_str().to_owned());
        Ok((ids.collect(), is_first))
    }

    /// Reads what others have appended, and carries over late lines.
    pub async fn commit_nothing(&self, session: &Session) -> Result<()> {
        let plan = |_: &SessionState| Ok(PlannedLines::default());
        self.commit(session, plan).await.map(drop)
    }

    fn text(&mut self) -> (String, Vec<u8>) {
        self.made += 1;
        let tag = format!("<{}.{}>", self.number, self.made);
        let most = [20, 700, 9000][choose(3)];
        let filler = "x".repeat(choose(most));
        let text = format!(r#"{{"role":"user","content":"{tag}{filler}"}}"#);
        (tag, text.into_bytes())
    }

    async fn append(&mut self) -> Result<()> {
        let session = self.session().await?;
        self.append_to(&session).await
    }

    pub async fn append_to(&mut self, session: &Session) -> Result<()> {
        let texts: Vec<_> = (0..1 + choose(3)).map(|_| self.text()).collect();
        let entries = texts.iter().map(|(_, text)| NewEntry::message(text));
        let entries = entries.collect::<Result<Vec<_>>>()?;
        let plan = move |core: &SessionState| {
            append::plan(&core.tree, &SystemSource, &entries, &|node| {
                core.entry(node)
            })
        };
        let began = self.book.moment();
        let (ids, is_first) = self.commit(session, plan).await?;
        let answered = self.book.moment();
        simulated::note(|| {
            format!(
                "{began}-{answered} appended {ids:?} to {} {:?} {is_first}",
                session.id, self.durability
            )
        });
        self.book.did("append");
        let mut pages = self.book.lock();
        for (id, (tag, _)) in ids.into_iter().zip(texts) {
            pages.acked.push(Acked {
                session: session.id.as_str().to_owned(),
                id,
                tag,
                writer: self.number,
                began,
                answered,
                is_durable: is_first || self.durability == Durability::Always,
                is_doubtful: false,
                is_lockless: false,
            });
        }
        Ok(())
    }

    fn header(&mut self, project: &str) -> Header {
        self.made += 1;
        let id = format!("n{}-{}", self.number, self.made);
        Header::new(&id, SystemSource.now_ms(), project, None)
    }

    /// The session that this writer has opened last.
    pub fn last(&self) -> Arc<Session> {
        Arc::clone(self.open.last().unwrap())
    }

    /// The session that was made last.
    pub fn newest(&mut self) -> Result<Arc<Session>> {
        let id = self.book.lock().sessions.last().cloned();
        self.opened(&id.unwrap())
    }

    /// The folder of the sessions of the first project.
    fn folder(&self) -> Arc<Folder> {
        let root = Arc::new(Folder::open(Path::new(SESSIONS)).unwrap());
        Arc::new(root.subfolder("--home-ada-project--".as_ref()).unwrap())
    }

    /// Makes a file as another program does, and keeps it open for appending.
    pub fn make(&self, name: &str, text: &str) -> File {
        let file = self.folder().create(name.as_ref()).unwrap();
        (&file).write_all(text.as_bytes()).unwrap();
        file
    }

    pub fn text_of(&self, name: &str) -> String {
        let file = self.folder().file(name.as_ref(), HandleAccess::Read);
        let mut text = String::new();
        (&file.unwrap()).read_to_string(&mut text).unwrap();
        text
    }

    pub async fn create_in(&mut self, project: &str) -> Result<()> {
        let header = self.header(project);
        let (id, store) = (header.id.clone(), Arc::clone(&self.store));
        let claimed = id.clone();
        let log = Log::create(self.store.place(&header)?, header);
        let log = log.claimed_by(Box::new(move || store.claim(&claimed)));
        let session = self.keep(OpenedLog {
            log,
            tree: treelined_core::tree::Tree::new(),
            diagnostics: Vec::new(),
        });
        let made = self.append_to(&session).await;
        // A file whose name could not be synced stays.
        let is_there = |error: &Error| error.kind == Kind::DurabilityUnknown;
        if made.as_ref().err().is_none_or(is_there) {
            self.book.did("create");
            self.book.lock().sessions.push(id);
        }
        made
    }

    fn some_entry(core: &SessionState) -> Option<Node> {
        let entries: Vec<Node> = core.tree.entries().collect();
        (!entries.is_empty()).then(|| entries[choose(entries.len())])
    }

    async fn navigate(&mut self) -> Result<()> {
        let session = self.session().await?;
        let plan = move |core: &SessionState| {
            let Some(target) = Self::some_entry(core) else {
                return Ok(PlannedLines::default());
            };
            match navigate::plan(&core.tree, target, choose(2) == 0) {
                Navigation::AlreadyThere => Ok(PlannedLines::default()),
                Navigation::Move(plan) => {
                    navigate::commit(&core.tree, &SystemSource, &plan, None, None)
                }
            }
        };
        self.commit(&session, plan).await.map(drop)
    }

    async fn fork(&mut self) -> Result<()> {
        let session = self.session().await?;
        self.fork_of(&session).await
    }

    pub async fn fork_of(&mut self, session: &Session) -> Result<()> {
        let (guard, _) = session.guard(time::now(), ())?.refreshed().await?;
        let Some(tip) = guard.leaf() else {
            return Ok(());
        };
        let path: Vec<String> = guard
            .tree
            .ancestors(Some(tip))
            .map(|node| guard.tree.id(node).to_owned())
            .collect();
        let end = fork::end(&guard.tree, Some(tip), Some(ForkSide::At))?;
        let copy = ForkContent::prepare(&guard, end, &[], None, &SystemSource)?;
        drop(guard);
        let header = self.header(some_project());
        let at = self.store.place(&header)?;
        let claimed = self.store.claim(&header.id)?;
        let folder = Arc::clone(&at.folder);
        let id = header.id.clone();
        let line = Log::create(at.clone(), header).header_line();
        let synced = self.durability == Durability::Always;
        let began = self.book.moment();
        let made = copy.to_file(at, line, synced)?;
        drop(claimed);
        let fork = self.keep(made.opened);
        if !synced {
            let new = UnsyncedFile::made(made.file, folder);
            fork.syncer.after_making(new, self.on_late_failure(&fork));
        }
        let answered = self.book.moment();
        self.book.did("fork");
        let mut pages = self.book.lock();
        let source = session.id.as_str();
        let on_path = pages
            .acked
            .iter()
            .filter(|acked| acked.session == source && path.contains(&acked.id));
        let mut copies: Vec<Acked> = on_path.cloned().collect();
        for copied in &mut copies {
            copied.session.clone_from(&id);
            copied.writer = self.number;
            copied.is_durable = synced;
            copied.is_lockless = false;
            // Together they are one operation, so their order is that of the path.
            (copied.began, copied.answered) = (began, answered);
        }
        pages.acked.extend(copies);
        pages.sessions.push(id);
        Ok(())
    }

    async fn trash(&mut self) -> Result<()> {
        let known = self.book.lock().sessions.clone();
        self.trash_of(&known[choose(known.len())]).await
    }

    pub async fn trash_of(&mut self, id: &str) -> Result<()> {
        let at = self.store.find(id)?;
        self.book.lock().deleted.insert(id.to_owned());
        let is_it = |open: &mut Arc<Session>| open.id.as_str() == id;
        for session in self.open.extract_if(.., is_it).collect::<Vec<_>>() {
            self.close(session).await;
        }
        self.store.trash(&at)?;
        self.book.did("trash");
        Ok(())
    }

    fn restore(&mut self) -> Result<()> {
        let deleted: Vec<String> = self.book.lock().deleted.iter().cloned().collect();
        match deleted.is_empty() {
            true => Ok(()),
            false => self.restore_of(&deleted[choose(deleted.len())]),
        }
    }

    pub fn restore_of(&self, id: &str) -> Result<()> {
        self.store.restore(id, None)?;
        self.book.did("restore");
        Ok(())
    }

    fn repair(&mut self) -> Result<()> {
        let known = self.book.lock().sessions.clone();
        let at = self.store.find(&known[choose(known.len())])?;
        if repair(&at, false)?.replaced.is_some() {
            self.book.did("repair");
        }
        Ok(())
    }

    /// Makes a branch that is left, and moves it into the cold file of the session.
    pub async fn shed_one(&mut self) -> Result<()> {
        while !self.book.lock().done.contains_key("shed") {
            self.append().await?;
            self.navigate().await?;
            self.shed().await?;
        }
        Ok(())
    }

    /// Archives a branch, and moves all archived branches into the cold file.
    async fn shed(&mut self) -> Result<()> {
        let session = self.session().await?;
        let plan = move |core: &SessionState| {
            let tree = &core.tree;
            let is_left = |head: &Node| {
                let is_below = |at: Option<Node>| at.is_some_and(|at| tree.is_ancestor(*head, at));
                !is_below(tree.leaf()) && !is_below(tree.file_leaf())
            };
            let heads: Vec<Node> = tree.entries().filter(is_left).collect();
            match heads.is_empty() {
                true => Ok(PlannedLines::default()),
                false => branch::plan_archive(tree, &SystemSource, heads[choose(heads.len())], &[]),
            }
        };
        self.commit(&session, plan).await?;
        let guard = session.guard(time::now(), ())?;
        let moved = guard.move_cold(ColdMove::Shed, Vec::new(), Arc::new(SystemSource));
        if !moved.await?.2?.0.moved.is_empty() {
            self.book.did("shed");
        }
        Ok(())
    }

    async fn unshed(&mut self) -> Result<()> {
        let session = self.session().await?;
        let guard = session.guard(time::now(), ())?;
        let moved = guard.move_cold(ColdMove::Unshed(None), Vec::new(), Arc::new(SystemSource));
        if !moved.await?.2?.0.moved.is_empty() {
            self.book.did("unshed");
        }
        Ok(())
    }
}
