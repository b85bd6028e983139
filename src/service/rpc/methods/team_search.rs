//! `search` with `team`: a question to the sessions of the whole team (protocol.md §3.16). The servers choose lines,
//! and [`treelined_find`] ranks them.

use super::search_hits::{fitting, wire_hit, wire_totals};
use treelined_core::error::{Error, Result};
use treelined_core::search::BranchFilter;
use treelined_core::team::{TeamQuestion, TeamView};
use treelined_core::timestamp::Millis;
use treelined_find::{AskRequest, rank_lines};
use treelined_wire as wire;

/// The best hits for a question, as many as fit into `fits` bytes. Blocks.
pub(super) fn answer(
    team: Option<&dyn TeamView>,
    request: &AskRequest,
    now: Millis,
    fits: usize,
) -> Result<wire::SearchResult> {
    let filters = &request.filters;
    let needs_tree = filters.branches != BranchFilter::All
        || filters.without.is_some()
        || filters.tag.is_some()
        || filters.git.is_some();
    if needs_tree {
        let why = "knows no branches, tags and words to leave out: search here for these";
        return Err(Error::invalid_params("team", why));
    }
    let team = team.ok_or_else(|| {
        let why = "needs a daemon of a team on PostgreSQL: name it in the section [team]";
        Error::invalid_params("team", why)
    })?;
    let terms = request.question.terms().iter().map(|one| one.term);
    let found = team.find(&TeamQuestion {
        terms: terms.collect(),
        session: filters.session.clone(),
        directories: filters
            .wanted_directories()
            .map(|wanted| wanted.written.clone())
            .collect(),
    })?;
    let ranked = rank_lines(request, &found, now);
    let hits = ranked.hits.iter().map(|(hit, author)| wire::SearchHit {
        author: Some(author.clone()),
        ..wire_hit(hit)
    });
    let hits = fitting(hits, fits)?;
    let more = ranked.more.into_iter().map(|more| wire::MoreHits {
        session_id: more.session_id,
        count: more.count,
    });
    Ok(wire::SearchResult {
        hits,
        more: more.collect(),
        did_you_mean: Vec::new(),
        totals: wire_totals(ranked.totals),
        next_cursor: None,
        partial: Vec::new(),
    })
}
