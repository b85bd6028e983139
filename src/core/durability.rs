//! The failures that an answered append survives (session-file.md §3).

use serde::{Deserialize, Serialize};

/// How safe a write is at the time of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing was written, or the session is ephemeral.
    None,
    /// The write survives the death of the daemon.
    Os,
    /// The write also survives the death of the machine, at most 50 ms after the response.
    Interval,
    /// The write is on the disk.
    Always,
    /// The team's servers have the write, so it survives the loss of this machine (fleet.md).
    Replicated,
    /// The write survives the death of the daemon, and waits to be sent to the team's servers.
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

/// When the appends of a session are synced to the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DurabilityPolicy {
    /// When the system decides.
    Os,
    /// At most 50 ms after the response.
    #[default]
    Interval,
    /// Before the response.
    Always,
}

impl DurabilityPolicy {
    pub const ALL: [Self; 3] = [Self::Os, Self::Interval, Self::Always];

    pub fn name(self) -> &'static str {
        Durability::from(self).name()
    }
}

impl From<DurabilityPolicy> for Durability {
    fn from(policy: DurabilityPolicy) -> Self {
        match policy {
            DurabilityPolicy::Os => Self::Os,
            DurabilityPolicy::Interval => Self::Interval,
            DurabilityPolicy::Always => Self::Always,
        }
    }
}
