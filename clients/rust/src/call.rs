//! A call: what it is called with, how long it may take, what cancels it.

use crate::client::Client;
use crate::connection::{CancelOn, Connection};
use crate::error::Error;
use crate::generated::{
    FlatTree, GetTreeParams, NavigateTreeParams, Navigation, NestedTree, PopParams, TreeFormat,
    TreePreparation,
};
use crate::json::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// For calls that answer at once.
const DEADLINE: Duration = Duration::from_secs(30);

/// For calls that wait for people and models: a little more than the longest that a question can stay
/// open.
const WAITING_DEADLINE: Duration = Duration::from_secs(660);

/// Calls that wait for people and models.
const WAITING: &[&str] = &[
    "compact",
    "fork_session",
    "merge_branch",
    "navigate_tree",
    "pop",
];

/// A call that has not been made yet: `.await` makes it. There is a function for each param that may be
/// left out.
///
/// Dropping the future of a call before it is done asks the daemon to cancel it. Whether that came in time
/// is not known then; with [`cancel_on`](Call::cancel_on) it is.
#[must_use = "nothing is called before it is awaited"]
pub struct Call<P, R> {
    client: Client,
    method: Cow<'static, str>,
    pub(crate) params: P,
    deadline: Option<Duration>,
    cancel_on: Option<CancelOn>,
    result: PhantomData<fn() -> R>,
}

impl<P, R> Call<P, R> {
    pub(crate) fn new(client: Client, method: Cow<'static, str>, params: P) -> Call<P, R> {
        Call {
            client,
            method,
            params,
            deadline: None,
            cancel_on: None,
            result: PhantomData,
        }
    }

    /// How long to wait for the answer: 30 s if not told, 11 minutes for calls that wait for people and
    /// models. Then the daemon is asked to cancel it, and it fails with [`Error::Timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.deadline = Some(timeout);
        self
    }

    /// Asks the daemon to cancel the call once `signal` resolves. The daemon has the last word, and what it
    /// says is the result: a navigation says `cancelled`, anything else that waits fails with the kind
    /// `cancelled`, and what was done already comes back as usual.
    pub fn cancel_on(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.cancel_on = Some(Box::pin(signal));
        self
    }

    fn giving<S>(self) -> Call<P, S> {
        Call {
            client: self.client,
            method: self.method,
            params: self.params,
            deadline: self.deadline,
            cancel_on: self.cancel_on,
            result: PhantomData,
        }
    }
}

/// The preparation of a navigation that a dry run returns (protocol.md §4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DryRun {
    /// As `session_before_tree` would carry it; none where the leaf stands at the target already, for then
    /// nothing would be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation: Option<TreePreparation>,
}

impl Call<NavigateTreeParams, Navigation> {
    /// Only tell what would be summarized, if the navigation leads anywhere.
    pub fn dry_run(mut self) -> Call<NavigateTreeParams, DryRun> {
        self.params.dry_run = Some(true);
        self.giving()
    }
}

impl Call<PopParams, Navigation> {
    /// Only tell what would be summarized, if it leads anywhere.
    pub fn dry_run(mut self) -> Call<PopParams, DryRun> {
        self.params.dry_run = Some(true);
        self.giving()
    }
}

impl Call<GetTreeParams, FlatTree> {
    /// Nodes inside of nodes instead of rows. Trees of more than some 60 levels are too deep for this
    /// client; rows have no such limit.
    pub fn nested(mut self) -> Call<GetTreeParams, NestedTree> {
        self.params.format = Some(TreeFormat::Nested);
        self.giving()
    }
}

impl<P, R> IntoFuture for Call<P, R>
where
    P: Serialize,
    R: DeserializeOwned + 'static,
{
    type Output = Result<R, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<R, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let usual = if WAITING.contains(&&*self.method) {
            WAITING_DEADLINE
        } else {
            DEADLINE
        };
        let deadline = self.deadline.or(self.client.deadline()).unwrap_or(usual);
        let params = Json::new(&self.params);
        let Call {
            client,
            method,
            cancel_on,
            ..
        } = self;
        Box::pin(
            async move { request(client.connection(), &method, params, deadline, cancel_on).await },
        )
    }
}

/// Makes a call whose params have been turned into JSON, or could not be.
pub(crate) async fn request<R: DeserializeOwned>(
    connection: &Arc<Connection>,
    method: &str,
    params: Result<Json, serde_json::Error>,
    deadline: Duration,
    cancel_on: Option<CancelOn>,
) -> Result<R, Error> {
    let params = params.map_err(|error| Error::InvalidCall {
        method: method.to_owned(),
        message: error.to_string(),
    })?;
    let result = connection
        .request(method, params.into_raw(), deadline, cancel_on)
        .await?;
    result.parse().map_err(|error| Error::Unexpected {
        method: method.to_owned(),
        message: error.to_string(),
    })
}
