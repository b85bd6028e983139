//! Tool calls as rows show them: the call and, for a tool result, its outcome.

use super::line::PreviewLine;
use super::prefix::Render;
use super::preview::RowFacts;
use crate::tools::{self, FileAccess};
use std::borrow::Cow;

/// Longest summary of a call, in characters.
pub(super) const SUMMARY_CHARS: usize = 120;
/// Longest result, in characters.
pub(super) const RESULT_CHARS: usize = 80;

/// A call in an assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ToolCall<'a> {
    /// The id by which its result names it; empty if absent.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// The call in one line of at most [`SUMMARY_CHARS`] characters; empty if its arguments are empty or unknown.
    pub summary: Cow<'a, str>,
    /// The number of files it changes if it succeeds; 0 for a tool that changes no files.
    pub changes: u32,
}

impl<'a> ToolCall<'a> {
    /// `arguments` is raw JSON and may be damaged.
    pub(crate) fn new(id: Cow<'a, str>, name: Cow<'a, str>, arguments: &[u8]) -> Self {
        let call = tools::CallArguments::new(&name, arguments);
        let summary = call_summary(&call);
        let changes = match call.access() {
            FileAccess::Change => u32::try_from(call.files().len()).unwrap_or(u32::MAX).max(1),
            FileAccess::Read | FileAccess::None => 0,
        };
        Self {
            id,
            name,
            summary: summary.into(),
            changes,
        }
    }

    pub(crate) fn into_owned(self) -> ToolCall<'static> {
        ToolCall {
            id: Cow::Owned(self.id.into_owned()),
            name: Cow::Owned(self.name.into_owned()),
            summary: Cow::Owned(self.summary.into_owned()),
            changes: self.changes,
        }
    }
}

/// The call in one line of at most [`SUMMARY_CHARS`] characters; empty if its arguments are empty or unknown.
pub(crate) fn call_summary(call: &tools::CallArguments<'_>) -> String {
    let mut summary = PreviewLine::of(SUMMARY_CHARS);
    if let Some(told) = call.summary() {
        summary.push_str(&told);
    }
    summary.into_text()
}

impl RowFacts<'_> {
    /// The call as the tool result names it; for a result whose call is not found.
    pub(crate) fn own_call(&self) -> Option<ToolCall<'_>> {
        let name = self.tool_name.as_deref()?;
        Some(ToolCall::new(Cow::default(), name.into(), b""))
    }

    /// The preview of a tool result: `<name> <summary> → <result>`. If it is too long, the summary is cut,
    /// not the result.
    pub(crate) fn preview_of_result(
        &self,
        call: Option<&ToolCall<'_>>,
        is_error: bool,
        render: Option<Render>,
    ) -> String {
        let changes = call.map_or(0, |call| call.changes);
        let result: Cow<'_, str> = match changes {
            0 => (&*self.preview).into(),
            _ if is_error => (&*self.preview).into(),
            1 => "1 file changed".into(),
            files => format!("{files} files changed").into(),
        };
        let (arrow, failed) = match render {
            Some(Render::Ascii) => ("->", "x"),
            Some(Render::Unicode) | None => ("→", "✗"),
        };
        let mut tail = String::new();
        for part in [arrow, if is_error { failed } else { "" }, &result] {
            if !part.is_empty() && (is_error || !result.is_empty()) {
                tail.push_str(if tail.is_empty() { "" } else { " " });
                tail.push_str(part);
            }
        }
        let room = PreviewLine::LIMIT.saturating_sub(tail.chars().count() + 1);
        let mut asked = PreviewLine::of(room);
        for part in call.iter().flat_map(|call| [&call.name, &call.summary]) {
            asked.push_str(part);
            asked.gap();
        }
        let mut line = PreviewLine::default();
        line.push_str(&asked.into_text());
        line.gap();
        line.push_str(&tail);
        line.into_text()
    }
}
