//! Starts a treelined daemon, which keeps the conversations of AI agents as trees, and speaks with it.
//!
//! ```no_run
//! use treelined_client::{Client, Message, TreeRender};
//!
//! # #[tokio::main] async fn main() -> Result<(), treelined_client::Error> {
//! let client = Client::builder().summarizer("outline").spawn().await?;
//! client.create_session().name("a trip").await?;
//! client.append_message(Message::user("Plan a trip to Rome.")).entry_id("u1").await?;
//! for row in client.get_tree().render(TreeRender::Unicode).await?.nodes {
//!     println!("{}", row.preview);
//! }
//! client.close().await?;
//! # Ok(()) }
//! ```
//!
//! - [`Client::builder`] → [`Builder::spawn`] or [`Builder::attach`] → [`Client`], cheap to clone.
//! - [`Client`] has a function for each method of the protocol. What must be told are its arguments, what
//!   may be left out are functions of the [`Call`] that it returns, and `.await` makes the call:
//!   `client.navigate_tree("u2").summarize(true).label("by plane").await?`. [`Client::call`] takes a name
//!   and any params. [`Client::with_session`] names the session once for many calls.
//! - [`Call::timeout`]: every call has a deadline. [`Call::cancel_on`] cancels a call and tells what became
//!   of it; dropping its future cancels it, too.
//! - [`Error`]: [`Error::Refused`] is the daemon's, with a [`kind`](Error::kind) that is the contract.
//!   [`Error::Disconnected`] is what every open call fails with when the daemon dies.
//! - [`Client::notifications`] is a stream of [`Notification`]s.
//! - [`Builder::answer_tree`] (`_fork`, `_compact`) answers what the daemon asks before it acts.
//! - [`Client::close`] ends the daemon, [`Client::closed`] tells when and how it ended. To reconnect,
//!   [`spawn`](Builder::spawn) the same builder again.
//!
//! The types are made from the daemon's schema, and lenient where a newer daemon may say more: enums have
//! `Unknown`, structs that are received may grow, and [`Entry`], [`Message`] and [`Content`] keep every byte.
//! It needs a tokio runtime.
//!
//! The source, in reading order: `builder` and `client` are the face, `call` one call, `notifications` and
//! `question` what the daemon says and asks. Below them `connection` has what clones share and what
//! jsonrpsee does, `pipe` makes messages of bytes, `process` looks after the daemon. `generated` is made by
//! `tools/generate` from `schema/`.

#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod builder;
mod call;
mod client;
mod connection;
mod entry;
mod error;
#[allow(
    missing_docs,
    reason = "the schema has descriptions where there is something to say"
)]
mod generated;
mod json;
mod notifications;
mod pipe;
mod process;
mod question;

pub use builder::Builder;
pub use call::{Call, DryRun};
pub use client::Client;
pub use entry::Entry;
pub use error::{Disconnected, Error, Refusal};
pub use generated::*;
pub use json::{Content, Json, Message, RequestId};
pub use notifications::Notifications;
pub use question::Question;
