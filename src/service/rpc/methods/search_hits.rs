//! Hits of a search in the form of the protocol (protocol.md §3.16).

use crate::daemon::convert::line::line;
use treelined_core::error::Result;
use treelined_core::timestamp;
use treelined_find::{
    Branch, Hit, LeftAttempt, LeftBranch, LeftInTurn, LeftReason, ReasonKind, SaidText, Totals,
};
use treelined_wire as wire;

/// The first hits, as many as fit into `fits` bytes, but at least one.
pub(super) fn fitting(
    hits: impl Iterator<Item = wire::SearchHit>,
    fits: usize,
) -> Result<Vec<wire::SearchHit>> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    for hit in hits {
        bytes += line(&hit)?.len() + 1;
        if bytes > fits && !page.is_empty() {
            break;
        }
        page.push(hit);
    }
    Ok(page)
}

pub(super) fn wire_hit(hit: &Hit) -> wire::SearchHit {
    let Branch {
        tip_id,
        on_active_path,
        left_at,
        left,
        in_turn,
    } = hit.branch.clone();
    let LeftBranch { reason, instead } = left.unwrap_or_default();
    let ranges = hit.excerpt.ranges.iter();
    wire::SearchHit {
        session_id: hit.session_id.clone(),
        session_name: hit.session_name.clone(),
        entry_id: hit.entry_id.clone(),
        field: hit.field,
        at: timestamp::format(hit.at),
        snippet: hit.excerpt.text.clone(),
        ranges: ranges
            .map(|range| [range.start as u64, range.end as u64])
            .collect(),
        inside: hit.inside.clone(),
        // Three digits are enough for a client.
        score: (hit.score * 1000.0).round() / 1000.0,
        branch: wire::HitBranch {
            tip_id,
            on_active_path,
            left_at,
            reason: reason.map(wire_reason),
            instead: instead.map(wire_said),
            left_in_turn: in_turn.map(|left| wire_left(&left)),
        },
        author: None,
    }
}

fn wire_reason(LeftReason { kind, said }: LeftReason) -> wire::LeftReason {
    wire::LeftReason {
        kind: match kind {
            ReasonKind::Note => wire::LeftReasonKind::Note,
            ReasonKind::Label => wire::LeftReasonKind::Label,
            ReasonKind::Summary => wire::LeftReasonKind::Summary,
        },
        entry_id: said.entry_id,
        text: said.text,
    }
}

fn wire_left(left: &LeftInTurn) -> wire::LeftInTurn {
    let attempt = |one: &LeftAttempt| wire::LeftAttempt {
        tip_id: one.tip_id.clone(),
        at: one.at.map(timestamp::format),
        reason: one.reason.clone().map(wire_reason),
        end: one.end.clone().map(wire_said),
    };
    wire::LeftInTurn {
        count: left.count,
        newest: left.newest.iter().map(attempt).collect(),
    }
}

fn wire_said(SaidText { entry_id, text }: SaidText) -> wire::SaidText {
    wire::SaidText { entry_id, text }
}

pub(super) fn wire_totals(totals: Totals) -> wire::SearchTotals {
    wire::SearchTotals {
        sessions: totals.sessions,
        entries: totals.entries,
        scanned_bytes: totals.scanned_bytes,
        at_least: totals.are_least,
        unread: Some(totals.unread).filter(|unread| *unread > 0),
        shed_sessions: Some(totals.shed).filter(|shed| *shed > 0),
    }
}
