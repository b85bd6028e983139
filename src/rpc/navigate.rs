//! `navigate_tree`, `pop`, `merge_branch` and `abort_navigation` (protocol.md §3, §4): what each asks for,
//! and how all of them begin. The steps from there on are [`super::navigator`]'s.

use super::navigator::{NavigationKind, Navigator, Request, unmoved};
use super::reply::Reply;
use crate::cancel::Cancel;
use crate::daemon::call::Call;
use crate::daemon::connection::AskedNavigation;
use crate::daemon::question::ANSWER_TIMEOUT;
use crate::error::{Kind, Result};
use crate::flow::navigate;
use crate::id::{self, EntryId};
use crate::name;
use crate::session::{Activity, SessionState};
use crate::summary::request::SummaryOptions;
use crate::tree::Node;
use crate::wire::{self, Mutation, NavigationReason};
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn navigate_tree(
    call: Arc<Call>,
    params: wire::NavigateTreeParams,
) -> Result<Reply> {
    let unsaid = Request::new(&call, &params);
    let request = Request {
        navigation_id: params.navigation_id.clone().unwrap_or(unsaid.navigation_id),
        wants_summary: params.summarize.unwrap_or_default(),
        wishes: SummaryOptions {
            custom_instructions: params.custom_instructions.clone(),
            replace_instructions: params.replace_instructions.unwrap_or_default(),
        },
        label: params.label.as_deref().and_then(name::given),
        answer_timeout: params
            .answer_timeout_ms
            .map_or(unsaid.answer_timeout, Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        rewind: params.rewind.unwrap_or_default(),
        dry_run: params.dry_run.unwrap_or_default(),
        ..unsaid
    };
    let find = |core: &SessionState| core.find(&params.target_id);
    begin(call, &params, request, NavigationKind::To, find).await
}

pub(super) async fn pop(call: Arc<Call>, params: wire::PopParams) -> Result<Reply> {
    let unsaid = Request::new(&call, &params);
    let request = Request {
        navigation_id: params.navigation_id.clone().unwrap_or(unsaid.navigation_id),
        wants_summary: params.summarize.unwrap_or(true),
        wishes: SummaryOptions {
            custom_instructions: params.custom_instructions.clone(),
            replace_instructions: params.replace_instructions.unwrap_or_default(),
        },
        label: params.label.as_deref().and_then(name::given),
        answer_timeout: params
            .answer_timeout_ms
            .map_or(unsaid.answer_timeout, Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        rewind: true,
        dry_run: params.dry_run.unwrap_or_default(),
        ..unsaid
    };
    let find = |core: &SessionState| navigate::pop_target(&core.tree, params.entry_id.as_deref());
    begin(call, &params, request, NavigationKind::To, find).await
}

pub(super) async fn merge_branch(
    call: Arc<Call>,
    params: wire::MergeBranchParams,
) -> Result<Reply> {
    let request = Request {
        wants_summary: true,
        wishes: SummaryOptions {
            custom_instructions: params.custom_instructions.clone(),
            replace_instructions: false,
        },
        ..Request::new(&call, &params)
    };
    let find = |core: &SessionState| core.find(&params.tip_id);
    begin(call, &params, request, NavigationKind::Merge, find).await
}

impl Request {
    /// As far as it is the same for everything that says no more.
    fn new(call: &Call, params: &impl Mutation) -> Self {
        Self {
            expected: params.expected_leaf().clone(),
            navigation_id: id::random_token(&*call.daemon.source),
            wants_summary: false,
            wishes: SummaryOptions::default(),
            label: None,
            answer_timeout: ANSWER_TIMEOUT,
            on_no_answer: wire::OnNoAnswer::default(),
            rewind: false,
            dry_run: false,
        }
    }
}

/// What every navigation begins with: the session's turn, and what must hold before anything is looked
/// for. From the first moment on it can be aborted.
async fn begin(
    call: Arc<Call>,
    params: &impl Mutation,
    request: Request,
    way: NavigationKind,
    find: impl FnOnce(&SessionState) -> Result<Node>,
) -> Result<Reply> {
    call.names_navigation(AskedNavigation {
        session_id: params.session_id().map(str::to_owned),
        navigation_id: request.navigation_id.clone(),
    });
    let (open, turn) = match call.fresh(params).await {
        Ok(found) => found,
        Err(error) if error.kind == Kind::Cancelled => return aborted(&call, params).await,
        Err(error) => return Err(error),
    };
    open.session.check_writable()?;
    open.session.check_idle()?;
    turn.check_expected_leaf(params.expected_leaf())?;
    let navigator = Navigator {
        call,
        open,
        request,
    };
    navigator.run(turn, way, find).await
}

/// Aborted while it waited for its turn.
async fn aborted(call: &Arc<Call>, params: &impl Mutation) -> Result<Reply> {
    let (_, turn) = call
        .daemon
        .turn(params.session_id(), &Cancel::new())
        .await?;
    let leaf_id = turn.leaf_id().map(EntryId::new);
    unmoved(NavigationReason::Aborted, true, &leaf_id, &leaf_id)
}

/// Waits for nothing (protocol.md §1): ends the navigation that runs, or those that wait for their turn.
pub(super) async fn abort_navigation(
    call: Arc<Call>,
    params: wire::AbortNavigationParams,
) -> Result<Reply> {
    let open = call.daemon.queues.find_now(params.session_id.as_deref())?;
    let wanted = params.navigation_id.as_deref();
    let is_meant = |id: &str| wanted.is_none_or(|wanted| wanted == id);
    let aborted = match open.session.activity() {
        Some(Activity::Navigation { id, abort }) if is_meant(&id) => abort.cancel(),
        _ => {
            let waiting = call.connection.asked_navigations(&open.id, is_meant);
            // Every one of them, not the first alone.
            waiting.iter().filter(|abort| abort.cancel()).count() > 0
        }
    };
    Reply::of(&wire::AbortNavigationResult { aborted })
}
