//! The forms of handlers. The scope of a method (the table in [`treelined_wire::methods`]) decides which forms its handler
//! can have, and the form decides which operations it can do:
//!
//! - immediate: a function of the params, run at once; or one that returns the rest of its work, which waits for no
//!   other request.
//! - registry: a function that takes its places in the queues, and returns the rest of its work.
//! - session(read): a function of a session that it cannot change.
//! - session(append): a function that says which entries are appended; or an asynchronous one with a [`ChangePlace`],
//!   which commits once.
//! - session(release): an asynchronous function with a [`Release`], which asks before it commits; or, for a fork,
//!   the form of the registry methods.
//!
//! Each result has the type that its row declares.

use super::reply::{Prepared, Reply};
use super::response::Responder;
use crate::daemon::at_once_or_later;
use crate::daemon::call::Call;
use crate::daemon::commit::ChangePlace;
use crate::daemon::open_session::{Append, AppendOutcome, Lease, OpenSession, guard};
use crate::daemon::queue::Scope;
use crate::daemon::reading::inline_or_blocking;
use crate::daemon::release::Release;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::NewEntry;
use treelined_files::blocking::blocking;
use treelined_files::session::SessionState;
use treelined_wire::{Mutation, OnSession, decode};

/// A result of type `R`: the value, or its JSON.
pub(super) trait ResultOf<R> {
    fn reply(self) -> Result<Reply>;
}

impl<R: Serialize> ResultOf<R> for R {
    fn reply(self) -> Result<Reply> {
        Reply::of(&self)
    }
}

impl<R> ResultOf<R> for Prepared<R> {
    fn reply(self) -> Result<Reply> {
        Ok(self.into_reply())
    }
}

/// A handler of scope `immediate`, in one of its forms.
pub(super) trait ImmediateHandler<P, R, Form> {
    fn begin(self, params: Option<&str>, responder: Responder);
}

/// The form `fn(&Arc<Call>, P) -> Result<O>`.
pub(super) struct AtOnceForm<O>(PhantomData<O>);

/// The form `fn(&Arc<Call>, P) -> Result<Remainder<O>>`.
pub(super) struct WaitingForm<O>(PhantomData<O>);

impl<P, R, O, H> ImmediateHandler<P, R, AtOnceForm<O>> for H
where
    P: DeserializeOwned,
    O: ResultOf<R>,
    H: FnOnce(&Arc<Call>, P) -> Result<O>,
{
    fn begin(self, params: Option<&str>, responder: Responder) {
        let call = responder.call();
        let result = decode(params).and_then(|params| self(call, params)?.reply());
        responder.respond(result);
    }
}

impl<P, R, O, H> ImmediateHandler<P, R, WaitingForm<O>> for H
where
    P: DeserializeOwned,
    O: ResultOf<R> + 'static,
    H: FnOnce(&Arc<Call>, P) -> Result<Remainder<O>>,
{
    fn begin(self, params: Option<&str>, responder: Responder) {
        registry(params, responder, self);
    }
}

/// The work of a method after it has its places in the queues, if it needs any.
pub(super) type Remainder<O> = Pin<Box<dyn Future<Output = Result<O>> + Send>>;

/// Runs a handler of scope `registry`.
pub(super) fn registry<P, R, O>(
    params: Option<&str>,
    responder: Responder,
    handler: impl FnOnce(&Arc<Call>, P) -> Result<Remainder<O>>,
) where
    P: DeserializeOwned,
    O: ResultOf<R> + 'static,
{
    match decode(params).and_then(|params| handler(responder.call(), params)) {
        Ok(remainder) => finish(responder, remainder),
        Err(error) => responder.respond(Err(error)),
    }
}

/// Runs work until it has to wait, then on the runtime, and responds.
fn finish<R, O: ResultOf<R>>(
    responder: Responder,
    work: impl Future<Output = Result<O>> + Send + 'static,
) {
    at_once_or_later(async {
        let result = work.await.and_then(O::reply);
        responder.respond(result);
    });
}

/// A session to read, after earlier requests and with the entries of other writers.
pub(super) struct Read<'a> {
    pub(super) call: &'a Arc<Call>,
    pub(super) open: &'a Arc<OpenSession>,
    core: &'a SessionState,
    may_block: bool,
}

impl Deref for Read<'_> {
    type Target = SessionState;

    fn deref(&self) -> &SessionState {
        self.core
    }
}

impl Read<'_> {
    /// Whether this is a blocking thread, on which a handler may take long.
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

/// The answer of a read of many entries. The read is repeated if the file has other bytes than before: the tree has
/// then been reread, so an entry that was edited in place does not fail it.
pub(super) enum ReadAnswer<O> {
    Ready(O),
    /// The rest of the work does not need the session; the number is the bytes it reads.
    Later(u64, Box<dyn FnOnce() -> Result<O> + Send>),
    /// The handler takes too long for this thread: run it again on a blocking thread.
    OnBlockingThread,
}

impl<O> ReadAnswer<O> {
    pub(super) fn later(bytes: u64, work: impl FnOnce() -> Result<O> + Send + 'static) -> Self {
        Self::Later(bytes, Box::new(work))
    }
}

impl<O> ReadAnswer<O> {
    fn reply<R>(self) -> Result<ReadAnswer<Reply>>
    where
        O: ResultOf<R> + 'static,
    {
        Ok(match self {
            Self::Ready(result) => ReadAnswer::Ready(result.reply()?),
            Self::Later(bytes, work) => ReadAnswer::later(bytes, || work()?.reply()),
            Self::OnBlockingThread => ReadAnswer::OnBlockingThread,
        })
    }
}

/// A read with its decoded params.
type ReadWork = Arc<dyn Fn(&Read<'_>) -> Result<ReadAnswer<Reply>> + Send + Sync>;

/// A handler of scope `session(read)`, in one of its forms.
pub(super) trait ReadHandler<P, R, Form> {
    fn begin(self, params: Option<&str>, responder: Responder);
}

/// The form `fn(&Read<'_>, &P) -> Result<O>`, for at most one entry.
pub(super) struct OneEntryForm<O>(PhantomData<O>);

/// The form `fn(&Read<'_>, &P) -> Result<ReadAnswer<O>>`.
pub(super) struct ManyEntriesForm<O>(PhantomData<O>);

/// The form `fn(P) -> Result<impl Fn(&Read<'_>) -> Result<ReadAnswer<O>>>`, which checks params before it needs the
/// session.
pub(super) struct CheckedForm<O, W>(PhantomData<(O, W)>);

impl<P, R, O, H> ReadHandler<P, R, OneEntryForm<O>> for H
where
    P: OnSession + DeserializeOwned + Send + Sync + 'static,
    O: ResultOf<R>,
    H: Fn(&Read<'_>, &P) -> Result<O> + Send + Sync + 'static,
{
    fn begin(self, params: Option<&str>, responder: Responder) {
        let work = move |params: P| -> Result<ReadWork> {
            let answer = move |read: &Read<'_>| self(read, &params)?.reply().map(ReadAnswer::Ready);
            Ok(Arc::new(answer))
        };
        in_order(params, responder, work, false);
    }
}

impl<P, R, O, H> ReadHandler<P, R, ManyEntriesForm<O>> for H
where
    P: OnSession + DeserializeOwned + Send + Sync + 'static,
    O: ResultOf<R> + 'static,
    H: Fn(&Read<'_>, &P) -> Result<ReadAnswer<O>> + Send + Sync + 'static,
{
    fn begin(self, params: Option<&str>, responder: Responder) {
        let work = move |params: P| -> Result<ReadWork> {
            let answer = move |read: &Read<'_>| self(read, &params)?.reply();
            Ok(Arc::new(answer))
        };
        in_order(params, responder, work, true);
    }
}

impl<P, R, O, W, H> ReadHandler<P, R, CheckedForm<O, W>> for H
where
    P: OnSession + DeserializeOwned,
    O: ResultOf<R> + 'static,
    W: Fn(&Read<'_>) -> Result<ReadAnswer<O>> + Send + Sync + 'static,
    H: FnOnce(P) -> Result<W>,
{
    fn begin(self, params: Option<&str>, responder: Responder) {
        let work = move |params: P| -> Result<ReadWork> {
            let answer = self(params)?;
            Ok(Arc::new(move |read: &Read<'_>| answer(read)?.reply()))
        };
        in_order(params, responder, work, true);
    }
}

/// Runs the work that a read makes of its params.
fn in_order<P: OnSession + DeserializeOwned>(
    params: Option<&str>,
    responder: Responder,
    work: impl FnOnce(P) -> Result<ReadWork>,
    is_repeated: bool,
) {
    let work = decode(params).and_then(|params: P| {
        let session_id = params.session_id().map(str::to_owned);
        Ok((session_id, work(params)?))
    });
    match work {
        Ok((session_id, work)) => run_in_order(responder, session_id, work, is_repeated),
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
    let queues = Arc::clone(&call.daemon.queues);
    let cancel = call.cancel.clone();
    let id = session_id.clone();
    let by = Some(call.connection.id);
    queues.run(by, id.as_deref(), Scope::Session, &cancel, move |lease| {
        at_once_or_later(async move {
            let mut result = answer_of(&call, lease, asked, &work).await;
            let was_replaced = |error: &Error| error.kind == Kind::SessionReplaced;
            if is_repeated && result.as_ref().is_err_and(was_replaced) {
                let place = call.place(session_id.as_deref(), Scope::Session);
                let asked = place.asked;
                result = answer_of(&call, place.await, asked, &work).await;
            }
            responder.respond(result);
        });
    });
}

async fn answer_of(
    call: &Arc<Call>,
    lease: Result<Lease>,
    asked: Instant,
    work: &ReadWork,
) -> Result<Reply> {
    let (open, turn) = guard(lease?, asked)?;
    let turn = call.daemon.caught_up(&open, turn).await?;
    let run = |call: &Arc<Call>, open: &Arc<OpenSession>, core: &SessionState, may_block| {
        (**work)(&Read {
            call,
            open,
            core,
            may_block,
        })
    };
    match run(call, &open, &turn, false)? {
        ReadAnswer::Ready(reply) => return Ok(reply),
        ReadAnswer::Later(bytes, rest) => {
            drop(turn);
            return inline_or_blocking(bytes, rest).await;
        }
        ReadAnswer::OnBlockingThread => {}
    }
    let (call, work) = (Arc::clone(call), Arc::clone(work));
    blocking(move || {
        let read = Read {
            call: &call,
            open: &open,
            core: &turn,
            may_block: true,
        };
        match (*work)(&read)? {
            ReadAnswer::Ready(reply) => Ok(reply),
            ReadAnswer::Later(_, rest) => {
                drop(turn);
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

/// The entries that a request appends as one operation, written together with adjacent appends in the queue.
pub(super) struct NewAppend<R> {
    pub(super) entries: Vec<NewEntry>,
    pub(super) result: fn(AppendOutcome) -> Result<R>,
}

/// A handler of scope `session(append)`, in one of its forms.
pub(super) trait AppendHandler<P, R, Form> {
    /// Whether it writes in a group with adjacent appends in the queue.
    const GROUPS: bool;

    /// If it `holds`, an append of a group waits for more until the queues are settled.
    fn begin(self, params: Option<&str>, responder: Responder, holds: bool);
}

/// The form `fn(&P) -> Result<NewAppend<R>>`.
pub(super) struct GroupForm;

/// The form `async fn(ChangePlace, P) -> Result<O>`.
pub(super) struct AloneForm<O, F>(PhantomData<(O, F)>);

impl<P, R, H> AppendHandler<P, R, GroupForm> for H
where
    P: Mutation + DeserializeOwned,
    R: Serialize + 'static,
    H: FnOnce(&P) -> Result<NewAppend<R>>,
{
    const GROUPS: bool = true;

    fn begin(self, params: Option<&str>, responder: Responder, holds: bool) {
        let new = decode(params).and_then(|params: P| Ok((self(&params)?, params)));
        let (NewAppend { entries, result }, params) = match new {
            Ok(new) => new,
            Err(error) => return responder.respond(Err(error)),
        };
        let call = Arc::clone(responder.call());
        let answer = Box::new(move |appended: Result<AppendOutcome>| {
            let result = appended.and_then(|appended| Reply::of(&result(appended)?));
            responder.respond(result);
        });
        let append = Append::new(&call, params.expected_leaf().clone(), entries, answer);
        let queues = &call.daemon.queues;
        let by = Some(call.connection.id);
        queues.append(by, params.session_id(), &call.cancel, append, holds);
    }
}

impl<P, R, O, F, H> AppendHandler<P, R, AloneForm<O, F>> for H
where
    P: OnSession + DeserializeOwned,
    O: ResultOf<R>,
    F: Future<Output = Result<O>> + Send + 'static,
    H: FnOnce(ChangePlace, P) -> F,
{
    const GROUPS: bool = false;

    fn begin(self, params: Option<&str>, responder: Responder, _: bool) {
        let params: P = match decode(params) {
            Ok(params) => params,
            Err(error) => return responder.respond(Err(error)),
        };
        let place = ChangePlace::new(responder.call(), params.session_id());
        finish(responder, self(place, params));
    }
}

/// Whether a handler appends in a group.
pub(super) fn groups<P, R, Form, H: AppendHandler<P, R, Form>>(_: H) -> bool {
    H::GROUPS
}

/// A handler of scope `session(release)`, in one of its forms.
pub(super) trait ReleaseHandler<P, R, Form> {
    fn begin(self, params: Option<&str>, responder: Responder);
}

/// The form `async fn(Release, P) -> Result<O>`.
pub(super) struct ReleaseForm<O, F>(PhantomData<(O, F)>);

/// The form of the registry methods.
pub(super) struct RegistryForm<O>(PhantomData<O>);

impl<P, R, O, F, H> ReleaseHandler<P, R, ReleaseForm<O, F>> for H
where
    P: OnSession + DeserializeOwned,
    O: ResultOf<R>,
    F: Future<Output = Result<O>> + Send + 'static,
    H: FnOnce(Release, P) -> F,
{
    fn begin(self, params: Option<&str>, responder: Responder) {
        let params: P = match decode(params) {
            Ok(params) => params,
            Err(error) => return responder.respond(Err(error)),
        };
        let release = Release::new(responder.call(), params.session_id());
        finish(responder, self(release, params));
    }
}

impl<P, R, O, H> ReleaseHandler<P, R, RegistryForm<O>> for H
where
    P: DeserializeOwned,
    O: ResultOf<R> + 'static,
    H: FnOnce(&Arc<Call>, P) -> Result<Remainder<O>>,
{
    fn begin(self, params: Option<&str>, responder: Responder) {
        registry(params, responder, self);
    }
}
