//! Diagnostics of session files.

use std::borrow::Cow;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::json;
use treelined_core::timestamp;
use treelined_files::log::diagnostic::{Damage, Diagnostic};
use treelined_files::session::SessionState;
use treelined_wire as wire;

pub(crate) fn to_wire(found: &[Diagnostic]) -> Vec<wire::Diagnostic> {
    found.iter().map(diagnostic).collect()
}

fn diagnostic(found: &Diagnostic) -> wire::Diagnostic {
    use wire::DiagnosticKind as Kind;
    let kind = match found.damage {
        Damage::TornTail => Kind::TornTail,
        Damage::InvalidJson => Kind::InvalidJson,
        Damage::NotAnObject => Kind::NotAnObject,
        Damage::InvalidUtf8 => Kind::InvalidUtf8,
        Damage::NulBytes => Kind::NulBytes,
        Damage::GluedLines => Kind::GluedLines,
        Damage::DuplicateId => Kind::DuplicateId,
        Damage::OrphanParent => Kind::OrphanParent,
        Damage::ForwardParent => Kind::ForwardParent,
        Damage::SelfParent => Kind::SelfParent,
        Damage::Cycle => Kind::Cycle,
        Damage::SecondHeader => Kind::SecondHeader,
        Damage::MissingTrailingNewline => Kind::MissingTrailingNewline,
        Damage::OversizedLine => Kind::OversizedLine,
        Damage::DurabilityUnknown => Kind::DurabilityUnknown,
    };
    wire::Diagnostic {
        line: found.line,
        offset: found.offset,
        length: found.length,
        ..wire::Diagnostic::of_file(kind)
    }
}

/// The diagnostics of the position at which a file opens.
pub(crate) fn of_place(state: &SessionState) -> impl Iterator<Item = wire::Diagnostic> {
    let cut = state.tree.cut_background().map(|last| wire::Diagnostic {
        newest_tip_id: Some(state.tree.id(last).to_owned()),
        ..wire::Diagnostic::of_file(wire::DiagnosticKind::BackgroundCut)
    });
    let rewound = state
        .has_lost_lines()
        .then(|| wire::Diagnostic::of_file(wire::DiagnosticKind::LogRewound));
    leaf_beside_newest(state)
        .into_iter()
        .chain(cut)
        .chain(rewound)
}

/// The diagnostic of a session that opens at a leaf that is not its newest step (session-file.md §4.2).
fn leaf_beside_newest(state: &SessionState) -> Option<wire::Diagnostic> {
    let beside = match state.left_leaf() {
        Some(leaf) => state.tree.newest_beside(leaf),
        None => state.tree.beside_newest(),
    }?;
    let at = state.tree.timestamp(beside.opens_at);
    let entry = match state.tree.kind(beside.opens_at) {
        EntryKind::Custom | EntryKind::Note => state.entry(beside.opens_at).ok(),
        _ => None,
    };
    let by = entry
        .as_deref()
        .and_then(|entry| json::get(entry, "customType"));
    Some(wire::Diagnostic {
        newest_tip_id: Some(state.tree.id(beside.newest).to_owned()),
        at: at.map(timestamp::format),
        by: by.and_then(json::string).map(Cow::into_owned),
        newer_turns: Some(beside.turns),
        ..wire::Diagnostic::of_file(wire::DiagnosticKind::LeafBesideNewest)
    })
}
