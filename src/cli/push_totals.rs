//! The last line of `treelined push --all`: the number of sessions with each outcome.

use super::words::count;
use std::fmt;
use treelined_core::error::{Kind, Result};
use treelined_fleet::transfer::Transfer;

#[derive(Debug, Default)]
pub(super) struct PushTotals {
    /// Sessions of which the stream had all lines.
    whole: u64,
    pushed: u64,
    /// Sessions of which the stream had lost lines.
    refilled: u64,
    branches: u64,
    pub(super) deleted: u64,
    /// Sessions whose file and stream both have new lines.
    differing: u64,
    failed: u64,
}

impl PushTotals {
    pub(super) fn add(&mut self, outcome: &Result<Transfer>) {
        let number = match outcome {
            Ok(done) if done.is_branch => &mut self.branches,
            Ok(done) if done.is_refilled => &mut self.refilled,
            Ok(done) if done.lines > 0 => &mut self.pushed,
            Ok(_) => &mut self.whole,
            Err(error) if error.kind == Kind::LogDiverged => &mut self.differing,
            Err(_) => &mut self.failed,
        };
        *number += 1;
    }
}

/// Such as `4 sessions: 1 pushed, 2 filled again, 1 differs from its file`.
impl fmt::Display for PushTotals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differ = match self.differing {
            1 => "differs from its file",
            _ => "differ from their files",
        };
        let numbers = [
            (self.whole, "had nothing new"),
            (self.pushed, "pushed"),
            (self.refilled, "filled again"),
            (self.branches, "pushed as a branch"),
            (self.deleted, "deleted"),
            (self.differing, differ),
            (self.failed, "failed"),
        ];
        let all = numbers.iter().map(|(number, _)| number).sum();
        write!(out, "{}", count(all, "session", "sessions"))?;
        let some = numbers.iter().filter(|(number, _)| *number > 0);
        for (at, (number, what)) in some.enumerate() {
            let between = if at == 0 { ": " } else { ", " };
            write!(out, "{between}{number} {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_core::error::Error;

    #[test]
    fn each_session_is_counted_once() {
        let transfer = |lines, is_refilled, is_branch| Transfer {
            lines,
            bytes: lines,
            hash: String::new(),
            sequence: 1,
            is_behind: false,
            is_refilled,
            is_branch,
        };
        let mut totals = PushTotals::default();
        assert_eq!(totals.to_string(), "0 sessions");
        totals.add(&Ok(transfer(3, true, false)));
        assert_eq!(totals.to_string(), "1 session: 1 filled again");
        for outcome in [
            Ok(transfer(0, false, false)),
            Ok(transfer(2, false, false)),
            Ok(transfer(2, false, true)),
            Err(Error::new(Kind::LogDiverged, "")),
            Err(Error::new(Kind::LogForeign, "")),
        ] {
            totals.add(&outcome);
        }
        totals.deleted += 1;
        let shown = "7 sessions: 1 had nothing new, 1 pushed, 1 filled again, 1 pushed as a branch, 1 deleted, \
            1 differs from its file, 1 failed";
        assert_eq!(totals.to_string(), shown);
    }
}
