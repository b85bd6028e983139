//! Starts a treelined daemon, which keeps the conversations of AI agents as trees, and calls its methods.
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
//! - [`Client`] has a function for each method of the protocol. Required params are its arguments, optional
//!   params are functions of the [`Call`] that it returns, and `.await` sends the call:
//!   `client.navigate_tree("u2").summarize(true).label("by plane").await?`. [`Client::call`] takes a name
//!   and any params. [`Client::with_session`] names the session once for many calls.
//! - Every call has a deadline ([`Call::timeout`]). [`Call::cancel_on`] cancels a call and returns the
//!   daemon's answer; dropping the future of a call cancels it too.
//! - [`Error::Refused`] is an error that the daemon answered; decide by its [`kind`](Error::kind).
//!   [`Error::Disconnected`] is the error of all open calls when the daemon dies.
//! - [`Client::notifications`] is a stream of [`Notification`]s.
//! - [`Builder::answer_tree`] (`_fork`, `_compact`) answers the daemon's questions.
//! - [`Client::close`] ends the daemon; [`Client::closed`] says when and how it ended. To reconnect,
//!   [`spawn`](Builder::spawn) the same builder again.
//!
//! The types are generated from the daemon's schema, and accept additions of a newer daemon: enums have
//! `Unknown`, structs that are received are non-exhaustive, and [`Entry`], [`Message`] and [`Content`] keep
//! every byte.
//! The crate needs a tokio runtime.
//!
//! The source, in reading order: `builder` and `client` are the public interface. `call` is one call.
//! `notifications` and `question` handle what the daemon sends. `connection` is the state that clones share,
//! and uses jsonrpsee. `pipe` divides bytes into messages. `process` supervises the daemon. `tools/generate`
//! writes `generated` from `schema/`.

#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "clap")]
mod args;
mod builder;
mod call;
mod client;
mod connection;
mod entry;
mod error;
mod fold;
#[allow(
    missing_docs,
    reason = "the schema has descriptions where there is something to say"
)]
#[allow(
    clippy::should_implement_trait,
    reason = "params have the names of the protocol"
)]
mod generated;
mod json;
mod notifications;
mod pipe;
mod process;
mod question;

#[cfg(feature = "clap")]
pub use args::DaemonArgs;
pub use builder::Builder;
pub use call::{Call, DryRun};
pub use client::Client;
pub use entry::Entry;
pub use error::{Disconnected, Error, Refusal};
pub use fold::{LeftBranches, TreeFold};
pub use generated::*;
pub use json::{Content, Json, Message, RequestId};
pub use notifications::Notifications;
pub use question::Question;
