//! The numbers of a page file (`stats` in `clients/web/FORMAT.md`): the sums, and the usage and the files of each row.
//! From the rows, the page computes the sums of any branch.

use serde::Serialize;
use std::collections::HashMap;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::{Error, Kind as ErrorKind, Result};
use treelined_core::stats::{Cost, ModelUse, Prices, Stats, TimeSpan, Tokens};
use treelined_core::summary::files::touched_files;
use treelined_core::timestamp::{self, Millis};
use treelined_core::view::Entry;

/// The numbers of a part of the file, or of the whole file.
#[derive(Default)]
pub(super) struct PageStats {
    total: Stats,
    /// The times of the rows that have a time.
    times: Vec<Millis>,
    usage: UsageColumns,
    files: FileTable,
    /// The index of each path in the table.
    paths: HashMap<String, usize>,
}

/// The usage of the rows that used a model, as arrays of equal length.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageColumns {
    rows: Vec<usize>,
    input: Vec<u64>,
    output: Vec<u64>,
    cache_read: Vec<u64>,
    cache_write: Vec<u64>,
    /// The cost in dollars that tools recorded; 0 if tools recorded no cost.
    cost: Vec<f64>,
    /// The cost in dollars of rows without a recorded cost, by the prices of their models; `None` if the cost is
    /// unknown.
    estimated: Vec<Option<f64>>,
}

/// The files that rows read and modified, as pairs of a row and an index into `paths`.
#[derive(Default, Serialize)]
struct FileTable {
    paths: Vec<String>,
    read: Vec<(usize, usize)>,
    modified: Vec<(usize, usize)>,
}

/// The content of the chunk `stats`.
#[derive(Serialize)]
struct StatsChunk {
    total: serde_json::Value,
    usage: UsageColumns,
    files: FileTable,
}

impl PageStats {
    /// Adds the entry of a row.
    pub(super) fn add(&mut self, row: usize, of: &Entry<'_>, entry: &[u8], prices: &dyn Prices) {
        self.times.extend(of.timestamp);
        let used = self.total.add(entry, prices);
        self.usage.add(row, used);
        let may_touch = matches!(
            (of.kind, of.role),
            (Kind::Message, Role::Assistant | Role::ToolResult)
                | (Kind::BranchSummary | Kind::Compaction, _)
        );
        if may_touch {
            let files = touched_files([entry]);
            self.add_files(row, files.read_files, files.modified_files);
        }
    }

    /// Adds the numbers of later rows.
    pub(super) fn append(&mut self, later: Self) {
        self.total += later.total;
        self.times.extend(later.times);
        self.usage.append(later.usage);
        let FileTable {
            paths,
            read,
            modified,
        } = later.files;
        let places: Vec<usize> = paths.into_iter().map(|path| self.place(path)).collect();
        let pair = |(row, path): (usize, usize)| Some((row, *places.get(path)?));
        self.files.read.extend(read.into_iter().filter_map(pair));
        let modified = modified.into_iter().filter_map(pair);
        self.files.modified.extend(modified);
    }

    /// The content of the chunk `stats`.
    pub(super) fn into_json(self) -> Result<Vec<u8>> {
        let total = &self.total;
        let span = TimeSpan::of(self.times);
        let instant = |at: Option<i64>| at.map(timestamp::format);
        let total = serde_json::json!({
            "messages": total.messages,
            "toolCalls": total.tool_calls,
            "tokens": {
                "input": total.tokens.input,
                "output": total.tokens.output,
                "cacheRead": total.tokens.cache_read,
                "cacheWrite": total.tokens.cache_write,
            },
            "cost": total.cost.recorded.unwrap_or_default(),
            "costs": {
                "recorded": total.cost.recorded,
                "estimated": total.cost.estimated,
                "unknownAnswers": total.cost.unknown,
            },
            "startedAt": instant(span.map(|span| span.start)),
            "endedAt": instant(span.map(|span| span.end)),
            "activeMs": span.map_or(0, |span| span.active),
        });
        let chunk = StatsChunk {
            total,
            usage: self.usage,
            files: self.files,
        };
        serde_json::to_vec(&chunk).map_err(|error| {
            Error::new(
                ErrorKind::InternalError,
                format!("write the statistics: {error}"),
            )
        })
    }

    fn add_files(&mut self, row: usize, read: Vec<String>, modified: Vec<String>) {
        for path in read {
            let place = self.place(path);
            self.files.read.push((row, place));
        }
        for path in modified {
            let place = self.place(path);
            self.files.modified.push((row, place));
        }
    }

    /// The index of a path, which is added if it is new.
    fn place(&mut self, path: String) -> usize {
        if let Some(place) = self.paths.get(&path) {
            return *place;
        }
        let place = self.files.paths.len();
        self.files.paths.push(path.clone());
        self.paths.insert(path, place);
        place
    }
}

impl UsageColumns {
    fn add(&mut self, row: usize, used: ModelUse) {
        let ModelUse { tokens, cost, .. } = used;
        if tokens == Tokens::default() && cost == Cost::default() {
            return;
        }
        self.rows.push(row);
        self.input.push(tokens.input);
        self.output.push(tokens.output);
        self.cache_read.push(tokens.cache_read);
        self.cache_write.push(tokens.cache_write);
        self.cost.push(cost.recorded.unwrap_or_default());
        self.estimated.push(cost.estimated);
    }

    fn append(&mut self, later: Self) {
        self.rows.extend(later.rows);
        self.input.extend(later.input);
        self.output.extend(later.output);
        self.cache_read.extend(later.cache_read);
        self.cache_write.extend(later.cache_write);
        self.cost.extend(later.cost);
        self.estimated.extend(later.estimated);
    }
}
