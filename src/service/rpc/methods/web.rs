//! `open_web` (protocol.md §17).

use crate::daemon::call::Call;
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_wire as wire;

pub(in crate::rpc) fn open_web(
    call: &Arc<Call>,
    _: wire::OpenWebParams,
) -> Result<wire::OpenWebResult> {
    call.daemon.open_web()
}
