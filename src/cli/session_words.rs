//! Reads the words of a command that takes a session and further words, such as `[SESSION] ENTRY` or `[SESSION] A B`.
//! If the session is left out, it is the latest session of this directory.

use super::failure::{ShellError, USAGE};
use super::session_choice::SessionQuery;

/// The words that must follow the session, and the command in whose help they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordsWanted {
    pub command: &'static str,
    /// The names of the words, such as "the entry".
    pub names: &'static [&'static str],
}

impl WordsWanted {
    /// The session, and the words after it. If there is one word more than wanted, the first word names the session.
    pub(super) fn split<'w>(
        self,
        given: impl IntoIterator<Item = &'w String>,
        is_latest: bool,
    ) -> Result<(SessionQuery, Vec<&'w str>), ShellError> {
        let mut words: Vec<&str> = given.into_iter().map(String::as_str).collect();
        let is_named = words.len() > self.names.len();
        if is_latest && is_named {
            return Err(self.wrong("--latest names the session, and SESSION does too"));
        }
        if let Some(missing) = self.names.get(words.len()) {
            return Err(self.wrong(&format!("{missing} is missing")));
        }
        let session = match is_named {
            true => SessionQuery::Named(words.remove(0).to_owned()),
            false => SessionQuery::Latest,
        };
        Ok((session, words))
    }

    pub(super) fn wrong(self, message: &str) -> ShellError {
        ShellError::new(USAGE, message, format!("treelined {} --help", self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_names_the_session_only_if_enough_follow() {
        let wanted = WordsWanted {
            command: "compare",
            names: &["the first entry", "the second entry"],
        };
        let words = ["a", "b", "c"].map(str::to_owned);
        let split = |count: usize, latest| wanted.split(words.iter().take(count), latest);
        let latest = (SessionQuery::Latest, vec!["a", "b"]);
        assert_eq!(split(2, false).unwrap(), latest);
        assert_eq!(split(2, true).unwrap(), latest);
        let named = (SessionQuery::Named("a".to_owned()), vec!["b", "c"]);
        assert_eq!(split(3, false).unwrap(), named);
        for (count, is_latest, message) in [
            (0, false, "the first entry is missing"),
            (1, true, "the second entry is missing"),
            (3, true, "--latest names the session, and SESSION does too"),
        ] {
            let error = split(count, is_latest).unwrap_err();
            assert_eq!((error.message.as_str(), error.code), (message, USAGE));
            assert_eq!(error.remedy, "treelined compare --help");
        }
    }
}
