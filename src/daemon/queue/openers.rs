//! The connections for which a session is open (protocol.md §10).

use crate::id::ConnectionId;

/// What a connection may do with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Which openings of a connection a close takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Openings {
    One,
    All,
}

/// The effect of a close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The connection has opened the session more often than closed.
    StillOpen,
    /// Only other connections still have the session open.
    ForOthers,
    /// The session closes.
    Last,
}

/// The connections that have a session open, ascending by id.
#[derive(Debug, Default)]
pub(super) struct Openers(Vec<Opener>);

#[derive(Debug)]
struct Opener {
    connection: ConnectionId,
    openings: u32,
    access: Access,
}

impl Openers {
    fn find(&self, connection: ConnectionId) -> Option<&Opener> {
        let place = self.place(connection).ok()?;
        self.0.get(place)
    }

    fn place(&self, connection: ConnectionId) -> Result<usize, usize> {
        self.0
            .binary_search_by_key(&connection, |opener| opener.connection)
    }

    pub(super) fn access(&self, connection: ConnectionId) -> Option<Access> {
        Some(self.find(connection)?.access)
    }

    pub(super) fn has_writer(&self) -> bool {
        self.0.iter().any(|opener| opener.access == Access::Write)
    }

    /// Counts one more opening. The first one decides the access.
    pub(super) fn admit(&mut self, connection: ConnectionId, access: Access) {
        match self.place(connection) {
            Ok(place) => {
                if let Some(opener) = self.0.get_mut(place) {
                    opener.openings = opener.openings.saturating_add(1);
                }
            }
            Err(place) => {
                let openings = 1;
                let opener = Opener {
                    connection,
                    openings,
                    access,
                };
                self.0.insert(place, opener);
            }
        }
    }

    /// The effect that a close would have.
    pub(super) fn departure(&self, connection: ConnectionId, openings: Openings) -> Departure {
        let opener = self.find(connection);
        if openings == Openings::One && opener.is_some_and(|opener| opener.openings > 1) {
            return Departure::StillOpen;
        }
        match self.0.len() > usize::from(opener.is_some()) {
            true => Departure::ForOthers,
            false => Departure::Last,
        }
    }

    pub(super) fn leave(&mut self, connection: ConnectionId, openings: Openings) {
        let Ok(place) = self.place(connection) else {
            return;
        };
        if let Some(opener) = self.0.get_mut(place)
            && openings == Openings::One
            && opener.openings > 1
        {
            opener.openings -= 1;
            return;
        }
        self.0.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_closes_with_the_last_opening_of_the_last_connection() {
        let (a, b) = (ConnectionId(1), ConnectionId(2));
        let mut openers = Openers::default();
        openers.admit(b, Access::Write);
        openers.admit(a, Access::Read);
        openers.admit(a, Access::Write);
        assert_eq!(openers.access(a), Some(Access::Read));
        assert_eq!(openers.departure(a, Openings::One), Departure::StillOpen);
        assert_eq!(openers.departure(a, Openings::All), Departure::ForOthers);
        openers.leave(a, Openings::One);
        openers.leave(a, Openings::One);
        assert_eq!(openers.access(a), None);
        assert!(openers.has_writer());
        assert_eq!(openers.departure(b, Openings::One), Departure::Last);
        openers.leave(b, Openings::One);
        assert!(!openers.has_writer());
    }
}
