//! Finds the files at an entry, and compares them with the present files.

use crate::changes::changes;
use crate::git::Shadow;
use crate::left_out;
use crate::name::Name;
use crate::record::{self, Record};
use crate::restore::{Plan, Target};
use crate::session::Opened;
use crate::show;
use crate::snapshot;
use crate::state::{Lock, Root, State, WAIT};
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// The record about the files at an entry, with its session and root.
pub struct Found {
    root: Root,
    session: String,
    entry: String,
    records: Vec<Record>,
    record: Record,
}

/// The saved files at an entry. It holds the lock of the root.
pub struct At {
    found: Found,
    lock: Lock,
    pub shadow: Shadow,
}

/// The root of a session. Fails if its files are not saved.
pub fn root_of(state: &State, opened: &Opened) -> anyhow::Result<Root> {
    let root = state.nearest(Path::new(&opened.cwd))?;
    root.with_context(|| {
        let cwd = show::safe(&opened.cwd);
        format!("the files of {cwd} are not saved; `treelined files on` begins it")
    })
}

impl Found {
    /// Finds the record for an entry, or for the leaf if no entry is named.
    pub async fn of(state: &State, opened: &Opened, entry: Option<&str>) -> anyhow::Result<Found> {
        let root = root_of(state, opened)?;
        let entry = opened.entry(entry).await?;
        let records = opened.records().await?;
        let record = opened.nearest(&records, &entry).await?.cloned();
        let record = record
            .with_context(|| format!("no files were saved at {} or before", show::safe(&entry)))?;
        if Path::new(&record.data.root) != root.path {
            bail!(
                "the files at {} were saved in {}, not in {}",
                show::safe(&entry),
                show::safe(&record.data.root),
                root.path.display()
            );
        }
        let session = opened.id.clone();
        Ok(Found {
            root,
            session,
            entry,
            records,
            record,
        })
    }
}

impl At {
    /// Takes the lock. Fails if the files were removed, or were saved on another machine.
    pub fn open(found: Found) -> anyhow::Result<At> {
        let lock = found.root.lock(WAIT)?;
        let shadow = found.root.shadow(&lock)?;
        if !found.record.is_kept(&shadow, &found.session) {
            bail!(
                "{} are not on this machine any more; they were dropped, or saved elsewhere",
                show::record(&found.record)
            );
        }
        Ok(At {
            found,
            lock,
            shadow,
        })
    }

    pub fn record(&self) -> &Record {
        &self.found.record
    }

    pub fn into_root(self) -> (Root, Lock) {
        (self.found.root, self.lock)
    }

    /// The target of a restore: only the files that the session has changed, or all files.
    pub fn target(&self, all: bool) -> anyhow::Result<Target> {
        let Found {
            session,
            entry,
            records,
            record,
            ..
        } = &self.found;
        let only = match all {
            true => None,
            false => Some(record::changed(&self.shadow, session, records)?),
        };
        Ok(Target {
            commit: record.data.commit.clone(),
            not_saved: left_out::named(&self.shadow, &record.data.commit)?.unwrap_or_default(),
            only,
            modes: BTreeMap::new(),
            session: Some(session.clone()),
            entry: Some(entry.clone()),
            undoes: None,
            redoes: false,
        })
    }

    /// The files of the plan that differ from the last record of the session, because another program has changed
    /// them since.
    fn outside(&self, plan: &Plan) -> anyhow::Result<BTreeSet<Name>> {
        let kept = self.found.records.iter().rev();
        let mut kept = kept.filter(|record| record.is_kept(&self.shadow, &self.found.session));
        let Some(last) = kept.next() else {
            return Ok(BTreeSet::new());
        };
        let changed = changes(&self.shadow, &last.data.tree, &plan.now)?;
        Ok(changed.into_iter().map(|change| change.name).collect())
    }

    /// Whether HEAD or the branch of the user's repository has changed since the record.
    pub fn has_moved(&self) -> anyhow::Result<bool> {
        let head = snapshot::head(&self.found.root.path)?;
        Ok(show::moved(self.record(), &head).is_some())
    }

    /// Writes what a restore would change.
    pub fn preview(&self, out: &mut impl Write, plan: &Plan) -> anyhow::Result<()> {
        writeln!(out, "{}", show::record(self.record()))?;
        show::plan(out, plan, &self.outside(plan)?)?;
        if let Some(moved) = show::moved(self.record(), &snapshot::head(&self.found.root.path)?) {
            writeln!(out, "{moved}")?;
        }
        Ok(())
    }

    /// Plans a restore to a target.
    pub fn plan(&self, target: &Target) -> anyhow::Result<Plan> {
        crate::restore::plan(&self.shadow, target, self.found.root.limits)
    }
}
