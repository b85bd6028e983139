//! Shows where the leaf of a session is, for the commands that move it.

use super::daemon::ChildDaemon;
use super::drawing::DrawnRow;
use super::opened::OpenedSession;
use super::screen::{Screen, Style};
use super::session_choice::SessionQuery;
use super::tree_rows::nearest;
use std::io::{self, Write};
use treelined_core::terminal;

/// A session, and the entry at its leaf.
pub(super) struct Position {
    /// The title of the session. It is shown if the person has not named the session.
    title: Option<String>,
    /// The visible entry at or above the leaf; `None` before the first entry.
    row: Option<DrawnRow>,
}

impl Position {
    /// The position of the session that the daemon has open. `leaf` is the id of the leaf.
    pub(super) fn of(
        daemon: &mut ChildDaemon,
        session: &OpenedSession,
        query: &SessionQuery,
        leaf: Option<&str>,
    ) -> anyhow::Result<Self> {
        let row = match leaf {
            Some(id) => nearest(daemon, id)?.filter(DrawnRow::is_at_leaf),
            None => None,
        };
        let title = session.title();
        let title = (*query == SessionQuery::Latest).then(|| title.to_owned());
        Ok(Self { title, row })
    }

    /// Whether the shown entry has this id.
    pub(super) fn is_at(&self, id: &str) -> bool {
        self.row.as_ref().is_some_and(|row| row.id == id)
    }

    /// The same position without the title.
    pub(super) fn untitled(self) -> Self {
        Self {
            title: None,
            ..self
        }
    }

    /// Shows the session, then the words `what` (such as "now at") and the entry.
    pub(super) fn show(&self, screen: &mut Screen, what: &str) -> io::Result<()> {
        if let Some(title) = &self.title {
            let title = terminal::line(title);
            let title = terminal::cut(&title, screen.columns, "…");
            writeln!(screen, "{}", screen.style(Style::Bold, &title))?;
        }
        match &self.row {
            Some(row) => line(screen, what, row),
            None => writeln!(screen, "{what} the beginning, before the first entry"),
        }
    }
}

/// Shows an entry on one line after the words `what`, which are styled already.
pub(super) fn line(screen: &mut Screen, what: &str, row: &DrawnRow) -> io::Result<()> {
    let text = row.plain();
    let left = screen.columns.saturating_sub(terminal::width(what) + 1);
    let text = terminal::cut(&text, left, "…");
    let what = screen.style(Style::Green, what);
    writeln!(screen, "{what} {text}")
}

/// Shows the command that reverses the move.
pub(super) fn way_back(screen: &mut Screen, verb: &str, query: &SessionQuery) -> io::Result<()> {
    let note = format!("treelined {verb}{} takes it back", query.as_word());
    let note = terminal::line(&note);
    writeln!(screen, "{}", screen.style(Style::Dim, &note))
}
