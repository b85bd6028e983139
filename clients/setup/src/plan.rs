//! The plan: the text of each file before and after, and the steps that a person must do.

use crate::agent::Agent;
use crate::file;
use crate::json::Presence;
use crate::pieces::Piece;
use crate::program::{self, Program};
use crate::record::{Change, Record};
use crate::refusal::Refusal;
use crate::targets::Target;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// One step.
pub(crate) struct Step {
    pub(crate) agent: Agent,
    pub(crate) path: PathBuf,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// The step changes nothing.
    Nothing,
    /// The file gets another text. `before` is its present text, and `base` its text before any setup; both are `None`
    /// if there was no file. The file is removed if `after` is `None`.
    Edit {
        before: Option<String>,
        base: Option<String>,
        after: Option<String>,
    },
    /// A link is made.
    Link(PathBuf),
    /// The link is removed.
    Unlink(PathBuf),
    /// Setup cannot change the file, for this reason. A person adds these lines, or removes them.
    Manual { reason: String, lines: String },
    /// A step for a person in addition to the other steps.
    Advice { reason: String, lines: String },
}

/// The steps that add the missing pieces.
pub(crate) fn adding(targets: &[Target], program: &Program, record: &Record) -> Vec<Step> {
    let steps = targets.iter().flat_map(|target| {
        let what = match &target.piece {
            Piece::Link(to) => Ok(link(&target.path, to)),
            _ => add(target, program, record),
        };
        let advice = |text: &str| target.piece.advice(program, text);
        let lines = || target.piece.lines(program);
        with_advice(target.agent, &target.path, what, lines, advice)
    });
    steps.collect()
}

/// The steps that remove the pieces that setup has added.
pub(crate) fn removing(targets: &[Target], program: &Program, record: &Record) -> Vec<Step> {
    let steps = targets.iter().flat_map(|target| {
        let what = match &target.piece {
            Piece::Link(to) => Ok(unlink(&target.path, to)),
            piece => remove(&target.path, &[piece], program, record),
        };
        let rest = |text: &str| target.piece.rest(program, text);
        let lines = || target.piece.lines(program);
        with_advice(target.agent, &target.path, what, lines, rest)
    });
    let links_first = |step: &Step| !matches!(step.what, What::Unlink(_));
    let mut steps: Vec<Step> = steps
        .chain(removing_elsewhere(targets, program, record))
        .collect();
    steps.sort_by_key(links_first);
    steps
}

/// The steps that remove pieces from files that are no longer targets. When the pieces were written, a variable named
/// another folder, or the agent used another file.
fn removing_elsewhere(targets: &[Target], program: &Program, record: &Record) -> Vec<Step> {
    let mut steps = Vec::new();
    for (path, change) in &record.files {
        let mut of_agent = targets
            .iter()
            .filter(|it| it.agent == change.agent)
            .peekable();
        if of_agent.peek().is_none() || targets.iter().any(|target| target.path == *path) {
            continue;
        }
        let alike = of_agent.filter(|target| kind(&target.path) == kind(path));
        let pieces: Vec<&Piece> = alike.map(|target| &target.piece).collect();
        let what = remove(path, &pieces, program, record);
        let lines = || change.inserted();
        let rest = |text: &str| pieces.iter().find_map(|piece| piece.rest(program, text));
        steps.extend(with_advice(change.agent, path, what, lines, rest));
        // The link that enables a unit is in a folder beside the unit.
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            let (path, to) = program::wants(folder, name);
            let what = unlink(&path, &to);
            let agent = change.agent;
            steps.extend(matches!(what, What::Unlink(_)).then_some(Step { agent, path, what }));
        }
    }
    steps
}

/// The extension of a file's name, which shows the format of the file.
fn kind(path: &Path) -> Option<&OsStr> {
    path.extension().map(|ending| match ending == "jsonc" {
        true => OsStr::new("json"),
        false => ending,
    })
}

/// A step, followed by the step that a person may do after it. `lines` are for a person who does all steps by hand.
fn with_advice(
    agent: Agent,
    path: &Path,
    what: Result<What, Refusal>,
    lines: impl FnOnce() -> String,
    advice: impl FnOnce(&str) -> Option<(String, String)>,
) -> Vec<Step> {
    let what = what.unwrap_or_else(|refusal| What::Manual {
        reason: refusal.0,
        lines: lines(),
    });
    let end = match &what {
        What::Edit { after, .. } => after.clone(),
        What::Nothing => text(path).ok().flatten(),
        _ => None,
    };
    let advice = end.and_then(|text| advice(&text));
    let advice = advice.map(|(reason, lines)| What::Advice { reason, lines });
    let step = |what| Step {
        agent,
        path: path.to_owned(),
        what,
    };
    [Some(what), advice]
        .into_iter()
        .flatten()
        .map(step)
        .collect()
}

fn add(target: &Target, program: &Program, record: &Record) -> Result<What, Refusal> {
    let before = text(&target.path)?;
    let now = before.as_deref().unwrap_or_default();
    let piece = target.piece.for_text(now);
    let presence = match &before {
        None => Presence::Missing,
        Some(now) => piece.presence(program, now)?,
    };
    let base = match presence {
        Presence::Same | Presence::Theirs => return Ok(What::Nothing),
        Presence::Missing => before.clone(),
        // The pieces of an earlier setup are removed first.
        Presence::Older => match undone(target, record, now) {
            Some(base) => base,
            None => piece.remove(program, now)?,
        },
    };
    if let (None, Piece::Extension) = (&base, &piece) {
        return Err(Refusal::new("YAML is not edited"));
    }
    let after = piece.add(program, base.as_deref().unwrap_or_default())?;
    Ok(What::Edit {
        before,
        base,
        after: Some(after),
    })
}

fn remove(
    path: &Path,
    pieces: &[&Piece],
    program: &Program,
    record: &Record,
) -> Result<What, Refusal> {
    let Some(before) = text(path)? else {
        return Ok(What::Nothing);
    };
    let change = record.files.get(path);
    let after = match change.and_then(|change| change.undone(&before)) {
        Some(base) => base,
        None => pieces
            .iter()
            .try_fold(Some(before.clone()), |text, piece| match text {
                Some(text) => piece.remove(program, &text),
                None => Ok(None),
            })?,
    };
    if after.as_deref() != Some(before.as_str()) {
        return Ok(What::Edit {
            base: after.clone(),
            before: Some(before),
            after,
        });
    }
    // Only the record knows the commands of a program that has another name.
    let left = change.filter(|change| change.is_in(&before));
    Ok(left.map_or(What::Nothing, |change| What::Manual {
        reason: "it has changed since".to_owned(),
        lines: change.inserted(),
    }))
}

/// The text before setup, if nothing else has changed in the file. The inner `None` means that there was no file.
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

fn unlink(path: &Path, to: &Path) -> What {
    match has_link(path, to) {
        true => What::Unlink(to.to_owned()),
        false => What::Nothing,
    }
}

impl Step {
    /// Whether the step changes something.
    pub(crate) fn is_change(&self) -> bool {
        !matches!(
            self.what,
            What::Nothing | What::Manual { .. } | What::Advice { .. }
        )
    }

    /// Whether the file of the step is a unit of systemd.
    pub(crate) fn is_unit(&self) -> bool {
        let is_file = matches!(self.what, What::Edit { .. });
        is_file
            && self
                .path
                .extension()
                .is_some_and(|ending| ending == "service")
    }

    /// Writes into the record what the step will add.
    pub(crate) fn note(&self, record: &mut Record) {
        if let What::Edit { base, after, .. } = &self.what {
            match after {
                Some(after) if base.as_ref() != Some(after) => {
                    let change = Change::between(self.agent, base.as_deref(), after);
                    record.files.insert(self.path.clone(), change);
                }
                _ => {
                    record.files.remove(&self.path);
                }
            }
        }
    }

    /// Writes into the record that the file has no pieces of treelined, even if a person has removed them.
    pub(crate) fn note_removed(&self, record: &mut Record) {
        if !matches!(self.what, What::Manual { .. } | What::Advice { .. }) {
            record.files.remove(&self.path);
        }
    }

    /// Runs the step. Adds the folders that it makes to `made`, even if it fails.
    pub(crate) fn apply(&self, made: &mut Vec<PathBuf>) -> Result<(), Refusal> {
        let failed = |error: std::io::Error| Refusal::new(error.to_string());
        if let What::Edit { after: Some(_), .. } | What::Link(_) = &self.what {
            file::make_folders(&self.path, made).map_err(failed)?;
        }
        match &self.what {
            What::Edit { before, after, .. } => {
                let before = before.as_deref().map(str::as_bytes);
                match (before, after) {
                    (before, Some(after)) => file::write(&self.path, before, after.as_bytes()),
                    (Some(before), None) => file::remove(&self.path, before),
                    (None, None) => Ok(()),
                }
            }
            What::Link(to) => std::os::unix::fs::symlink(to, &self.path).map_err(failed),
            What::Unlink(to) if has_link(&self.path, to) => {
                fs::remove_file(&self.path).map_err(failed)
            }
            What::Unlink(_) | What::Nothing | What::Manual { .. } | What::Advice { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders made for a file that could not be written were once in no record, and so stayed for ever.
    #[test]
    fn the_folders_of_a_failed_step_are_known() {
        let folder = tempfile::tempdir().unwrap();
        // The name of the temporary file beside it is too long.
        let step = Step {
            agent: Agent::Pi,
            path: folder.path().join("a").join("b".repeat(250)),
            what: What::Edit {
                before: None,
                base: None,
                after: Some("x".to_owned()),
            },
        };
        let mut made = Vec::new();
        assert!(step.apply(&mut made).is_err());
        assert_eq!(made, [folder.path().join("a")]);
    }
}
