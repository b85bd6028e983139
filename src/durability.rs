//! How much of a failure an answered append survives (storage.md §3).

/// What an answered append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: an ephemeral session.
    None,
    /// The death of the process.
    Os,
    /// That of the machine, after at most 50 ms.
    Interval,
    /// That of the machine.
    Always,
}

impl Durability {
    pub const fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Os => "os",
            Durability::Interval => "interval",
            Durability::Always => "always",
        }
    }
}
