//! A query of `get_tree` as the connection may ask it: text that the connection does not see is not found.

use std::sync::{Arc, OnceLock};
use treelined_core::error::{Error, Result};
use treelined_core::search::{Mode, Query, ShownText};

/// The text of a query, parsed for each kind of reader when it is needed.
pub(super) struct ReaderQuery {
    text: String,
    mode: Mode,
    whole: Option<Arc<Query>>,
    /// The query of a connection that redacts.
    redacted: OnceLock<Option<Arc<Query>>>,
}

impl ReaderQuery {
    pub(super) fn parse(text: &str, mode: Mode) -> Result<Self> {
        let query = Query::parse(text, mode);
        let query = query.map_err(|reason| Error::invalid_params("query", reason))?;
        Ok(Self {
            text: text.to_owned(),
            mode,
            whole: query.map(Arc::new),
            redacted: OnceLock::new(),
        })
    }

    pub(super) fn is_given(&self) -> bool {
        self.whole.is_some()
    }

    /// `shown` is the text that the connection sees; `None` if it sees all.
    pub(super) fn of(&self, shown: Option<ShownText>) -> Option<Arc<Query>> {
        let Some(shown) = shown else {
            return self.whole.clone();
        };
        let redacted = self.redacted.get_or_init(|| {
            let query = Query::parse(&self.text, self.mode).ok().flatten();
            query.map(|query| Arc::new(query.for_reader(Some(shown))))
        });
        redacted.clone()
    }
}
