//! The read tools. Each returns a text: a heading, lines of facts, and the quoted record.

pub mod answers;
mod branches;
mod family;
mod files;
mod hits;
mod lists;
mod pages;
mod tried;

use answers::{Facts, MAX_LINE};
pub use branches::{compare_branches, why_left};
pub use files::files_history;
pub use hits::{search_history, snippets};
pub use lists::{list_branches, list_sessions, titles};
pub use pages::{BranchPart, read_branch, read_entry};
pub use tried::what_was_tried;

use crate::clean::Cleaner;
use crate::history::OpenSession;
use crate::text::quoted;

impl OpenSession<'_> {
    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        facts.id("session", &self.id);
        facts
    }

    /// The beginning of the record: the name of the session, if it has one.
    fn title(&self, cleaner: &mut Cleaner<'_>) -> String {
        let name = cleaner.line(&self.name, MAX_LINE);
        match name.is_empty() {
            true => String::new(),
            false => format!("\n{}", quoted(&format!("session: {name}"))),
        }
    }
}
