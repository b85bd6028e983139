//! Tool calls in rows: the call, and for a tool result also its outcome.

use super::facts::{RowFacts, ToolCall};
use super::line::PreviewLine;
use super::prefix::Render;
use crate::tools::{self, FileAccess, LineCounts, Saying};
use std::borrow::Cow;

/// The longest summary of a call, in characters.
pub(super) const SUMMARY_CHARS: usize = 120;
/// The longest line of a result, in characters.
pub(super) const RESULT_CHARS: usize = 80;

/// A call with its summary for a row ([`ToolCall::told`]).
#[derive(Debug, Clone, Copy)]
pub(super) struct ToldCall<'a> {
    pub(super) call: &'a ToolCall<'a>,
    pub(super) told: &'a str,
}

impl<'a> ToolCall<'a> {
    /// `arguments` is raw JSON, and may be damaged.
    pub fn new(id: Cow<'a, str>, name: Cow<'a, str>, arguments: &[u8]) -> Self {
        let call = tools::CallArguments::new(&name, arguments);
        let summary = summary_of(&call, PreviewLine::LIMIT);
        let changes = match call.access() {
            FileAccess::Change => u32::try_from(call.files().len()).unwrap_or(u32::MAX).max(1),
            FileAccess::Read | FileAccess::None => 0,
        };
        Self {
            id,
            name,
            summary: summary.into(),
            changes,
            lines: call.changed_lines(),
        }
    }

    /// The summary for a row, of at most [`SUMMARY_CHARS`] characters. Paths are shown without the session's
    /// directory.
    pub(super) fn told(&self, cwd: &str) -> String {
        let mut line = PreviewLine::of(SUMMARY_CHARS);
        line.push_str(&relative(&self.summary, cwd));
        line.into_text()
    }

    pub fn into_owned(self) -> ToolCall<'static> {
        ToolCall {
            id: Cow::Owned(self.id.into_owned()),
            name: Cow::Owned(self.name.into_owned()),
            summary: Cow::Owned(self.summary.into_owned()),
            changes: self.changes,
            lines: self.lines,
        }
    }
}

/// The call in one line of at most `SUMMARY_CHARS` characters; empty if its arguments are empty or unknown.
pub fn call_summary(call: &tools::CallArguments<'_>) -> String {
    summary_of(call, SUMMARY_CHARS)
}

fn summary_of(call: &tools::CallArguments<'_>, limit: usize) -> String {
    let mut summary = PreviewLine::of(limit);
    if let Some(told) = call.summary() {
        summary.push_str(&told);
    }
    summary.into_text()
}

/// `text` with paths relative to the directory `cwd`, and without a leading command that changes to `cwd`.
pub(super) fn relative<'t>(text: &'t str, cwd: &str) -> Cow<'t, str> {
    let cwd = cwd.trim_end_matches(['/', '\\']);
    if cwd.is_empty() || !text.contains(cwd) {
        return Cow::Borrowed(text);
    }
    let mut rest = text;
    if let Some((moved, command)) = text.split_once("&& ")
        && let Some(to) = moved.trim().strip_prefix("cd ")
        && to.trim_matches(['"', '\'', ' ']) == cwd
    {
        rest = command;
    }
    let mut out = String::with_capacity(rest.len());
    let is_name =
        |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | '\\');
    while let Some((before, after)) = rest.split_once(cwd) {
        out.push_str(before);
        let inner = after.strip_prefix(['/', '\\']);
        rest = match inner {
            _ if out.ends_with(is_name) => {
                out.push_str(cwd);
                after
            }
            Some(inner) if inner.starts_with(is_name) => inner,
            None if after.starts_with(is_name) => {
                out.push_str(cwd);
                after
            }
            _ => {
                out.push('.');
                inner.unwrap_or(after)
            }
        };
    }
    out.push_str(rest);
    Cow::Owned(out)
}

impl RowFacts<'_> {
    /// The call as far as the tool result itself names it, for a result whose call is not found.
    pub fn own_call(&self) -> Option<ToolCall<'_>> {
        let name = self.tool_name.as_deref()?;
        Some(ToolCall::new(Cow::default(), name.into(), b""))
    }

    /// The preview of a tool result: the call and its outcome. If the preview is too long, the call is cut, and the
    /// outcome is not.
    pub fn preview_of_result(
        &self,
        call: Option<&ToolCall<'_>>,
        is_error: bool,
        render: Option<Render>,
        cwd: &str,
    ) -> String {
        let told = call.map(|call| call.told(cwd)).unwrap_or_default();
        let call = call.map(|call| ToldCall { call, told: &told });
        self.preview_of_told(call, is_error, render, cwd)
    }

    pub(super) fn preview_of_told(
        &self,
        told: Option<ToldCall<'_>>,
        is_error: bool,
        render: Option<Render>,
        cwd: &str,
    ) -> String {
        let call = told.map(|told| told.call);
        let saying = call.map_or(Saying::Line, |call| tools::saying(&call.name));
        let tail = self.outcome(call, saying, is_error, render, cwd);
        let room = PreviewLine::LIMIT.saturating_sub(tail.chars().count() + 1);
        let mut asked = PreviewLine::of(room);
        if let Some(ToldCall { call, told }) = told {
            if saying != Saying::Command || told.is_empty() {
                asked.push_str(&call.name);
            }
            asked.gap();
            asked.push_str(told);
        }
        let mut line = PreviewLine::default();
        line.push_str(&asked.into_text());
        line.gap();
        line.push_str(&tail);
        line.into_text()
    }

    /// The outcome of a call, with its mark before it; empty if the call succeeded without output.
    fn outcome(
        &self,
        call: Option<&ToolCall<'_>>,
        saying: Saying,
        is_error: bool,
        render: Option<Render>,
        cwd: &str,
    ) -> String {
        let (arrow, failed, minus) = match render {
            Some(Render::Ascii) => ("->", "x", "-"),
            Some(Render::Unicode) | None => ("→", "✗", "−"),
        };
        if is_error {
            return format!("{arrow} {failed} {}", self.preview);
        }
        let lines = call.and_then(|call| call.lines);
        match (lines, call.map_or(0, |call| call.changes)) {
            (
                Some(LineCounts {
                    added: 0,
                    removed: 0,
                }),
                _,
            ) => format!("{arrow} unchanged"),
            (Some(LineCounts { added, removed: 0 }), _) => format!("+{added}"),
            (Some(LineCounts { added: 0, removed }), _) => format!("{minus}{removed}"),
            (Some(LineCounts { added, removed }), _) => format!("+{added} {minus}{removed}"),
            (None, 1) => format!("{arrow} 1 file changed"),
            (None, 2..) => format!(
                "{arrow} {} files changed",
                call.map_or(0, |call| call.changes)
            ),
            (None, 0) if saying == Saying::Lines && self.lines > 1 => {
                format!("{arrow} {} lines", self.lines)
            }
            (None, 0) if self.preview.is_empty() => String::new(),
            (None, 0) => format!("{arrow} {}", self.result(cwd)),
        }
    }

    /// The line of the result. If the line begins with a path, the path is shown without the session's directory.
    fn result(&self, cwd: &str) -> &str {
        let cwd = cwd.trim_end_matches('/');
        let inside = self.preview.strip_prefix(cwd);
        let inside = inside.and_then(|path| path.strip_prefix('/'));
        inside
            .filter(|path| !cwd.is_empty() && !path.is_empty())
            .unwrap_or(&self.preview)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of `Glob` once began with the session's directory.
    #[test]
    fn a_result_that_is_a_path_begins_in_the_directory_of_the_session() {
        let check = |preview: &'static str, cwd: &str, shown: &str| {
            let facts = RowFacts {
                preview: preview.into(),
                ..RowFacts::default()
            };
            assert_eq!(facts.result(cwd), shown, "{preview} {cwd}");
        };
        check("/w/app/src/a.rs", "/w/app", "src/a.rs");
        check("/w/app/src/a.rs", "/w/app/", "src/a.rs");
        for whole in ["/w/app", "/w/app/", "/w/app2/a.rs", "in /w/app/a.rs"] {
            check(whole, "/w/app", whole);
        }
        check("/a", "/", "/a");
        check("/a", "", "/a");
    }

    /// Rows of `Read` were once cut before the name of the file.
    #[test]
    fn paths_are_relative_to_the_directory_of_the_session() {
        let check =
            |text: &str, shown: &str| assert_eq!(relative(text, "/w/app/"), shown, "{text}");
        check("/w/app/src/a.rs", "src/a.rs");
        check("/w/app", ".");
        check("ls /w/app/ -l", "ls . -l");
        check("cd /w/app && cargo test", "cargo test");
        check("cd \"/w/app\" && ls", "ls");
        check("cd /w/app/src && ls", "cd src && ls");
        check(
            "/w/app2/a /w/app.md /x/w/app/a",
            "/w/app2/a /w/app.md /x/w/app/a",
        );
        check("a=/w/app/b '/w/app/c'", "a=b 'c'");
        assert_eq!(relative("/a", "/"), "/a");
        assert_eq!(relative("C:\\p\\a", "C:\\p"), "a");
    }
}
