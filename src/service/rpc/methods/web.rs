//! `open_web` (protocol.md §17).

use crate::rpc::caller::Caller;
use treelined_core::error::Result;
use treelined_wire as wire;

pub(in crate::rpc) fn open_web(
    caller: &Caller<'_>,
    _: wire::OpenWebParams,
) -> Result<wire::OpenWebResult> {
    caller.daemon().open_web()
}
