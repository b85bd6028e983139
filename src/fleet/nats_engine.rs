//! NATS JetStream as the servers of a team.

use super::backend::{LogPart, Position};
use super::connection::ANSWER;
use super::engine::{Engine, FollowedLog, FollowedParts, TeamIndex};
use super::hints::FollowedMessages;
use super::quiet::QuietSession;
use super::settings::Retention;
use super::stream::NatsLog;
use super::team::nats_index::NatsIndex;
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::time::Duration;
use tokio::runtime::Handle;
use treelined_core::error::{Error, Kind, Result};

impl Engine for NatsLog {
    fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    fn is_connected(&self) -> bool {
        self.connection.is_connected()
    }

    fn acknowledged_in(&self, time: Duration) -> bool {
        NatsLog::acknowledged_in(self, time)
    }

    fn fault(&self) -> BoxFuture<'_, Result<Option<Error>>> {
        Box::pin(async { Ok(self.info(ANSWER).await?.config.check().err()) })
    }

    fn followed<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<FollowedLog<'a>>> {
        Box::pin(async move {
            let followed = FollowedMessages::open(self, session).await?;
            Ok(Box::new(followed) as FollowedLog<'a>)
        })
    }

    fn erase<'a>(&'a self, _session: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async {
            let why = "the team's streams of NATS keep all messages: nothing can be erased there";
            Err(Error::new(Kind::ErasureUnsupported, why))
        })
    }

    fn quiet(&self, retention: Retention, most: usize) -> BoxFuture<'_, Result<Vec<QuietSession>>> {
        Box::pin(self.quiet_sessions(retention, most))
    }

    fn open_sessions(&self) -> BoxFuture<'_, Result<HashSet<String>>> {
        Box::pin(async {
            let index = NatsIndex::new(&self.access(), String::new(), String::new());
            index.open_sessions().await
        })
    }

    fn index(&self, host: &str, daemon: &str) -> Box<dyn TeamIndex> {
        let (host, daemon) = (host.to_owned(), daemon.to_owned());
        Box::new(NatsIndex::new(&self.access(), host, daemon))
    }
}

impl FollowedParts for FollowedMessages<'_> {
    fn stored(&mut self, at: Position) -> BoxFuture<'_, Result<Option<LogPart>>> {
        Box::pin(FollowedMessages::stored(self, at))
    }

    fn news<'a>(&'a mut self, at: &'a (dyn Fn() -> Position + Sync)) -> BoxFuture<'a, ()> {
        Box::pin(FollowedMessages::news(self, at))
    }
}
