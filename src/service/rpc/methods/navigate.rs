//! `navigate_tree`, `pop`, `merge_branch` and `abort_navigation` (protocol.md §3, §4): params and results.
//! [`crate::daemon::navigation`] has the steps.

use crate::daemon::navigation::{NavigationKind, Navigator, aborted};
use crate::daemon::other_session::OtherSession;
use crate::daemon::pending::AskedNavigation;
use crate::daemon::registry::Registry;
use crate::daemon::release::Release;
use crate::rpc::caller::Caller;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::navigate;
use treelined_core::id::{self, ConnectionId, EntryId, Source};
use treelined_core::name;
use treelined_core::summary::request::SummaryOptions;
use treelined_core::tree::Node;
use treelined_files::cancel::Cancel;
pub(crate) use treelined_files::session::{Activity, SessionState};
use treelined_wire::{self as wire, Mutation, OnSession};

pub(in crate::rpc) async fn navigate_tree(
    release: Release,
    params: wire::NavigateTreeParams,
) -> Result<wire::NavigateTreeResult> {
    let call = Arc::clone(&release.call);
    let rewind = params.rewind.unwrap_or_default();
    let default = navigator(&*call.daemon.source, &params, NavigationKind::To { rewind });
    let navigator = Navigator {
        navigation_id: params
            .navigation_id
            .clone()
            .unwrap_or(default.navigation_id),
        wants_summary: params.summarize.unwrap_or_default(),
        options: SummaryOptions {
            custom_instructions: params.custom_instructions.clone(),
            replace_instructions: params.replace_instructions.unwrap_or_default(),
        },
        label: params.label.as_deref().and_then(name::given),
        answer_timeout: params.answer_timeout_ms.map(Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        dry_run: params.dry_run.unwrap_or_default(),
        ..default
    };
    let find = |state: &SessionState| state.find(&params.target_id);
    navigate(release, &params, navigator, find).await
}

pub(in crate::rpc) async fn pop(
    release: Release,
    params: wire::PopParams,
) -> Result<wire::PopResult> {
    let call = Arc::clone(&release.call);
    let default = navigator(
        &*call.daemon.source,
        &params,
        NavigationKind::To { rewind: true },
    );
    let navigator = Navigator {
        navigation_id: params
            .navigation_id
            .clone()
            .unwrap_or(default.navigation_id),
        wants_summary: params.summarize.unwrap_or(true),
        options: SummaryOptions {
            custom_instructions: params.custom_instructions.clone(),
            replace_instructions: params.replace_instructions.unwrap_or_default(),
        },
        label: params.label.as_deref().and_then(name::given),
        answer_timeout: params.answer_timeout_ms.map(Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        dry_run: params.dry_run.unwrap_or_default(),
        ..default
    };
    let find = |state: &SessionState| navigate::pop_target(&state.tree, params.entry_id.as_deref());
    let popped = navigate(release, &params, navigator, find).await?;
    Ok(wire::PopResult(popped))
}

pub(in crate::rpc) async fn merge_branch(
    release: Release,
    params: wire::MergeBranchParams,
) -> Result<wire::MergeBranchResult> {
    let call = Arc::clone(&release.call);
    let mut navigator = Navigator {
        wants_summary: true,
        options: SummaryOptions {
            custom_instructions: params.custom_instructions.clone(),
            replace_instructions: false,
        },
        tip_id: params.tip_id.clone(),
        ..navigator(&*call.daemon.source, &params, NavigationKind::Merge)
    };
    let find = |state: &SessionState| match &params.tip_id {
        Some(tip_id) => state.find(tip_id),
        None => Err(Error::invalid_params(
            "tipId",
            "is required without fromSessionId",
        )),
    };
    name_navigation(&release, &params, &navigator);
    let own = call
        .daemon
        .registry
        .queues
        .find_now(Some(call.connection.id), params.session_id());
    let own = own.ok().map(|open| open.id.to_string());
    if let Some(id) = params
        .from_session_id
        .as_ref()
        .filter(|id| own.as_ref() != Some(*id))
    {
        let other =
            OtherSession::read(&call.daemon, call.connection.rights(), id, &call.cancel).await?;
        navigator.from = Some(Mutex::new(other));
    }
    let merged = navigator.run(release, find).await;
    let merged = or_aborted(&call.daemon.registry, call.connection.id, &params, merged).await?;
    Ok(wire::MergeBranchResult(merged))
}

/// A navigation with the default options.
pub(super) fn navigator(
    source: &dyn Source,
    params: &impl Mutation,
    kind: NavigationKind,
) -> Navigator {
    Navigator {
        kind,
        expected: params.expected_leaf().clone(),
        navigation_id: id::random_token(source),
        wants_summary: false,
        options: SummaryOptions::default(),
        label: None,
        from: None,
        tip_id: None,
        judgements: Vec::new(),
        within: Vec::new(),
        answer_timeout: None,
        on_no_answer: wire::OnNoAnswer::default(),
        dry_run: false,
    }
}

/// From now on, an abort finds the navigation by its id.
pub(super) fn name_navigation(release: &Release, params: &impl Mutation, navigator: &Navigator) {
    release.call.names_navigation(AskedNavigation {
        session_id: params.session_id().map(str::to_owned),
        navigation_id: navigator.navigation_id.clone(),
    });
}

async fn navigate(
    release: Release,
    params: &impl Mutation,
    navigator: Navigator,
    find: impl FnOnce(&SessionState) -> Result<Node>,
) -> Result<wire::NavigateTreeResult> {
    let call = Arc::clone(&release.call);
    name_navigation(&release, params, &navigator);
    let navigation = match navigator.dry_run {
        true => match navigator.dry_run(release, find).await {
            Ok(dry_run) => return Ok(dry_run),
            Err(error) => Err(error),
        },
        false => navigator.run(release, find).await,
    };
    let navigation = or_aborted(
        &call.daemon.registry,
        call.connection.id,
        params,
        navigation,
    )
    .await?;
    Ok(wire::NavigateTreeResult::Navigation(Box::new(navigation)))
}

/// The result of a navigation. If it was cancelled while it waited in the queue, the error becomes a result that says
/// `aborted`. Any other error is returned.
pub(super) async fn or_aborted(
    registry: &Registry,
    by: ConnectionId,
    params: &impl Mutation,
    ended: Result<wire::Navigation>,
) -> Result<wire::Navigation> {
    match ended {
        Err(error) if error.kind == Kind::Cancelled => {}
        ended => return ended,
    }
    let guard = registry.guard(Some(by), params.session_id(), &Cancel::new());
    let (_, guard) = guard.await?;
    Ok(aborted(&guard.leaf_id().map(EntryId::new)))
}

/// Aborts the navigation that runs, or the navigations that wait. This function itself never waits (protocol.md §1).
pub(in crate::rpc) fn abort_navigation(
    caller: &Caller<'_>,
    params: wire::AbortNavigationParams,
) -> Result<wire::AbortNavigationResult> {
    let by = caller.connection().id;
    let queues = &caller.daemon().registry.queues;
    let open = queues.find_now(Some(by), params.session_id.as_deref())?;
    let wanted = params.navigation_id.as_deref();
    let is_meant = |id: &str| wanted.is_none_or(|wanted| wanted == id);
    let aborted = match open.session.activity() {
        Some(Activity::Navigation { id, abort }) if is_meant(&id) => abort.cancel(),
        _ => {
            let connections = open.connections().into_iter();
            let waiting = connections.flat_map(|connection| {
                let is_own = connection.id == by;
                connection.asked_navigations(&open.id, is_own, is_meant)
            });
            let waiting: Vec<Cancel> = waiting.collect();
            // `count` aborts all navigations; `any` would stop after the first.
            waiting.iter().filter(|abort| abort.cancel()).count() > 0
        }
    };
    Ok(wire::AbortNavigationResult { aborted })
}
