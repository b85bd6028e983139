//! Changes the files of a root from one tree to another (files.md §5). The old files were saved before, in the safety
//! snapshot. Files are exchanged through the stage, a folder in the root ([`crate::place`]).

use crate::changes::{Change, Kind};
use crate::git::Shadow;
use crate::name::Name;
use crate::place::{self, Place};
use anyhow::{Context, anyhow, bail};
use rustix::fs::{self, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, ChildStdout};

/// The changes to make. The bytes of all `old` sides are in the safety snapshot.
pub struct Job<'a> {
    pub shadow: &'a Shadow,
    pub changes: &'a [Change],
    /// The modes that files had before, if this is an undo and they are known.
    pub modes: &'a BTreeMap<Name, u32>,
    /// The id of the restore: 16 hexadecimal digits.
    pub id: &'a str,
}

/// The result of the changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub written: usize,
    pub removed: usize,
    /// The files that were not changed, with the reasons.
    pub conflicts: Vec<(Name, String)>,
    /// Whether the stage has bytes that are saved nowhere else.
    pub keeps_stage: bool,
    /// The stages of killed restores, if a stage has bytes that are saved nowhere else.
    pub left: Vec<Name>,
}

/// Makes the changes. `step` is called before each change of the disk. If there is no room for the new files, nothing
/// is changed.
pub fn apply(job: &Job<'_>, step: &mut dyn FnMut()) -> anyhow::Result<Outcome> {
    step();
    let mut place = Place::open(&job.shadow.root, job.id)?;
    let all = || (0..job.changes.len()).map(staged);
    let filled = fill(job, &place, step).and_then(|refused| {
        step();
        place.filled().context("write to the root")?;
        Ok(refused)
    });
    let mut refused = match filled {
        Ok(refused) => refused,
        Err(error) => {
            place.discard(all());
            return Err(error.context("nothing was changed"));
        }
    };
    let mut outcome = Outcome::default();
    remove(job, &place, &mut refused, &mut outcome, step);
    write(job, &place, &mut refused, &mut outcome, step);
    for change in job.changes {
        place.sync(&change.name);
    }
    step();
    for (at, change) in job.changes.iter().enumerate() {
        let (staged, aside) = (staged(at), aside(at));
        // The file may be removed, because its bytes are saved: the old side in the safety snapshot, the new side in
        // the target.
        for side in [&change.old, &change.new].into_iter().flatten() {
            place.drop_staged(&staged, side);
            place.drop_staged(&aside, side);
        }
        step();
    }
    outcome.keeps_stage = place.close().is_err();
    let refused = refused.into_iter().filter_map(|(at, why)| {
        let change = job.changes.get(at)?;
        Some((change.name.clone(), why))
    });
    outcome.conflicts = refused.collect();
    Ok(outcome)
}

/// The reasons why changes are not made, by the indices of the changes.
type Refused = BTreeMap<usize, String>;

fn staged(at: usize) -> String {
    format!("n{at}")
}

fn aside(at: usize) -> String {
    format!("o{at}")
}

/// Writes all new files into the stage.
fn fill(job: &Job<'_>, place: &Place, step: &mut dyn FnMut()) -> anyhow::Result<Refused> {
    let mut refused = Refused::new();
    let mut contents = Contents::start(job.shadow)?;
    for (at, change) in job.changes.iter().enumerate() {
        let Some(new) = &change.new else {
            continue;
        };
        step();
        let failed = || format!("write {}", change.name);
        if new.kind == Kind::Link {
            let mut target = Vec::new();
            contents.copy(&new.id, &mut target).with_context(failed)?;
            fs::symlinkat(OsStr::from_bytes(&target), place.stage(), staged(at))
                .with_context(failed)?;
            continue;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = match new.kind {
            Kind::Program => 0o777,
            _ => 0o666,
        };
        let file = fs::openat(place.stage(), staged(at), flags, place::mode(mode));
        let mut file = File::from(file.with_context(failed)?);
        if let Err(why) = keep_mode(job, place, change, new.kind, &file) {
            refused.insert(at, why);
        }
        contents.copy(&new.id, &mut file).with_context(failed)?;
        file.sync_all().with_context(failed)?;
    }
    contents.end()?;
    Ok(refused)
}

/// Gives a new file the mode and owner of the file that it replaces.
fn keep_mode(
    job: &Job<'_>,
    place: &Place,
    change: &Change,
    kind: Kind,
    file: &File,
) -> Result<(), String> {
    let there = place.stat(&change.name);
    let known = job.modes.get(&change.name).copied();
    let mode = known.or_else(|| Some(place::mode_of(there.as_ref()?)));
    if let Some(stat) = &there {
        let (uid, gid) = (
            fs::Uid::from_raw(stat.st_uid),
            fs::Gid::from_raw(stat.st_gid),
        );
        let own = fs::fstat(file).map_err(|error| error.to_string())?;
        if (own.st_uid, own.st_gid) != (stat.st_uid, stat.st_gid) {
            fs::fchown(file, Some(uid), Some(gid))
                .map_err(|_| "it belongs to another user".to_owned())?;
        }
    }
    if let Some(mode) = mode {
        let mode = match kind {
            Kind::Program => mode | ((mode & 0o444) >> 2),
            _ => mode & !0o111,
        };
        let changed = fs::fchmod(file, place::mode(mode));
        changed.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn remove(
    job: &Job<'_>,
    place: &Place,
    refused: &mut Refused,
    outcome: &mut Outcome,
    step: &mut dyn FnMut(),
) {
    let written: Vec<&Name> = job
        .changes
        .iter()
        .filter(|change| change.new.is_some())
        .map(|change| &change.name)
        .collect();
    // The names are sorted, so all names below one folder follow each other.
    let is_needed = |folder: &[u8]| {
        let with_slash = [folder, b"/"].concat();
        let first = written.partition_point(|name| name.0 < with_slash);
        written.get(first).is_some_and(|name| name.is_below(folder))
    };
    for (at, change) in job.changes.iter().enumerate().rev() {
        let (Some(old), None) = (&change.old, &change.new) else {
            continue;
        };
        step();
        match place.take_away(&change.name, old, &aside(at), step) {
            Ok(()) => {
                outcome.removed += 1;
                step();
                place.remove_empty(&change.name, is_needed);
            }
            Err(why) => {
                refused.insert(at, why);
            }
        }
    }
}

fn write(
    job: &Job<'_>,
    place: &Place,
    refused: &mut Refused,
    outcome: &mut Outcome,
    step: &mut dyn FnMut(),
) {
    for (at, change) in job.changes.iter().enumerate() {
        let Some(new) = &change.new else {
            continue;
        };
        if refused.contains_key(&at) {
            continue;
        }
        step();
        let (staged, aside) = (staged(at), aside(at));
        let names = (staged.as_str(), aside.as_str());
        match place.put(&change.name, change.old.as_ref(), new, names, step) {
            Ok(()) => outcome.written += 1,
            Err(why) => {
                refused.insert(at, why);
            }
        }
    }
}

/// Reads the bytes of saved files. One process of git serves all reads.
struct Contents {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Contents {
    fn start(shadow: &Shadow) -> anyhow::Result<Contents> {
        let mut child = shadow.spawn(["cat-file", "--batch"])?;
        let to = child.stdin.take();
        let from = child.stdout.take().context("read from git cat-file")?;
        let from = BufReader::new(from);
        Ok(Contents { child, to, from })
    }

    fn copy(&mut self, id: &str, to: &mut impl Write) -> anyhow::Result<()> {
        let stdin = self.to.as_mut().context("write to git cat-file")?;
        writeln!(stdin, "{id}")?;
        stdin.flush()?;
        let mut head = String::new();
        self.from.read_line(&mut head)?;
        let words: Vec<&str> = head.split_whitespace().collect();
        let [found, "blob", size] = words.as_slice() else {
            bail!("the saved bytes are missing");
        };
        let size: u64 = size.parse()?;
        if *found != id {
            bail!("git cat-file answers about another file");
        }
        let copied = io::copy(&mut (&mut self.from).take(size), to)?;
        let mut end = [0];
        self.from.read_exact(&mut end)?;
        match copied == size {
            true => Ok(()),
            false => Err(anyhow!("the saved bytes are not whole")),
        }
    }

    fn end(mut self) -> anyhow::Result<()> {
        drop(self.to.take());
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
