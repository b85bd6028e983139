//! Entries as passages, in pages.

use super::{Answer, MAX_LINE, MAX_TOKENS, budget, say_next};
use crate::clean::{Cleaner, inert, usable};
use crate::history::{Failure, History, OpenSession, PathPage, Result};
use crate::portable::portable;
use crate::text::{Passage, boundary, cut, quoted};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use treelined_client::ErrorKind;

/// The most bytes of one passage in a branch; `read_entry` has the rest.
const MAX_PASSAGE: usize = 4_000;

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct PassageLine {
    pub entry_id: String,
    pub role: String,
    pub at: String,
    pub text: String,
    /// Bytes of the text that are left out; `read_entry` has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_left_out: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct BranchText {
    pub session_id: String,
    pub passages: Vec<PassageLine>,
    /// The `from` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_from: Option<String>,
}

/// The passages of entries, as far as there is room, and the id of the first entry without room.
pub(super) struct Reading {
    pub(super) text: String,
    pub(super) passages: Vec<PassageLine>,
    room: usize,
}

impl Reading {
    pub(super) fn new(text: String, room: usize) -> Reading {
        Reading {
            text,
            passages: Vec::new(),
            room,
        }
    }

    /// False if there is no room. The first passage always has some.
    pub(super) fn add(
        &mut self,
        (entry_id, at): (&str, &str),
        passage: &Passage,
        cleaner: &mut Cleaner<'_>,
    ) -> bool {
        let (shown, left_out) = cut(&passage.text, MAX_PASSAGE.min(self.room.max(400)));
        let quotation = quoted(shown);
        if quotation.len() > self.room && !self.passages.is_empty() {
            return false;
        }
        self.room = self.room.saturating_sub(quotation.len() + 60);
        cleaner.count(&passage.secrets);
        let (id, at) = (inert(entry_id), cleaner.line(at, MAX_LINE));
        let _infallible = write!(
            self.text,
            "\nentry {id}, {}, {at}\n{quotation}",
            passage.role
        );
        if left_out > 0 {
            let _infallible = writeln!(self.text, "({left_out} bytes more: read_entry {id})");
        }
        self.passages.push(PassageLine {
            entry_id: id,
            role: passage.role.clone(),
            at,
            text: shown.to_owned(),
            bytes_left_out: (left_out > 0).then_some(left_out),
        });
        true
    }

    /// Adds the passages of a page of a branch and of those behind it; returns the id of the first one without room.
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
    /// The entry to begin at; `None`: the first.
    pub from: Option<&'a str>,
    pub max_tokens: Option<u64>,
}

pub async fn read_branch(
    history: &History,
    session: Option<&str>,
    part: BranchPart<'_>,
) -> Result<Answer<BranchText>> {
    let open = history.open(session).await?;
    let answer = branch_text(&open, part, history.cleaner()).await;
    open.close_after(answer).await
}

async fn branch_text(
    open: &OpenSession<'_>,
    part: BranchPart<'_>,
    mut cleaner: Cleaner<'_>,
) -> Result<Answer<BranchText>> {
    let (tip, from) = (part.tip, part.from);
    let mut reading = Reading::new(open.heading(&mut cleaner), budget(part.max_tokens));
    let mut page = match (open.path(tip, from).await, from) {
        (Err(error), Some(from)) if error.is(ErrorKind::InvalidParams) => {
            return Err(Failure(format!(
                "entry {from} is not on the branch that ends at {tip}"
            )));
        }
        (page, _) => page?,
    };
    // The page begins below it.
    if let Some(from) = from {
        let entry = open.client.get_entry(from).await?.entry;
        page.entries.insert(0, entry);
    }
    let next_from = reading.add_pages(open, tip, page, &mut cleaner).await?;
    if let Some(next) = &next_from {
        let _infallible = writeln!(
            reading.text,
            "\nMore: read_branch with from: {}",
            inert(next)
        );
    }
    let data = BranchText {
        session_id: usable(&open.id),
        passages: reading.passages,
        next_from: next_from.as_deref().map(usable),
    };
    Ok(Answer::new(reading.text, data, cleaner))
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct EntryText {
    pub entry_id: String,
    pub r#type: String,
    pub role: String,
    pub at: String,
    pub text: String,
    /// The `cursor` of the next page: a byte of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<u64>,
}

pub async fn read_entry(
    history: &History,
    session: Option<&str>,
    entry_id: &str,
    cursor: u64,
) -> Result<Answer<EntryText>> {
    let open = history.open(session).await?;
    let answer = entry_text(&open, entry_id, cursor, history.cleaner()).await;
    open.close_after(answer).await
}

async fn entry_text(
    open: &OpenSession<'_>,
    entry_id: &str,
    cursor: u64,
    mut cleaner: Cleaner<'_>,
) -> Result<Answer<EntryText>> {
    let entry = open.client.get_entry(entry_id).await?.entry;
    let (role, whole) = match Passage::of(&entry, &cleaner) {
        Some(passage) => {
            cleaner.count(&passage.secrets);
            (passage.role, passage.text)
        }
        None => (
            cleaner.line(entry.r#type(), MAX_LINE),
            cleaner.entry_json(&entry),
        ),
    };
    let start = usize::try_from(cursor)
        .unwrap_or(usize::MAX)
        .min(whole.len());
    let rest = whole.get(boundary(&whole, start)..).unwrap_or_default();
    let (shown, left_out) = cut(rest, budget(Some(MAX_TOKENS)));
    let next_cursor = (left_out > 0).then(|| (whole.len() - left_out) as u64);
    let (id, at) = (inert(entry.id()), cleaner.line(entry.timestamp(), MAX_LINE));
    let mut text = open.heading(&mut cleaner);
    let _infallible = write!(text, "\nentry {id}, {role}, {at}\n{}", quoted(shown));
    say_next(&mut text, next_cursor.map(|at| at.to_string()).as_deref());
    let data = EntryText {
        entry_id: id,
        r#type: cleaner.line(entry.r#type(), MAX_LINE),
        role,
        at,
        text: shown.to_owned(),
        next_cursor,
    };
    Ok(Answer::new(text, data, cleaner))
}
