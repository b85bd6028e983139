//! The durability of lines that a server of PostgreSQL has acknowledged. The server's settings decide it
//! (schema/fleet.md "Durability").

use treelined_core::durability::Durability;

/// The durability of an append that a server with these settings acknowledges.
pub(crate) fn worth(commits: &str, standbys: &str) -> Durability {
    match commits {
        "off" => Durability::Os,
        "on" | "remote_apply" if !standbys.trim().is_empty() => Durability::Replicated,
        _ => Durability::Always,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The acknowledgement of one server was once called replicated.
    #[test]
    fn only_a_commit_that_waits_for_a_standby_is_replicated() {
        for (commits, standbys, expected) in [
            ("on", "ANY 1 (a, b)", Durability::Replicated),
            ("remote_apply", "a", Durability::Replicated),
            ("remote_write", "a", Durability::Always),
            ("local", "a", Durability::Always),
            ("on", "", Durability::Always),
            ("on", " ", Durability::Always),
            ("off", "a", Durability::Os),
        ] {
            assert_eq!(worth(commits, standbys), expected, "{commits} {standbys}");
        }
    }
}
