//! `treelined doctor --cluster`: examines the servers in the settings, and says which failures an acknowledged line
//! survives there (fleet.md).

use super::fleet::servers;
use super::options::Options;
use crate::config::TeamSettings;
use std::process::ExitCode;

pub(super) fn doctor(options: &Options, create: bool) -> anyhow::Result<ExitCode> {
    match servers(&options.config()?)? {
        #[cfg(feature = "nats")]
        TeamSettings::Nats(nats) => super::doctor_nats::doctor(options, nats, create),
        #[cfg(feature = "postgres")]
        TeamSettings::Postgres(postgres) => {
            super::doctor_postgres::doctor(options, &postgres, create)
        }
        #[allow(unreachable_patterns, reason = "a build may have all engines")]
        other => anyhow::bail!("this build of treelined cannot reach {}", other.name()),
    }
}
