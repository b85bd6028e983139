//! The appends that wait for an answer. Their bytes have a limit.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use treelined_core::error::{Error, Kind, Result};

/// The most bytes of all appends that wait for an answer, in KiB.
const MOST_KIB: u32 = 16 << 10;
/// How long an append that is given up keeps its room, since its bytes may still wait for the network.
const KEPT: Duration = Duration::from_millis(1500);
const RETRY_AFTER_MS: u64 = 1000;

/// The room for the appends of one connection.
pub(super) struct InFlight(Arc<Semaphore>);

/// The room of one append.
pub(super) struct Room(Option<OwnedSemaphorePermit>);

impl Default for InFlight {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST_KIB as usize)))
    }
}

impl InFlight {
    /// Waits for the room of an append, but not longer than `time`. An append that is larger than the limit takes all
    /// of the room.
    pub(super) async fn room(&self, bytes: usize, time: Duration) -> Result<Room> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(MOST_KIB);
        let room = Arc::clone(&self.0).acquire_many_owned(kib.clamp(1, MOST_KIB));
        match tokio::time::timeout(time, room).await {
            Ok(Ok(permit)) => Ok(Room(Some(permit))),
            _ => {
                let why = "too many appends wait for an answer of the servers";
                let mut error = Error::new(Kind::LogUnavailable, why);
                error.retry_after_ms = Some(RETRY_AFTER_MS);
                Err(error)
            }
        }
    }
}

impl Room {
    /// Frees the room, since the append has ended.
    pub(super) fn end(mut self) {
        self.0.take();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(permit) = self.0.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(KEPT).await;
                drop(permit);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_append_that_is_given_up_keeps_its_room_for_a_while() {
        let in_flight = InFlight::default();
        let most = MOST_KIB as usize * 1024;
        let soon = Duration::from_millis(1);
        let first = in_flight.room(most * 2, KEPT).await.unwrap();
        assert!(in_flight.room(1, soon).await.is_err());
        first.end();
        drop(in_flight.room(most, KEPT).await.unwrap());
        assert!(in_flight.room(1, soon).await.is_err());
        assert!(in_flight.room(1, KEPT * 2).await.is_ok());
    }
}
