//! The branch that a person names with `[SESSION] [ENTRY]`: a session, and the last entry of a path in
//! it.

use super::failure::ShellError;
use super::session_choice::SessionQuery;
use super::session_words::WordsWanted;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

// This is not a doc comment, since that would become the description of the command.
#[derive(Debug, Args)]
pub(super) struct BranchChoice {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_or_entries))]
    session: Option<String>,
    /// The last entry of the branch by its id, label or beginning of the id [default: the leaf]
    #[arg(value_name = "ENTRY", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    entry: Option<String>,
    /// The session of this directory with the last activity; the first argument is then ENTRY
    #[arg(long)]
    latest: bool,
}

impl BranchChoice {
    /// The session and, if one is named, the entry. `command` is the command that has these arguments.
    pub(super) fn wanted(
        &self,
        command: &'static str,
    ) -> Result<(SessionQuery, Option<&str>), ShellError> {
        // A single word is the session, unless an option names the session.
        let names: &[&str] = match (self.latest, &self.session, &self.entry) {
            (true, Some(_), _) | (false, _, Some(_)) => &["the entry"],
            _ => &[],
        };
        let given = self.session.iter().chain(&self.entry);
        let (query, words) = WordsWanted { command, names }.split(given, self.latest)?;
        Ok((query, words.first().copied()))
    }
}
