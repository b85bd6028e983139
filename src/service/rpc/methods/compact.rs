//! `prepare_compaction` and `compact` (protocol.md §3.11). [`crate::daemon::compaction`] has the steps.

use crate::daemon::compaction::{self, Compactor, preparation_bytes};
use crate::daemon::reading::INLINE_BYTES;
use crate::daemon::release::Release;
use crate::rpc::session_read::{Read, ReadAnswer};
use std::time::Duration;
use treelined_core::error::Result;
use treelined_core::flow::compact::KEEP_RECENT_TOKENS;
use treelined_core::summary::request::SummaryOptions;
use treelined_wire as wire;

pub(in crate::rpc) fn prepare_compaction(
    read: &Read<'_>,
    params: &wire::PrepareCompactionParams,
) -> Result<ReadAnswer<wire::PrepareCompactionResult>> {
    if !read.may_block() && compaction::bytes_to_prepare(read) > INLINE_BYTES {
        return Ok(ReadAnswer::OnBlockingThread);
    }
    let keep = params.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS);
    let max_bytes = preparation_bytes(read.frame_bytes());
    let prepared = compaction::prepare(read, keep, max_bytes)?;
    let options = SummaryOptions {
        custom_instructions: params.custom_instructions.clone(),
        replace_instructions: false,
    };
    Ok(ReadAnswer::Ready(wire::PrepareCompactionResult {
        preparation: prepared.preparation(&options, max_bytes),
    }))
}

pub(in crate::rpc) async fn compact(
    release: Release,
    params: wire::CompactParams,
) -> Result<wire::CompactResult> {
    let compactor = Compactor {
        keep: params.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS),
        expected: params.expected_leaf_id,
        answer_timeout: params.answer_timeout_ms.map(Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        options: SummaryOptions {
            custom_instructions: params.custom_instructions,
            replace_instructions: params.replace_instructions.unwrap_or_default(),
        },
    };
    compactor.run(release).await
}
