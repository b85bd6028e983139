//! A stream of the daemon's notifications.

use crate::connection::Said;
use crate::generated::Notification;
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;

/// The notifications since this stream was made, in order. The stream ends with the connection.
///
/// A stream that is not read holds the builder's `capacity` of notifications. When more come, the oldest
/// are dropped, and [`Notification::Missed`] says how many, in their place. Neither the daemon nor other
/// streams wait for it.
#[derive(Debug)]
pub struct Notifications(Option<BroadcastStream<Arc<Said>>>);

impl Notifications {
    pub(crate) fn new(feed: Option<broadcast::Receiver<Arc<Said>>>) -> Notifications {
        Notifications(feed.map(BroadcastStream::new))
    }

    /// The next one; none at the end. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Notification> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for Notifications {
    type Item = Notification;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Notification>> {
        let Some(feed) = &mut self.0 else {
            return Poll::Ready(None);
        };
        Poll::Ready(
            ready!(Pin::new(feed).poll_next(context)).map(|said| match said {
                Ok(said) => Notification::parse(&said.method, &said.params),
                Err(BroadcastStreamRecvError::Lagged(count)) => Notification::Missed { count },
            }),
        )
    }
}
