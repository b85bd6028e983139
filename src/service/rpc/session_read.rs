//! Requests of scope `session(read)`: the session that a handler reads, and the handler's answer.

use super::decode::decode;
use super::handler::Answer;
use super::reply::{Prepared, Reply};
use super::response::Responder;
use crate::daemon::at_once::at_once_or_later;
use crate::daemon::call::Call;
use crate::daemon::follow::caught_up;
use crate::daemon::guard::{SessionGuard, guard_of};
use crate::daemon::open_session::OpenSession;
use crate::daemon::queue::Scope;
use crate::daemon::reading::inline_or_blocking;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::blocking::blocking;
use treelined_files::session::SessionState;
use treelined_wire::OnSession;

/// A session to read. Earlier requests have run, and the entries of other writers have been read.
pub(super) struct Read<'a> {
    pub(super) call: &'a Arc<Call>,
    pub(super) open: &'a Arc<OpenSession>,
    state: &'a SessionState,
    may_block: bool,
}

impl Deref for Read<'_> {
    type Target = SessionState;

    fn deref(&self) -> &SessionState {
        self.state
    }
}

impl Read<'_> {
    /// Whether this is a blocking thread, so that the handler may take long.
    pub(super) fn may_block(&self) -> bool {
        self.may_block
    }

    /// The limit of a message to the client, in bytes.
    pub(super) fn frame_bytes(&self) -> usize {
        self.call.connection.client_frame_bytes()
    }

    /// The number of the last notification of this session to the client.
    pub(super) fn seq(&self) -> u64 {
        self.open.seq(&self.call.connection)
    }
}

/// The answer of a read of many entries. If the bytes of the file have changed, the tree is read again and the read is
/// repeated. So a read does not fail if a program has edited an entry in the file.
pub(super) enum ReadAnswer<O> {
    Ready(O),
    /// The rest of the work does not need the session.
    Later(Work, Box<dyn FnOnce() -> Result<O> + Send>),
    /// The handler would take too long on this thread. It must run again on a blocking thread.
    OnBlockingThread,
}

/// The size of the rest of a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// The bytes that it reads. If there are many, a blocking thread reads them.
    pub(super) reads: u64,
    /// The bytes that it needs for the answer, as far as they are known.
    pub(super) makes: u64,
}

impl<O> ReadAnswer<O> {
    /// An answer that is made from this many stored bytes, and has about as many.
    pub(super) fn later(bytes: u64, work: impl FnOnce() -> Result<O> + Send + 'static) -> Self {
        let (reads, makes) = (bytes, bytes);
        Self::working(Work { reads, makes }, work)
    }

    /// An answer that reads little and has about this many bytes.
    pub(super) fn rows(bytes: usize, work: impl FnOnce() -> Result<O> + Send + 'static) -> Self {
        let (reads, makes) = (0, bytes as u64);
        Self::working(Work { reads, makes }, work)
    }

    /// An answer of about this many bytes that waits for servers, so it is made on a blocking thread.
    pub(super) fn waiting(makes: u64, work: impl FnOnce() -> Result<O> + Send + 'static) -> Self {
        let reads = u64::MAX;
        Self::working(Work { reads, makes }, work)
    }

    /// An answer that is computed later, since its size differs from the size of the data that it is made from.
    pub(super) fn working(of: Work, work: impl FnOnce() -> Result<O> + Send + 'static) -> Self {
        Self::Later(of, Box::new(work))
    }
}

/// An answer of a read of one entry, which is not repeated.
pub(super) struct Once<O>(pub(super) ReadAnswer<O>);

/// The output of a read handler whose result has the type `R`. A handler that reads at most one entry returns the
/// result, any other returns a [`ReadAnswer`].
pub(super) trait ReadOutput<R> {
    /// Whether the read is repeated if the file has been replaced.
    const IS_REPEATED: bool;

    fn reply(self) -> Result<ReadAnswer<Reply>>;
}

impl<R: Serialize> ReadOutput<R> for R {
    const IS_REPEATED: bool = false;

    fn reply(self) -> Result<ReadAnswer<Reply>> {
        Answer::<R>::reply(self).map(ReadAnswer::Ready)
    }
}

impl<R> ReadOutput<R> for Prepared<R> {
    const IS_REPEATED: bool = false;

    fn reply(self) -> Result<ReadAnswer<Reply>> {
        Answer::<R>::reply(self).map(ReadAnswer::Ready)
    }
}

impl<R, O: Answer<R> + 'static> ReadOutput<R> for ReadAnswer<O> {
    const IS_REPEATED: bool = true;

    fn reply(self) -> Result<ReadAnswer<Reply>> {
        Ok(match self {
            Self::Ready(result) => ReadAnswer::Ready(result.reply()?),
            Self::Later(of, work) => ReadAnswer::working(of, || work()?.reply()),
            Self::OnBlockingThread => ReadAnswer::OnBlockingThread,
        })
    }
}

impl<R, O: Answer<R> + 'static> ReadOutput<R> for Once<O> {
    const IS_REPEATED: bool = false;

    fn reply(self) -> Result<ReadAnswer<Reply>> {
        self.0.reply()
    }
}

/// A read with its decoded params.
type ReadWork = Arc<dyn Fn(&Read<'_>) -> Result<ReadAnswer<Reply>> + Send + Sync>;

/// Runs a handler that reads a session.
pub(super) fn read<P, R, O>(
    params: Option<&str>,
    responder: Responder,
    handler: impl Fn(&Read<'_>, &P) -> Result<O> + Send + Sync + 'static,
) where
    P: OnSession + DeserializeOwned + Send + Sync + 'static,
    O: ReadOutput<R>,
{
    let handler = move |params: P| Ok(move |read: &Read<'_>| handler(read, &params));
    checked_read::<P, R, O, _>(params, responder, handler);
}

/// Like [`read`], for a handler that checks its params before it gets the session.
pub(super) fn checked_read<P, R, O, W>(
    params: Option<&str>,
    responder: Responder,
    handler: impl FnOnce(P) -> Result<W>,
) where
    P: OnSession + DeserializeOwned,
    O: ReadOutput<R>,
    W: Fn(&Read<'_>) -> Result<O> + Send + Sync + 'static,
{
    let work = decode(params).and_then(|params: P| {
        let session_id = params.session_id().map(str::to_owned);
        let answer = handler(params)?;
        let work: ReadWork = Arc::new(move |read: &Read<'_>| answer(read)?.reply());
        Ok((session_id, work))
    });
    match work {
        Ok((session_id, work)) => run_in_order(responder, session_id, work, O::IS_REPEATED),
        Err(error) => responder.respond(Err(error)),
    }
}

/// Runs a read in the order of the requests to its session.
fn run_in_order(
    responder: Responder,
    session_id: Option<String>,
    work: ReadWork,
    is_repeated: bool,
) {
    let call = Arc::clone(responder.call());
    let asked = Instant::now();
    let queues = Arc::clone(&call.daemon.registry.queues);
    let cancel = call.cancel.clone();
    let id = session_id.clone();
    let by = Some(call.connection.id);
    queues.run(by, id.as_deref(), Scope::Session, &cancel, move |lease| {
        at_once_or_later(async move {
            let found = lease.and_then(|lease| guard_of(lease, asked));
            let mut result = answer_of(&call, found, &work).await;
            let was_replaced = |error: &Error| error.kind == Kind::SessionReplaced;
            if is_repeated && result.as_ref().is_err_and(was_replaced) {
                let place = call.place(session_id.as_deref());
                let asked = place.asked;
                let found = place.await.and_then(|lease| guard_of(lease, asked));
                result = answer_of(&call, found, &work).await;
            }
            responder.respond(result);
        });
    });
}

/// Reserves the memory of the answer. An answer has at most as many bytes as the client takes, and needs twice as much
/// memory while it is made.
fn reserve(call: &Call, work: Work) -> Result<()> {
    let most = call.connection.longest_message() as u64;
    call.reserve(work.makes.min(most.saturating_mul(2)))
}

async fn answer_of(
    call: &Arc<Call>,
    found: Result<(Arc<OpenSession>, SessionGuard)>,
    work: &ReadWork,
) -> Result<Reply> {
    let (open, guard) = found?;
    let guard = caught_up(&call.daemon, &open, guard).await?;
    let run = |call: &Arc<Call>, open: &Arc<OpenSession>, state: &SessionState, may_block| {
        (**work)(&Read {
            call,
            open,
            state,
            may_block,
        })
    };
    match run(call, &open, &guard, false)? {
        ReadAnswer::Ready(reply) => return Ok(reply),
        ReadAnswer::Later(work, rest) => {
            drop(guard);
            reserve(call, work)?;
            return inline_or_blocking(work.reads, rest).await;
        }
        ReadAnswer::OnBlockingThread => {}
    }
    let (call, work) = (Arc::clone(call), Arc::clone(work));
    blocking(move || {
        let read = Read {
            call: &call,
            open: &open,
            state: &guard,
            may_block: true,
        };
        match (*work)(&read)? {
            ReadAnswer::Ready(reply) => Ok(reply),
            ReadAnswer::Later(work, rest) => {
                drop(guard);
                reserve(&call, work)?;
                rest()
            }
            ReadAnswer::OnBlockingThread => {
                let why = "a read went to a blocking thread twice";
                Err(Error::new(Kind::InternalError, why))
            }
        }
    })
    .await
}
