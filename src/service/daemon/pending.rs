//! A request whose response is not queued, as its connection sees the request.

use treelined_files::cancel::Cancel;

/// A request whose response is not queued.
pub(crate) trait Pending: Send + Sync {
    fn cancel(&self) -> &Cancel;
    /// The navigation of the request, if it is one.
    fn navigation(&self) -> Option<&AskedNavigation>;
}

/// A navigation, with the id that an abort uses.
pub(crate) struct AskedNavigation {
    pub(crate) session_id: Option<String>,
    pub(crate) navigation_id: String,
}
