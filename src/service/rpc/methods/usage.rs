//! `get_usage` (protocol.md §15.6). [`Accounts`](crate::parts::Accounts) counts the usage.

use super::times::time;
use crate::parts::UsageRun;
use crate::rpc::arrival::Arrival;
use crate::rpc::handler::Remainder;
use std::sync::Arc;
use treelined_core::error::{Error, Result};
use treelined_files::blocking::blocking;
use treelined_wire as wire;

/// The number of rows of a result if the client gives no limit.
const USUAL_ROWS: u64 = 1_000;
/// The most rows of a result.
const MOST_ROWS: u64 = 10_000;

pub(in crate::rpc) fn get_usage(
    arrival: &Arrival<'_>,
    params: wire::GetUsageParams,
) -> Result<Remainder<wire::GetUsageResult>> {
    let since = time("since", params.since.as_deref())?;
    let limit = params.limit.unwrap_or(USUAL_ROWS);
    if limit > MOST_ROWS {
        let reason = format!("is more than {MOST_ROWS}");
        return Err(Error::invalid_params("limit", reason));
    }
    let (call, earlier) = (Arc::clone(arrival.call()), arrival.earlier_changes());
    let count = move || {
        call.daemon.parts.accounts()?.usage(&UsageRun {
            by: params.by.unwrap_or_default(),
            cwd: params.cwd.as_deref(),
            since,
            session: params.session_id.as_deref(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            store: &call.daemon.files.store,
            cancel: &call.cancel,
        })
    };
    Ok(Remainder::of(async move {
        earlier.await?;
        blocking(count).await
    }))
}
