//! What would change: each file before and after, and what a person has to do by hand.

use crate::agents::{Agent, Target};
use crate::file;
use crate::json::Presence;
use crate::pieces::Piece;
use crate::program::Program;
use crate::record::{Change, Record};
use crate::refusal::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

/// One step.
pub(crate) struct Step {
    pub(crate) agent: Agent,
    pub(crate) path: PathBuf,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// Nothing is to be done.
    Nothing,
    /// The file gets another text. `before` is its present one, `base` the one before any setup, `None` without a file;
    /// the file is removed if `after` is `None`.
    Edit {
        before: Option<String>,
        base: Option<String>,
        after: Option<String>,
    },
    /// A link is made.
    Link(PathBuf),
    /// The link is removed.
    Unlink(PathBuf),
    /// Nothing is changed, for this reason; a person adds these lines, or removes them.
    Manual { reason: String, lines: String },
}

/// The steps that add what is missing.
pub(crate) fn adding(targets: &[Target], program: &Program, record: &Record) -> Vec<Step> {
    let what = |target: &Target| match &target.piece {
        Piece::Link(to) => Ok(link(&target.path, to)),
        _ => add(target, program, record),
    };
    steps(targets, program, &what)
}

/// The steps that take away what was added.
pub(crate) fn removing(targets: &[Target], program: &Program, record: &Record) -> Vec<Step> {
    let what = |target: &Target| match &target.piece {
        Piece::Link(to) => Ok(match has_link(&target.path, to) {
            true => What::Unlink(to.clone()),
            false => What::Nothing,
        }),
        _ => remove(target, program, record),
    };
    steps(targets, program, &what)
}

fn steps(
    targets: &[Target],
    program: &Program,
    what: &dyn Fn(&Target) -> Result<What, Refusal>,
) -> Vec<Step> {
    let step = |target: &Target| Step {
        agent: target.agent,
        path: target.path.clone(),
        what: what(target).unwrap_or_else(|refusal| What::Manual {
            reason: refusal.0,
            lines: target.piece.lines(program),
        }),
    };
    targets.iter().map(step).collect()
}

fn add(target: &Target, program: &Program, record: &Record) -> Result<What, Refusal> {
    let before = text(&target.path)?;
    let now = before.as_deref().unwrap_or_default();
    let presence = match &before {
        None => Presence::Missing,
        Some(now) => target.piece.presence(program, now)?,
    };
    let base = match presence {
        Presence::Same | Presence::Theirs => return Ok(What::Nothing),
        Presence::Missing => before.clone(),
        // What an earlier setup has written goes first.
        Presence::Older => match undone(target, record, now) {
            Some(base) => base,
            None => target.piece.remove(program, now)?,
        },
    };
    if let (None, Piece::Extension) = (&base, &target.piece) {
        return Err(Refusal::new("YAML is not edited"));
    }
    let after = target
        .piece
        .add(program, base.as_deref().unwrap_or_default())?;
    Ok(What::Edit {
        before,
        base,
        after: Some(after),
    })
}

fn remove(target: &Target, program: &Program, record: &Record) -> Result<What, Refusal> {
    let Some(before) = text(&target.path)? else {
        return Ok(What::Nothing);
    };
    let after = match undone(target, record, &before) {
        Some(base) => base,
        None => target.piece.remove(program, &before)?,
    };
    if after.as_deref() == Some(before.as_str()) {
        return Ok(What::Nothing);
    }
    Ok(What::Edit {
        base: after.clone(),
        before: Some(before),
        after,
    })
}

/// The text before setup, if nothing else has changed since; `None` in it if there was no file.
fn undone(target: &Target, record: &Record, now: &str) -> Option<Option<String>> {
    let change = record.files.get(&target.path)?;
    change.undone(now)
}

fn text(path: &Path) -> Result<Option<String>, Refusal> {
    let bytes = file::read(path)?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| Refusal::new("it is not text in UTF-8"))
}

fn link(path: &Path, to: &Path) -> What {
    match fs::symlink_metadata(path) {
        Err(_) => What::Link(to.to_owned()),
        Ok(_) if has_link(path, to) => What::Nothing,
        Ok(_) => What::Manual {
            reason: "something else is there".to_owned(),
            lines: format!("a link to {}", to.display()),
        },
    }
}

fn has_link(path: &Path, to: &Path) -> bool {
    fs::read_link(path).is_ok_and(|found| found == to)
}

impl Step {
    /// Whether it changes something.
    pub(crate) fn is_change(&self) -> bool {
        !matches!(self.what, What::Nothing | What::Manual { .. })
    }

    /// Whether its file is a unit of systemd.
    pub(crate) fn is_unit(&self) -> bool {
        let is_file = matches!(self.what, What::Edit { .. });
        is_file
            && self
                .path
                .extension()
                .is_some_and(|ending| ending == "service")
    }

    /// Notes in the record what the step will have changed.
    pub(crate) fn note(&self, record: &mut Record) {
        if let What::Edit { base, after, .. } = &self.what {
            match after {
                Some(after) if base.as_ref() != Some(after) => {
                    let change = Change::between(base.as_deref(), after);
                    record.files.insert(self.path.clone(), change);
                }
                _ => {
                    record.files.remove(&self.path);
                }
            }
        }
    }

    /// Does it. Returns the folders that were made.
    pub(crate) fn apply(&self) -> Result<Vec<PathBuf>, Refusal> {
        let failed = |error: std::io::Error| Refusal::new(error.to_string());
        let folders = match &self.what {
            What::Edit { after: Some(_), .. } | What::Link(_) => {
                file::make_folders(&self.path).map_err(failed)?
            }
            _ => Vec::new(),
        };
        match &self.what {
            What::Edit { before, after, .. } => {
                let before = before.as_deref().map(str::as_bytes);
                match (before, after) {
                    (before, Some(after)) => file::write(&self.path, before, after.as_bytes())?,
                    (Some(before), None) => file::remove(&self.path, before)?,
                    (None, None) => {}
                }
            }
            What::Link(to) => std::os::unix::fs::symlink(to, &self.path).map_err(failed)?,
            What::Unlink(to) if has_link(&self.path, to) => {
                fs::remove_file(&self.path).map_err(failed)?;
            }
            What::Unlink(_) | What::Nothing | What::Manual { .. } => {}
        }
        Ok(folders)
    }
}
