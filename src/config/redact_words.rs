//! `[redact] words`: words that exports replace (protocol.md §16).

use super::lines::{SettingLines, SettingOrigin};
use anyhow::ensure;
use treelined_redact::{MAX_WORDS, WORD_BYTES};
use treelined_service::settings::RedactSettings;

/// The words of the file, and the environment variables that the file names for keys. The settings in force show only
/// the number of the words, since the words are secrets.
pub(super) fn redact(
    words: Vec<String>,
    variables: Vec<String>,
    lines: &mut SettingLines,
) -> anyhow::Result<RedactSettings> {
    ensure!(
        words.len() <= MAX_WORDS,
        "redact.words: has more than {MAX_WORDS} words"
    );
    for (number, word) in words.iter().enumerate() {
        // The check uses `char::is_control`, and not the table of characters that a terminal obeys: a word may be a
        // name with marks for the direction of writing. Such marks do no harm here, since a word is never shown.
        let is_right = WORD_BYTES.contains(&word.len()) && word.trim() == word;
        ensure!(
            is_right && !word.chars().any(char::is_control),
            "redact.words: word {} must have {} to {} bytes, no control characters, and no blanks at its ends",
            number + 1,
            WORD_BYTES.start(),
            WORD_BYTES.end()
        );
    }
    if !words.is_empty() {
        let hidden = toml::Value::Array(vec![toml::Value::from("***"); words.len()]);
        lines.push(("redact", "words"), hidden, SettingOrigin::File);
    }
    Ok(RedactSettings { words, variables })
}
