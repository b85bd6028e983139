//! Reads the name of a rollout file: `rollout-<time>-<thread>[_<rollout>].jsonl[.zst]`.

/// The ids in the name of a file.
#[derive(Debug, Default)]
pub(super) struct FileName {
    /// The id of the thread. If the file has another kind of name, the whole name.
    pub(super) thread: String,
    rollout: Option<String>,
    stem: String,
}

impl FileName {
    pub(super) fn parse(path: &str) -> Self {
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let stem = name.strip_suffix(".zst").unwrap_or(name);
        let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
        let (thread, rollout) = match stem.rsplit_once('_') {
            Some((before, rollout)) if trailing_id(rollout) == Some(rollout) => {
                (trailing_id(before), Some(rollout.to_owned()))
            }
            _ => (trailing_id(stem), None),
        };
        Self {
            thread: thread.unwrap_or(stem).to_owned(),
            rollout,
            stem: stem.to_owned(),
        }
    }

    /// The id of the rollout. The first rollout of a thread has the id of the thread. If the file of a revert was
    /// renamed, the id is the new name.
    pub(super) fn part_of(&self, thread: &str, is_revert: bool) -> String {
        match &self.rollout {
            Some(rollout) => rollout.clone(),
            None if is_revert => self.stem.clone(),
            None => thread.to_owned(),
        }
    }
}

/// The UUID at the end of a name.
fn trailing_id(name: &str) -> Option<&str> {
    let id = name.get(name.len().checked_sub(36)?..)?;
    let dashes = [8, 13, 18, 23];
    let is_id = id.bytes().enumerate().all(|(at, byte)| {
        if dashes.contains(&at) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    });
    is_id.then_some(id)
}
