//! The failures that an answered append survives (session-file.md §3).

/// The failures that an answered append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// None: an ephemeral session.
    None,
    /// A crash of the process.
    Os,
    /// A crash of the machine, at least 50 ms after the answer.
    Interval,
    /// A crash of the machine.
    Always,
    /// The loss of the machine: the team's stream has the entry (fleet.md).
    Replicated,
    /// A crash of the process. The entry waits in the file for the log.
    Queued,
}

impl Durability {
    pub const fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Os => "os",
            Durability::Interval => "interval",
            Durability::Always => "always",
            Durability::Replicated => "replicated",
            Durability::Queued => "queued",
        }
    }
}
