//! Lists the branches about a topic, and for each why it was left, how it ended and which files it changed.

use super::answers::{FACT_BYTES, Facts, TOKEN_BYTES, answer};
use super::hits::snippets;
use crate::clean::{Cleaner, folded, inert};
use crate::cuts::shortened;
use crate::history::{History, OpenSession, Readable, Result};
use crate::request::Query;
use crate::text::{Passage, quoted};
use std::collections::{HashMap, HashSet};
use treelined_client::SearchHit;

/// The most tokens of the answer.
const MAX_TOKENS: u64 = 2_000;
/// The most branches in one answer. Each branch must be compared with the leaf.
const MOST_BRANCHES: usize = 12;
/// A hit with a smaller share of the best score is left out.
const LEAST_SCORE: f64 = 0.5;
/// The most reasons shown for a branch, the newest first.
const MOST_REASONS: usize = 3;
/// The most characters of a reason, of a snippet, and of the end of a branch.
const MAX_SAID: usize = 320;
const MAX_SNIPPET: usize = 160;
/// The most characters of a session's name, and of the list of files of a branch.
const MAX_NAME: usize = 60;
const MAX_FILES: usize = 240;

/// A branch in which the search has a hit.
struct TriedBranch {
    /// The best hit.
    hit: SearchHit,
    /// The time of the newest hit.
    at: String,
    snippet: String,
}

impl TriedBranch {
    /// The session and the tip.
    fn names(&self) -> (String, String) {
        (self.hit.session_id.clone(), self.hit.branch.tip_id.clone())
    }

    /// The branches that were left in the turn of the hit. They answer the same prompt as the hit's branch.
    fn left_in_turn(&self) -> impl Iterator<Item = Self> {
        let left = self.hit.branch.left_in_turn.iter();
        left.flat_map(|left| &left.newest).map(|one| {
            let mut hit = self.hit.clone();
            hit.branch.tip_id.clone_from(&one.tip_id);
            hit.branch.on_active_path = false;
            hit.branch.left_in_turn = None;
            Self {
                hit,
                at: one.at.clone().unwrap_or_default(),
                snippet: self.snippet.clone(),
            }
        })
    }

    fn is_of(&self, hit: &SearchHit) -> bool {
        self.hit.session_id == hit.session_id && self.hit.branch.tip_id == hit.branch.tip_id
    }
}

pub async fn what_was_tried(history: &History, topic: &str) -> Result<String> {
    let readable = history.readable().await?;
    let question = Query::question(topic);
    let mut found = history.find(&question, &readable, None).await?;
    let mut has_more = found.next_cursor.is_some();
    let hits = std::mem::take(&mut found.hits);
    let hits = all_hits(history, &question, &readable, hits, &mut has_more).await?;
    let (mut branches, all) = branches(hits);
    let hits: Vec<SearchHit> = branches.iter().map(|branch| branch.hit.clone()).collect();
    let mut cleaner = history.cleaner();
    let snippets = snippets(history, &hits, &mut cleaner).await?;
    for (branch, snippet) in branches.iter_mut().zip(snippets) {
        branch.snippet = shortened(&snippet, MAX_SNIPPET);
    }
    let room = usize::try_from(MAX_TOKENS * TOKEN_BYTES).unwrap_or_default() - FACT_BYTES;
    let (mut record, mut left, mut kept) = (String::new(), 0, 0);
    for branch in &branches {
        // A session that was deleted meanwhile has no branches.
        let Ok(open) = history.open(Some(&branch.hit.session_id)).await else {
            continue;
        };
        let said = branch_text(&open, branch, &mut cleaner).await;
        let said = open.close_after(said).await?;
        if record.len() + said.len() > room && !record.is_empty() {
            break;
        }
        record += &said;
        match branch.hit.branch.on_active_path {
            true => kept += 1,
            false => left += 1,
        }
    }
    let mut facts = Facts::default();
    facts.add("left", left);
    facts.add("kept", kept);
    let left_out = all.saturating_sub(left + kept);
    match has_more {
        true => facts.add("leftOut", format!("at least {left_out}")),
        false => facts.add("leftOut", left_out),
    }
    facts.near_words(&found.near_words);
    facts.add(
        "readOn",
        "why_left, read_branch or compare_branches with these ids",
    );
    Ok(answer(facts, &record, cleaner))
}

/// All hits in the sessions of the best hits, in the order of their scores. A page has at most three hits of a session,
/// so it may lack branches of this session.
async fn all_hits(
    history: &History,
    question: &Query,
    readable: &Readable,
    best: Vec<SearchHit>,
    has_more: &mut bool,
) -> Result<Vec<SearchHit>> {
    let least = best.first().map_or(0.0, |hit| hit.score) * LEAST_SCORE;
    let mut sessions: Vec<(String, f64)> = Vec::new();
    for hit in best.iter().filter(|hit| hit.score >= least) {
        if !sessions.iter().any(|(id, _)| *id == hit.session_id) {
            sessions.push((hit.session_id.clone(), hit.score));
        }
    }
    *has_more |= sessions.len() > MOST_BRANCHES;
    sessions.truncate(MOST_BRANCHES);
    let is_other = |hit: &SearchHit| sessions.iter().all(|(id, _)| *id != hit.session_id);
    let mut hits: Vec<SearchHit> = best.into_iter().filter(is_other).collect();
    for (session, score) in sessions {
        let question = Query {
            session: Some(session),
            ..question.clone()
        };
        let mut found = history.find(&question, readable, None).await?;
        *has_more |= found.next_cursor.is_some();
        // Scores from two answers cannot be compared. So the scores are scaled: the best hit of a session gets the
        // score that it has in the search of all sessions.
        let own = found.hits.first().map_or(1.0, |hit| hit.score);
        for hit in &mut found.hits {
            hit.score *= score / own.max(f64::MIN_POSITIVE);
        }
        hits.append(&mut found.hits);
    }
    hits.sort_by(|one, other| other.score.total_cmp(&one.score));
    Ok(hits)
}

/// The branches of the best hits, and the branches that were left in the turns of these hits; the newest come first.
/// Also their number before the list is cut. Worse hits are left out: an entry with only a few words of a long topic is
/// not about the topic.
fn branches(hits: Vec<SearchHit>) -> (Vec<TriedBranch>, usize) {
    let least = hits.first().map_or(0.0, |hit| hit.score) * LEAST_SCORE;
    let mut of_hits: Vec<TriedBranch> = Vec::new();
    for hit in hits.into_iter().filter(|hit| hit.score >= least) {
        match of_hits.iter_mut().find(|branch| branch.is_of(&hit)) {
            Some(branch) if branch.at < hit.at => branch.at = hit.at,
            Some(_) => {}
            None => of_hits.push(TriedBranch {
                at: hit.at.clone(),
                snippet: String::new(),
                hit,
            }),
        }
    }
    let order: Vec<(String, String)> = of_hits.iter().map(TriedBranch::names).collect();
    let mut own: HashMap<(String, String), TriedBranch> =
        order.iter().cloned().zip(of_hits).collect();
    let mut known = HashSet::new();
    let mut branches = Vec::new();
    for names in order {
        let Some(branch) = own.remove(&names) else {
            continue;
        };
        known.insert(names);
        let left: Vec<TriedBranch> = branch.left_in_turn().collect();
        branches.push(branch);
        for one in left {
            let names = one.names();
            if known.insert(names.clone()) {
                branches.push(own.remove(&names).unwrap_or(one));
            }
        }
    }
    let all = branches.len();
    branches.truncate(MOST_BRANCHES);
    branches.sort_by(|one, other| other.at.cmp(&one.at));
    (branches, all)
}

async fn branch_text(
    open: &OpenSession<'_>,
    branch: &TriedBranch,
    cleaner: &mut Cleaner<'_>,
) -> Result<String> {
    let TriedBranch { hit, at, snippet } = branch;
    let (tip, session) = (inert(&hit.branch.tip_id), inert(&hit.session_id));
    let (at, entry) = (cleaner.word(at), inert(&hit.entry_id));
    let name = cleaner.cut_line(&hit.session_name, MAX_NAME);
    let state = match hit.branch.on_active_path {
        true => "kept",
        false => "left",
    };
    let mut said = format!("\nbranch {tip} of session {session}, {state}, {at}, entry {entry}\n");
    said += &quoted(&format!("session: {name}"));
    said += &quoted(&format!("about: {snippet}"));
    if !hit.branch.on_active_path {
        said += &left_text(open, &hit.branch.tip_id, cleaner).await?;
    }
    Ok(said)
}

/// Why a branch was left, how it ended, and its files.
async fn left_text(open: &OpenSession<'_>, tip: &str, cleaner: &mut Cleaner<'_>) -> Result<String> {
    let (own, files) = open.left_side(tip).await?;
    let names: HashSet<&str> = own.iter().map(String::as_str).collect();
    let remarks = open.remarks(&names, cleaner).await?;
    let mut said = String::new();
    let first = remarks.len().saturating_sub(MOST_REASONS);
    for remark in remarks.iter().skip(first) {
        let Passage {
            role,
            text,
            secrets,
        } = &remark.passage;
        cleaner.count(secrets);
        said += &quoted(&format!("{role}: {}", shortened(&folded(text), MAX_SAID)));
    }
    if remarks.is_empty() {
        let entry = open.client.get_entry(tip).await?.entry;
        if let Some(passage) = Passage::of(&entry, cleaner) {
            cleaner.count(&passage.secrets);
            let text = shortened(&folded(&passage.text), MAX_SAID);
            said += &quoted(&format!(
                "no reason was written; it ends with {}: {text}",
                passage.role
            ));
        }
    }
    if !files.is_empty() {
        let files: Vec<String> = files
            .iter()
            .map(|file| cleaner.text(&folded(file)))
            .collect();
        said += &quoted(&format!(
            "changed: {}",
            shortened(&files.join(", "), MAX_FILES)
        ));
    }
    Ok(said)
}
