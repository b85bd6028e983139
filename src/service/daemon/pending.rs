//! A request without a queued response, as its connection knows it.

use treelined_files::cancel::Cancel;

/// A request without a queued response.
pub(crate) trait Pending: Send + Sync {
    fn cancel(&self) -> &Cancel;
    /// The navigation of the request, if it is one.
    fn navigation(&self) -> Option<&AskedNavigation>;
}

/// A navigation and the id by which an abort names it.
pub(crate) struct AskedNavigation {
    pub(crate) session_id: Option<String>,
    pub(crate) navigation_id: String,
}
