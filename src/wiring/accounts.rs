//! The part of the daemon that knows prices and counts usage. It uses the crate `treelined-usage`.

use treelined_core::error::Result;
use treelined_core::stats::{self, Tokens};
use treelined_service::parts::{Accounts, UsageRun};
use treelined_usage::{By, Prices, Request, Row, Sums, UnreadFile, usage};
use treelined_wire::{
    self as wire, Costs, GetUsageResult, UnreadUsage, UsageBy, UsageRow, UsageSums,
};

/// The most unreadable sessions that a result lists.
const MOST_UNREAD: usize = 100;

/// Counts usage by these prices.
pub(crate) struct Counter(pub(crate) Prices);

impl stats::Prices for Counter {
    fn estimate(&self, provider: &str, model: &str, tokens: &Tokens) -> Option<f64> {
        self.0.estimate(provider, model, tokens)
    }
}

impl Accounts for Counter {
    fn usage(&self, run: &UsageRun<'_>) -> Result<GetUsageResult> {
        let request = Request {
            by: by(run.by),
            cwd: run.cwd.map(str::to_owned),
            since: run.since,
            session: run.session.map(str::to_owned),
        };
        let mut found = usage(run.store, &request, &self.0, run.cancel)?;
        let more = found.rows.len().saturating_sub(run.limit);
        match request.by {
            // The newest days are at the end.
            By::Day => drop(found.rows.drain(..more)),
            _ => found.rows.truncate(run.limit),
        }
        Ok(GetUsageResult {
            rows: found.rows.into_iter().map(row).collect(),
            more_rows: Some(more as u64).filter(|more| *more > 0),
            total: sums(&found.total),
            prices: Prices::source().to_owned(),
            unread: found.unread.iter().take(MOST_UNREAD).map(unread).collect(),
        })
    }
}

fn by(by: UsageBy) -> By {
    match by {
        UsageBy::Day => By::Day,
        UsageBy::Model => By::Model,
        UsageBy::Tool => By::Tool,
        UsageBy::Session => By::Session,
        UsageBy::Branch => By::Branch,
        UsageBy::Directory => By::Directory,
    }
}

fn row(row: Row) -> UsageRow {
    let is_active = row.branch.as_ref().map(|branch| branch.is_active);
    let (session_id, reason) = match row.branch {
        Some(branch) => (Some(branch.session_id), branch.reason),
        None => (None, None),
    };
    UsageRow {
        sums: sums(&row.sums),
        key: row.key,
        title: row.title,
        session_id,
        is_active,
        reason,
    }
}

fn sums(sums: &Sums) -> UsageSums {
    UsageSums {
        answers: sums.answers,
        answers_without_tokens: sums.without_tokens,
        tokens: wire::Tokens {
            input: sums.tokens.input,
            output: sums.tokens.output,
            cache_read: sums.tokens.cache_read,
            cache_write: sums.tokens.cache_write,
        },
        costs: Costs {
            recorded: sums.cost.recorded,
            estimated: sums.cost.estimated,
            unknown_answers: sums.cost.unknown,
        },
    }
}

fn unread(file: &UnreadFile) -> UnreadUsage {
    UnreadUsage {
        path: file.path.display().to_string(),
        kind: file.error.kind.name().to_owned(),
        message: file.error.message.to_string(),
    }
}
