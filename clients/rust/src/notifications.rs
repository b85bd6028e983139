//! A stream of the daemon's notifications.

use crate::connection::RawNotification;
use crate::generated::Notification;
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;

/// The notifications since the stream was made, in order. The stream ends with the connection.
///
/// A stream keeps as many unread notifications as the builder's `capacity` says. If more arrive, the
/// oldest ones are dropped, and [`Notification::Missed`] in their place says how many. Neither the daemon
/// nor other streams wait for a slow stream.
#[derive(Debug)]
pub struct Notifications(Option<BroadcastStream<Arc<RawNotification>>>);

impl Notifications {
    pub(crate) fn new(feed: Option<broadcast::Receiver<Arc<RawNotification>>>) -> Notifications {
        Notifications(feed.map(BroadcastStream::new))
    }

    /// Returns the next notification; `None` at the end. Dropping the future does not lose a
    /// notification.
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
        Poll::Ready(ready!(Pin::new(feed).poll_next(context)).map(
            |notification| match notification {
                Ok(notification) => Notification::parse(&notification.method, &notification.params),
                Err(BroadcastStreamRecvError::Lagged(count)) => Notification::Missed { count },
            },
        ))
    }
}
