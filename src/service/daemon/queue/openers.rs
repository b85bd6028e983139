//! The connections for which a session is open (protocol.md §10).
//!
//! A connection that opens a session holds the session. An extension may also follow a session: the session is then
//! open for the extension as long as other connections hold it.

use treelined_core::id::ConnectionId;

/// The access of a connection to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The number of openings that a close of a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Openings {
    One,
    All,
}

/// The effect of a close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The connection has opened the session more often than it has closed it, or still follows it.
    StillOpen,
    /// The session stays open, but only for other connections.
    ForOthers,
    /// No other connection holds the session, so the session closes.
    Last,
}

/// The connections that have a session open, ascending by id.
#[derive(Debug, Default)]
pub(super) struct Openers(Vec<Opener>);

#[derive(Debug)]
struct Opener {
    connection: ConnectionId,
    /// 0 for a connection that only follows the session.
    openings: u32,
    access: Access,
    follows: bool,
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
        let mut holders = self.0.iter().filter(|opener| opener.openings > 0);
        holders.any(|opener| opener.access == Access::Write)
    }

    /// Counts one more opening. The first one decides the access.
    pub(super) fn admit(&mut self, connection: ConnectionId, access: Access) {
        self.change(connection, |opener| {
            if opener.openings == 0 {
                opener.access = access;
            }
            opener.openings = opener.openings.saturating_add(1);
        });
    }

    /// Lets a connection follow the session.
    pub(super) fn follow(&mut self, connection: ConnectionId) {
        self.change(connection, |opener| opener.follows = true);
    }

    /// Changes the opener of this connection. Adds an opener if the connection has none.
    fn change(&mut self, connection: ConnectionId, change: impl FnOnce(&mut Opener)) {
        match self.place(connection) {
            Ok(place) => {
                if let Some(opener) = self.0.get_mut(place) {
                    change(opener);
                }
            }
            Err(place) => {
                let mut opener = Opener {
                    connection,
                    openings: 0,
                    access: Access::Write,
                    follows: false,
                };
                change(&mut opener);
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
        let is_other_holder = |other: &Opener| other.connection != connection && other.openings > 0;
        match self.0.iter().any(is_other_holder) {
            true if openings == Openings::One && opener.is_some_and(Opener::follows_too) => {
                Departure::StillOpen
            }
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
            && (opener.openings > 1 || opener.follows_too())
        {
            opener.openings -= 1;
            return;
        }
        self.0.remove(place);
    }
}

impl Opener {
    /// Whether the connection holds and follows the session. Its last close then leaves the session open for it.
    fn follows_too(&self) -> bool {
        self.follows && self.openings > 0
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

    #[test]
    fn a_follower_neither_keeps_a_session_open_nor_makes_it_writable() {
        let (holder, follower) = (ConnectionId(1), ConnectionId(2));
        let mut openers = Openers::default();
        openers.admit(holder, Access::Read);
        openers.follow(follower);
        assert_eq!(openers.access(follower), Some(Access::Write));
        assert!(!openers.has_writer());
        assert_eq!(openers.departure(holder, Openings::One), Departure::Last);
        let follower_leaves = openers.departure(follower, Openings::One);
        assert_eq!(follower_leaves, Departure::ForOthers);
        openers.leave(follower, Openings::One);
        assert_eq!(openers.access(follower), None);
    }

    #[test]
    fn a_follower_holds_a_session_that_it_opens_itself() {
        let (holder, follower) = (ConnectionId(1), ConnectionId(2));
        let mut openers = Openers::default();
        openers.admit(holder, Access::Write);
        openers.follow(follower);
        openers.admit(follower, Access::Read);
        assert_eq!(openers.access(follower), Some(Access::Read));
        let holder_leaves = openers.departure(holder, Openings::All);
        assert_eq!(holder_leaves, Departure::ForOthers);
        let closes = openers.departure(follower, Openings::One);
        assert_eq!(closes, Departure::StillOpen, "it still follows");
        openers.leave(follower, Openings::One);
        assert_eq!(openers.departure(holder, Openings::All), Departure::Last);
        openers.admit(follower, Access::Read);
        openers.leave(holder, Openings::All);
        let closes = openers.departure(follower, Openings::One);
        assert_eq!(closes, Departure::Last, "nobody holds it then");
    }
}
