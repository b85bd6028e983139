//! One call: its params, its deadline, and its cancellation.

use crate::client::Client;
use crate::connection::CancelOn;
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
use std::time::Duration;

/// The deadline of calls that are answered at once.
const DEADLINE: Duration = Duration::from_secs(30);

/// The deadline of calls that wait for people and models. A question stays open for at most 10 minutes.
const WAITING_DEADLINE: Duration = Duration::from_secs(660);

/// The calls that wait for people and models.
const WAITING: &[&str] = &[
    "archive_branch",
    "ask_user",
    "choose",
    "compact",
    "continue_session",
    "fork_session",
    "merge_branch",
    "navigate_tree",
    "pop",
    "run_command",
];

/// A call that is not sent yet; `.await` sends it. Each optional param has a function.
///
/// Dropping the future of a running call requests its cancellation, but does not tell whether the request
/// arrived in time. [`cancel_on`](Call::cancel_on) does.
#[must_use = "nothing is called before it is awaited"]
pub struct Call<P, R> {
    client: Client,
    method: Cow<'static, str>,
    pub(crate) params: P,
    deadline: Option<Duration>,
    cancel_on: Option<CancelOn>,
    result: PhantomData<fn() -> R>,
}

impl Client {
    /// Calls a method by its name in the protocol, with the params of the protocol. The functions that are
    /// named after the methods do the same, with types.
    ///
    /// ```no_run
    /// # async fn example(client: treelined_client::Client) -> Result<(), treelined_client::Error> {
    /// use treelined_client::Json;
    ///
    /// let leaf: Json = client.call("get_leaf", serde_json::json!({})).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call<P: Serialize, R>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: P,
    ) -> Call<P, R> {
        Call::new(self.clone(), method.into(), params)
    }
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

    /// Sets how long to wait for the response. Default: 30 s, and 11 minutes for calls that wait for people
    /// and models. After that the daemon is asked to cancel the call, which fails with [`Error::Timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.deadline = Some(timeout);
        self
    }

    /// Requests the cancellation of the call when `signal` resolves. The call returns the answer of the
    /// daemon: a navigation returns `cancelled`, another call that waits fails with the kind `cancelled`, and
    /// a call that has already taken effect returns its usual result.
    pub fn cancel_on(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.cancel_on = Some(Box::pin(signal));
        self
    }

    fn with_result<S>(self) -> Call<P, S> {
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

/// The result of a dry run of a navigation (protocol.md §4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// The preparation that `session_before_tree` would contain. `None` if the leaf is at the target already:
    /// then the navigation would do nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation: Option<TreePreparation>,
    /// Whether a summary is possible; false if the navigation would do nothing.
    #[serde(default)]
    pub can_summarize: bool,
}

impl Call<NavigateTreeParams, Navigation> {
    /// Changes nothing, and returns the preparation: the entries that would be summarized.
    pub fn dry_run(mut self) -> Call<NavigateTreeParams, DryRun> {
        self.params.dry_run = Some(true);
        self.with_result()
    }
}

impl Call<PopParams, Navigation> {
    /// Changes nothing, and returns the preparation: the entries that would be summarized.
    pub fn dry_run(mut self) -> Call<PopParams, DryRun> {
        self.params.dry_run = Some(true);
        self.with_result()
    }
}

impl Call<GetTreeParams, FlatTree> {
    /// Returns nested nodes instead of rows. This client can read about 60 levels of nesting; rows have no
    /// such limit.
    pub fn nested(mut self) -> Call<GetTreeParams, NestedTree> {
        self.params.format = Some(TreeFormat::Nested);
        self.with_result()
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
        Box::pin(async move {
            client
                .connection()
                .call(&method, params, deadline, cancel_on)
                .await
        })
    }
}
