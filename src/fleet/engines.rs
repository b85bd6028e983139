//! The engines that this build has.

use super::engine::Engine;
#[cfg(feature = "postgres")]
use super::postgres::PgLog;
use super::settings::TeamSettings;
#[cfg(feature = "nats")]
use super::stream::NatsLog;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};

/// Connects to the servers of the settings. Fails unless the servers keep acknowledged lines. An append is tried for
/// `append_time`; the default is 25 s.
pub fn open(settings: &TeamSettings, append_time: Option<Duration>) -> Result<Arc<dyn Engine>> {
    match settings {
        #[cfg(feature = "nats")]
        TeamSettings::Nats(nats) => {
            let log = NatsLog::open(nats.clone())?;
            Ok(Arc::new(match append_time {
                Some(time) => log.with_append_time(time),
                None => log,
            }))
        }
        #[cfg(feature = "postgres")]
        TeamSettings::Postgres(postgres) => Ok(Arc::new(PgLog::open(postgres, append_time)?)),
        #[allow(unreachable_patterns, reason = "a build may have all engines")]
        other => {
            let _ = append_time;
            let why = format!("this build of treelined cannot reach {}", other.name());
            Err(Error::new(Kind::LogMisconfigured, why))
        }
    }
}
