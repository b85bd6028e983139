//! Exports a branch as a session file without secrets. Viewers of session traces, such as the viewer of Hugging Face,
//! can show this file.

use super::super::content::ContentSource;
use super::super::jsonl::SessionFile;
use super::super::request::Progress;
use super::super::tally::RedactionTally;
use crate::redact::RedactEntry;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_files::cancel::Cancel;

/// Passes the lines to `take`, and returns the number of lines.
pub(super) fn each(
    file: &SessionFile,
    content: &ContentSource,
    cancel: &Cancel,
    progress: Progress<'_>,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<(RedactionTally, u64)> {
    let (mut tally, mut lines) = (RedactionTally::default(), 0);
    file.each_line(cancel, progress, &mut |line| {
        let mut found = Vec::new();
        let redacted = content
            .redactor
            .entry(line, &mut |kind, _| found.push(kind));
        if !found.is_empty() {
            let id = json::get(line, "id").and_then(json::id);
            tally.add(&id.unwrap_or_default(), &found);
        }
        lines += 1;
        take(&super::json::readable(&redacted))?;
        take(b"\n")
    })?;
    Ok((tally, lines))
}
