//! Entries as passages, in pages.

use super::answers::{answer, budget};
use crate::clean::{Cleaner, inert};
use crate::cuts::boundary;
use crate::history::{Failure, History, OpenSession, PathPage, Result};
use crate::text::{Passage, quoted_within};
use treelined_client::ErrorKind;

/// The most bytes of one passage in a branch. `read_entry` returns the rest of a longer passage.
const MAX_PASSAGE: usize = 4_000;

/// The passages of entries, as many as fit into the answer.
pub(super) struct Reading {
    pub(super) text: String,
    /// The number of passages in the text.
    pub(super) count: usize,
    room: usize,
}

impl Reading {
    pub(super) fn new(text: String, room: usize) -> Reading {
        Reading {
            room: room.saturating_sub(text.len()),
            text,
            count: 0,
        }
    }

    /// Adds the passage of an entry; false if it does not fit. The first passage always fits, cut if necessary.
    pub(super) fn add(
        &mut self,
        (entry_id, at): (&str, &str),
        passage: &Passage,
        cleaner: &mut Cleaner<'_>,
    ) -> bool {
        let (id, at) = (inert(entry_id), cleaner.word(at));
        let heading = format!("\nentry {id}, {}, {at}\n", passage.role);
        let max = match self.count {
            0 => MAX_PASSAGE.min(self.room.saturating_sub(heading.len()).max(400)),
            _ => MAX_PASSAGE,
        };
        let (quotation, left_out) = quoted_within(&passage.text, max);
        let more = match left_out {
            0 => String::new(),
            left_out => format!("({left_out} bytes more: read_entry {id})\n"),
        };
        let length = heading.len() + quotation.len() + more.len();
        if length > self.room && self.count > 0 {
            return false;
        }
        self.room = self.room.saturating_sub(length);
        self.count += 1;
        self.text.extend([heading, quotation, more]);
        cleaner.count(&passage.secrets);
        true
    }

    /// Adds the passages of a page of a branch and of the pages after it; returns the id of the first entry that does
    /// not fit.
    pub(super) async fn add_pages(
        &mut self,
        open: &OpenSession<'_>,
        tip: &str,
        mut page: PathPage,
        cleaner: &mut Cleaner<'_>,
    ) -> Result<Option<String>> {
        loop {
            for entry in &page.entries {
                let passage = Passage::of(entry, cleaner);
                let place = (entry.id(), entry.timestamp());
                if passage.is_some_and(|passage| !self.add(place, &passage, cleaner)) {
                    return Ok(Some(entry.id().to_owned()));
                }
            }
            page = match page.next_cursor {
                Some(since) => open.path(tip, Some(&since)).await?,
                None => return Ok(None),
            };
        }
    }
}

/// A part of a branch.
pub struct BranchPart<'a> {
    pub tip: &'a str,
    /// The entry at which to begin; `None`: the first entry of the branch.
    pub from: Option<&'a str>,
    pub max_tokens: Option<u64>,
}

pub async fn read_branch(
    history: &History,
    session: Option<&str>,
    part: BranchPart<'_>,
) -> Result<String> {
    let open = history.open(session).await?;
    let answer = branch_text(&open, part, history.cleaner()).await;
    open.close_after(answer).await
}

async fn branch_text(
    open: &OpenSession<'_>,
    part: BranchPart<'_>,
    mut cleaner: Cleaner<'_>,
) -> Result<String> {
    let (tip, from) = (part.tip, part.from);
    let mut reading = Reading::new(open.title(&mut cleaner), budget(part.max_tokens));
    let mut page = match (open.path(tip, from).await, from) {
        (Err(error), Some(from)) if error.is(ErrorKind::InvalidParams) => {
            return Err(Failure(format!(
                "entry {from} is not on the branch that ends at {tip}"
            )));
        }
        (page, _) => page?,
    };
    // The daemon's page begins after `since`, the entry before `from`.
    if let Some(from) = from {
        let entry = open.client.get_entry(from).await?.entry;
        page.entries.insert(0, entry);
    }
    let next_from = reading.add_pages(open, tip, page, &mut cleaner).await?;
    let mut facts = open.facts();
    facts.id("tip", tip);
    facts.add("entries", reading.count);
    if let Some(next) = &next_from {
        facts.id("nextFrom", next);
    }
    Ok(answer(facts, &reading.text, cleaner))
}

pub async fn read_entry(
    history: &History,
    session: Option<&str>,
    entry_id: &str,
    cursor: u64,
) -> Result<String> {
    let open = history.open(session).await?;
    let answer = entry_text(&open, entry_id, cursor, history.cleaner()).await;
    open.close_after(answer).await
}

async fn entry_text(
    open: &OpenSession<'_>,
    entry_id: &str,
    cursor: u64,
    mut cleaner: Cleaner<'_>,
) -> Result<String> {
    let entry = open.client.get_entry(entry_id).await?.entry;
    let (role, whole) = match Passage::of(&entry, &cleaner) {
        Some(passage) => {
            cleaner.count(&passage.secrets);
            (passage.role, passage.text)
        }
        None => (cleaner.word(entry.r#type()), cleaner.entry_json(&entry)),
    };
    let start = usize::try_from(cursor)
        .unwrap_or(usize::MAX)
        .min(whole.len());
    let rest = whole.get(boundary(&whole, start)..).unwrap_or_default();
    let (id, at) = (inert(entry.id()), cleaner.word(entry.timestamp()));
    let mut record = open.title(&mut cleaner);
    record += &format!("\nentry {id}, {role}, {at}\n");
    let room = budget(None).saturating_sub(record.len());
    let (quotation, left_out) = quoted_within(rest, room);
    record += &quotation;
    let mut facts = open.facts();
    facts.add("entry", id);
    facts.add("bytes", whole.len());
    let next = (left_out > 0).then(|| (whole.len() - left_out).to_string());
    facts.cursor(next.as_deref());
    Ok(answer(facts, &record, cleaner))
}
