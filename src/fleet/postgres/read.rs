//! Reads a session in pages of lines. The lines of one append are one part.

use super::append::number;
use super::log::PgLog;
use super::pool::Params;
use super::refusal::{unreadable, unsigned};
use crate::backend::{LogPart, Position};
use std::collections::VecDeque;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use treelined_core::error::{Error, Kind, Result};

/// The most lines of a page, and the bytes after which it ends.
const PAGE_LINES: i64 = 2000;
const PAGE_BYTES: i64 = 4 << 20;

/// Reads the end of a session, and its lines after a position.
const STATEMENT: &str = "\
SELECT session.last, entry.seq, entry.batch::text, entry.line
FROM treelined.sessions AS session LEFT JOIN LATERAL (
    SELECT seq, batch, line FROM (
        SELECT seq, batch, line, sum(length(line)) OVER (ORDER BY seq) - length(line) AS bytes
        FROM treelined.entries WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3
    ) AS page WHERE bytes < $4
) AS entry ON true
WHERE session.id = $1 ORDER BY entry.seq";

/// The parts of a session, up to the end that the session has during the read.
pub(super) struct SessionParts<'a> {
    log: &'a PgLog,
    session: String,
    /// The end of the last part that was read.
    at: Position,
    ready: VecDeque<LogPart>,
    /// The lines of an append that may continue in the next page.
    begun: Option<(String, LogPart)>,
    is_at_end: bool,
}

struct Line {
    seq: u64,
    batch: String,
    bytes: Vec<u8>,
}

impl<'a> SessionParts<'a> {
    pub(super) fn new(log: &'a PgLog, session: &str, from: Position) -> Self {
        Self {
            log,
            session: session.to_owned(),
            at: from,
            ready: VecDeque::new(),
            begun: None,
            is_at_end: false,
        }
    }

    /// The next part; `None` at the end.
    pub(super) async fn part(&mut self) -> Result<Option<LogPart>> {
        while self.ready.is_empty() && !self.is_at_end {
            self.fill().await?;
        }
        Ok(self.ready.pop_front())
    }

    /// Reads the next page.
    pub(super) async fn fill(&mut self) -> Result<()> {
        let from = self.begun.as_ref().map_or(self.at, |(_, part)| part.end);
        let after = number(from)?;
        let params: Params<'_> = &[
            (&self.session, Type::TEXT),
            (&after, Type::INT8),
            (&PAGE_LINES, Type::INT8),
            (&PAGE_BYTES, Type::INT8),
        ];
        let answer = self.log.ask(STATEMENT, params).await?;
        let (last, lines) = page(&answer.rows)?;
        if last == 0 {
            self.log.check_not_erased(&self.session).await?;
        }
        if last < from.0 {
            return Err(self.rewound(format!("line {}; the last one is {last}", from.0)));
        }
        let mut next = from.0;
        for Line { seq, batch, bytes } in lines {
            next += 1;
            if seq != next {
                return Err(self.rewound(format!("line {next}")));
            }
            self.add(seq, batch, bytes);
        }
        self.is_at_end = next >= last;
        if next == from.0 && !self.is_at_end {
            return Err(self.rewound(format!("line {}", from.0 + 1)));
        }
        if self.is_at_end
            && let Some((batch, part)) = self.begun.take()
        {
            self.log.note_end(&self.session, part.end.0, batch);
            self.at = part.end;
            self.ready.push_back(part);
        }
        Ok(())
    }

    fn add(&mut self, seq: u64, batch: String, bytes: Vec<u8>) {
        match &mut self.begun {
            Some((of, part)) if *of == batch => {
                part.lines.extend_from_slice(&bytes);
                part.end = Position(seq);
            }
            begun => {
                let part = LogPart {
                    lines: bytes,
                    end: Position(seq),
                };
                if let Some((_, whole)) = begun.replace((batch, part)) {
                    self.at = whole.end;
                    self.ready.push_back(whole);
                }
            }
        }
    }

    fn rewound(&self, lacks: String) -> Error {
        let why = format!(
            "the database {:?} has not, of session {:?}, {lacks}",
            self.log.database, self.session
        );
        Error::new(Kind::LogRewound, why)
    }
}

impl Iterator for SessionParts<'_> {
    type Item = Result<LogPart>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && self.is_at_end {
            return None;
        }
        let log = self.log;
        let part = log.wait(self.part());
        if part.is_err() {
            self.is_at_end = true;
        }
        part.transpose()
    }
}

/// The end of a session and the lines of a page. The end is 0 if there is no session.
fn page(rows: &[Row]) -> Result<(u64, Vec<Line>)> {
    let mut last = 0;
    let mut lines = Vec::new();
    for row in rows {
        last = unsigned(row.try_get(0).map_err(unreadable)?);
        let seq: Option<i64> = row.try_get(1).map_err(unreadable)?;
        if let Some(seq) = seq {
            lines.push(Line {
                seq: unsigned(seq),
                batch: row.try_get(2).map_err(unreadable)?,
                bytes: row.try_get(3).map_err(unreadable)?,
            });
        }
    }
    Ok((last, lines))
}
