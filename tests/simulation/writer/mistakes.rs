//! Mistakes of a caller that break a fact of session-file.md §3.7, and the states in which a defect of the program breaks one.

use super::{Writer, choose};
use std::ffi::OsStr;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::durability::Durability;
use treelined_core::error::Result;
use treelined_core::flow::PlannedLines;
use treelined_core::flow::fork::{self, ForkSide};
use treelined_core::tree::Node;
use treelined_files::clock::SystemSource;
use treelined_files::log::append::{Lock, TryLock};
use treelined_files::log::late_writes::{Handover, ReplacedFile};
use treelined_files::log::rewrite;
use treelined_files::log::{Log, OpenedLog};
use treelined_files::os::file::{File, Location};
use treelined_files::os::time;
use treelined_files::session::fork::ForkContent;
use treelined_files::session::{Session, SessionState};

/// An entry with this id and parent.
fn line(id: &str, parent: Option<&str>, text: &str) -> Vec<u8> {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        r#"{{"type":"custom","id":"{id}","parentId":{parent},"timestamp":"2026-03-01T09:30:00.000Z","customType":"{text}"}}"#
    )
    .into_bytes()
}

fn planned(lines: Vec<Vec<u8>>) -> PlannedLines {
    PlannedLines {
        lines,
        ..PlannedLines::default()
    }
}

fn locked(log: &mut Log) -> Option<Lock> {
    match log.try_lock() {
        Ok(TryLock::Locked(lock)) => Some(lock),
        _ => None,
    }
}

impl Writer<'_> {
    pub(super) async fn mistake(&mut self, fact: &str) -> Result<()> {
        self.made += 1;
        let id = format!("m{}e{}", self.number, self.made);
        match fact {
            "An entry with a refused link is a root" => {
                self.plans(planned(vec![
                    line(&id, None, "c"),
                    line("self", Some("self"), "c"),
                ]))
                .await
            }
            "The parent of an entry is another entry, and not a leaf record" => {
                let record = line(&format!("{id}r"), None, "treelined.leaf");
                let below = line(&id, Some(&format!("{id}r")), "c");
                self.plans(planned(vec![record, below])).await
            }
            "A line with the id of an entry adds no entry, and moves none" => {
                self.plans(planned(vec![
                    line(&id, None, "c"),
                    line(&id, None, "other"),
                ]))
                .await
            }
            "No appended line has a line break inside, which would make two lines of it" => {
                self.plans(planned(vec![b"{\n}".to_vec()])).await
            }
            "No empty line is appended" => self.plans(planned(vec![Vec::new()])).await,
            "Each whole line of a write is in the tree, or a diagnostic says why not" => {
                self.plans(planned(vec![b" ".to_vec()])).await
            }
            "Each operation of a group ends at one of its lines, in the order of the lines" => {
                let lines = vec![line(&id, None, "c")];
                let ends = vec![2];
                self.plans(PlannedLines {
                    ends,
                    ..planned(lines)
                })
                .await
            }
            "An operation in the background keeps the position where the file opens" => {
                let background = true;
                let lines = vec![line(&id, None, "c")];
                self.plans(PlannedLines {
                    background,
                    ..planned(lines)
                })
                .await
            }
            "Each line of a write ends with a line break" => {
                let guard = self.session().await?.guard(time::now(), ())?;
                match guard.log.needs_rewrite() {
                    true => Ok(()),
                    false => guard.make_file().await.map(drop),
                }
            }
            "Nothing is planned for a session that is open for reading only" => {
                let opened = self.some_log()?;
                let session = Session::new(opened, true, Durability::Os);
                let line = line(&id, None, "c");
                let plan = move |_: &SessionState| Ok(planned(vec![line.clone()]));
                self.commit(&session, plan).await.map(drop)
            }
            "The record of failed syncs is bounded" => self.fail_many_syncs().await,
            "A migrated entry is a whole line"
            | "A late line is passed only when it is in the new file, and read from there" => {
                self.write_late().await
            }
            "The read of a replaced file continues where it stopped" => self.hand_over().await,
            "No line of a new session file has a line break inside" => self.fork_with_break().await,
            _ => self.misuse_log(fact, &id),
        }
    }

    async fn plans(&mut self, lines: PlannedLines) -> Result<()> {
        let session = self.session().await?;
        let mut lines = Some(lines);
        let plan = move |_: &SessionState| Ok(lines.take().unwrap_or_default());
        self.commit(&session, plan).await.map(drop)
    }

    fn some_log(&self) -> Result<OpenedLog> {
        let known = self.book.lock().sessions.clone();
        Log::open(self.store.find(&known[choose(known.len())])?)
    }

    /// Calls the log in a way that the session never does.
    fn misuse_log(&self, fact: &str, id: &str) -> Result<()> {
        let OpenedLog {
            mut log, mut tree, ..
        } = self.some_log()?;
        let (Some(lock), Some(at)) = (locked(&mut log), log.location().cloned()) else {
            return Ok(());
        };
        let is_old = log.needs_rewrite();
        match fact {
            "Lines are appended only to files of version 3" if is_old => {
                log.write(&lock, vec![line(id, None, "c")]).map(drop)
            }
            "Only a file of version 1 or 2 is migrated" if !is_old => log.rewrite(&lock, &tree),
            "No temporary file replaces another temporary file" => {
                let name = OsStr::new(".s.0123456789abcdef.treelined.tmp").to_owned();
                let to = Location { name, ..at.clone() };
                rewrite::replace(&at, &to, |out| out.write_all(b"x"))
            }
            "No file replaces a session file while it is empty" => {
                rewrite::replace(&at, &at, |_| Ok(()))
            }
            "The path to the position where the file opens is never shed" if !is_old => {
                let head = tree.ancestors(tree.file_leaf()).last();
                log.shed(&lock, &tree, head.into_iter().collect(), &SystemSource)
                    .map(drop)
            }
            "The path of the leaf is never shed" if !is_old => {
                let opens = tree.file_leaf();
                let is_beside = |head: &Node| opens.is_none_or(|at| !tree.is_ancestor(*head, at));
                let Some(head) = tree.entries().find(is_beside) else {
                    return Ok(());
                };
                tree.set_leaf(Some(head));
                log.shed(&lock, &tree, vec![head], &SystemSource).map(drop)
            }
            "A branch that comes back has a record in the session file" if !is_old => {
                let missing = ["missing".to_owned()].into_iter().collect();
                log.unshed(&lock, &tree, &missing, None)
            }
            _ => Ok(()),
        }
    }

    /// Appends while every second sync fails, so that the lost bytes are never beside each other.
    async fn fail_many_syncs(&mut self) -> Result<()> {
        self.durability = Durability::Always;
        self.create_in(super::some_project()).await?;
        let session = self.last();
        for round in 0..140 {
            self.world.break_syncs((round % 2 == 0).then_some(1));
            if let Err(error) = self.append_to(&session).await
                && error.kind == treelined_core::error::Kind::InternalError
            {
                return Err(error);
            }
        }
        self.world.break_syncs(None);
        Ok(())
    }

    /// Makes a session of version 2. Returns its id, and its file.
    fn old_file(&self) -> (String, File) {
        let id = format!("old{}-{}", self.number, self.made);
        let name = format!("2026-01-01T00-00-00-000Z_{id}.jsonl");
        let header = format!(
            r#"{{"type":"session","version":2,"id":"{id}","timestamp":"t","cwd":"/home/ada/project"}}"#
        );
        let file = self.make(&name, &format!("{header}\n"));
        (id, file)
    }

    /// Appends to a file of version 2 after its migration.
    async fn write_late(&mut self) -> Result<()> {
        let (id, old) = self.old_file();
        let session = self.opened(&id)?;
        self.append_to(&session).await?;
        let mut late = line("late", None, "c");
        late.push(b'\n');
        let _written = (&old).write(&late);
        drop(old);
        self.commit_nothing(&session).await
    }

    /// Follows a replaced file from behind its end on.
    async fn hand_over(&mut self) -> Result<()> {
        let session = self.session().await?;
        let (id, old) = self.old_file();
        let OpenedLog { log, tree, .. } = Log::open(self.store.find(&id)?)?;
        let handed = Handover {
            carried_to: 1000,
            tail_kept_to: 0,
            remaining: Duration::ZERO,
        };
        let Some(replaced) = ReplacedFile::taken_over(log, tree, handed) else {
            return Ok(());
        };
        session.guard(time::now(), ())?.take_over(replaced);
        let _written = (&old).write(&[b'{'; 2000]);
        self.commit_nothing(&session).await
    }

    /// Makes a fork whose header is two lines.
    async fn fork_with_break(&mut self) -> Result<()> {
        let session = self.session().await?;
        let (guard, _) = session.guard(time::now(), ())?.refreshed().await?;
        let Some(tip) = guard.leaf() else {
            return Ok(());
        };
        let end = fork::end(&guard.tree, Some(tip), Some(ForkSide::At))?;
        let copy = ForkContent::prepare(&guard, end, &[], None, &SystemSource)?;
        drop(guard);
        let header = self.header(super::some_project());
        let at = self.store.place(&header)?;
        let mut text = Log::create(at.clone(), header).header_line();
        text.insert(1, b'\n');
        let made = copy.to_file(at, text, false)?;
        drop(Arc::clone(&made.file));
        Ok(())
    }
}
