//! A time among the params of a request (protocol.md §3.16).

use treelined_core::error::{Error, Result};
use treelined_core::id::Source;
use treelined_core::timestamp::{self, Millis};
use treelined_files::clock::SystemSource;

/// Reads the param of this name. Fails with `invalidParams` if it is not a time.
pub(super) fn time(name: &str, text: Option<&str>) -> Result<Option<Millis>> {
    let unreadable = || {
        let reason = format!("is not a time: write {}", timestamp::TIMES);
        Error::invalid_params(name, reason)
    };
    let now = SystemSource.now_ms();
    let at = text.map(|text| timestamp::read(text, now).ok_or_else(unreadable));
    at.transpose()
}
