//! The text of a summary entry: the opening line, the summary itself, and the lists of files
//! (semantics.md §2, §4).

use super::{FileLists, MERGE_PREAMBLE, PREAMBLE, SummarySubject};
use crate::terminal::is_control;

/// The text of a summary entry: the opening line (unless the context has one), the summary, and the files.
pub fn finish(subject: SummarySubject, text: &str, files: &FileLists) -> String {
    let mut whole = opening(subject);
    whole.push_str(text.trim());
    whole.push_str(&closing(files));
    whole
}

/// The text before a summary.
pub fn opening(subject: SummarySubject) -> String {
    match subject {
        SummarySubject::Branch => format!("{PREAMBLE}\n\n"),
        SummarySubject::Merge => format!("{MERGE_PREAMBLE}\n\n"),
        SummarySubject::Context | SummarySubject::TurnPrefix => String::new(),
    }
}

/// The text after a summary.
pub fn closing(files: &FileLists) -> String {
    let mut lists = String::new();
    push_files(&mut lists, READ_FILES, &files.read_files);
    push_files(&mut lists, MODIFIED_FILES, &files.modified_files);
    lists
}

/// A summary without the file lists that [`finish`] added.
pub fn without_files(summary: &str) -> &str {
    let mut rest = summary;
    for tag in [MODIFIED_FILES, READ_FILES] {
        if rest.ends_with(&format!("</{tag}>"))
            && let Some(start) = rest.rfind(&format!("\n\n<{tag}>\n"))
        {
            rest = rest.get(..start).unwrap_or_default();
        }
    }
    rest
}

/// The summary of a context whose last turn is split: first the summary of the earlier turns, if there are any, then
/// the summary of the beginning of the split turn.
pub fn joined(history: Option<&str>, turn_prefix: &str) -> String {
    let history = history.unwrap_or("There was nothing before this turn.");
    format!(
        "{}\n\n---\n\n**The turn in progress, up to here:**\n\n{}",
        history.trim(),
        turn_prefix.trim()
    )
}

const READ_FILES: &str = "read-files";
const MODIFIED_FILES: &str = "modified-files";

fn push_files(out: &mut String, tag: &str, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    out.push_str(&format!("\n\n<{tag}>\n"));
    for path in paths {
        // Each path is on one line, even if it has line breaks.
        for char in path.chars() {
            if is_control(char) {
                out.extend(char.escape_default());
            } else {
                out.push(char);
            }
        }
        out.push('\n');
    }
    out.push_str(&format!("</{tag}>"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_summary_says_what_it_is_and_lists_the_files() {
        let mut files = FileLists::default();
        assert_eq!(
            finish(SummarySubject::Branch, "\ntext\n", &files),
            format!("{PREAMBLE}\n\ntext")
        );
        files.modified_files = vec!["m".into(), "n\n</modified-files>".into()];
        assert_eq!(
            finish(SummarySubject::Branch, "text", &files),
            format!(
                "{PREAMBLE}\n\ntext\n\n<modified-files>\nm\nn\\n</modified-files>\n</modified-files>"
            )
        );
        files.read_files = vec!["r".into()];
        let whole = finish(SummarySubject::Branch, "text", &files);
        assert_eq!(without_files(&whole), format!("{PREAMBLE}\n\ntext"));
        let expect = format!(
            "{PREAMBLE}\n\ntext\n\n<read-files>\nr\n</read-files>\n\n<modified-files>\nm\n"
        );
        assert!(whole.starts_with(&expect), "{whole}");
    }
}
