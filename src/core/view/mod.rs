//! The tree as rows for clients: `get_tree` (protocol.md §6).
//!
//! This module has filters, order, query, fold, depth, the drawn guides, paging, previews, and the two output formats.
//! It is pure: it reads neither the file nor the clock, and does not depend on params or cursors. Nothing recurses.
//! Only [`Outline::new`] and [`Snapshot::take`] read the [`Tree`](crate::tree::Tree), so only they need the session's
//! lock.
//!
//! The steps of a request:
//!
//! 1. [`Outline::new`]: all entries in scope, in pre-order (lock).
//! 2. With a query: [`Snapshot::take`] of [`Outline::kept`] (lock), then a search in the text of each
//!    ([`crate::search`], without the lock).
//! 3. [`Visible::new`]: the visible tree as rows; [`page_range`]: the rows of the page.
//! 4. Without a query: [`Snapshot::take`] of [`Visible::items_of`] (the same lock as 1).
//! 5. [`Visible::served`]: for each row read [`RowFacts`], and for a tool result its [`ToolCall`] from
//!    [`Outline::callers`], then [`ServedRow::push_json`]; or [`nested::push_json`].

mod call;
mod extract;
mod facts;
mod layout;
mod left;
mod line;
pub mod nested;
mod plain;
mod prefix;
mod preview;
mod result;
mod row;
mod snapshot;
mod speech;
mod subject;
#[cfg(test)]
mod tests;
mod visible;
mod visible_row;

pub use call::call_summary;
pub use facts::{RowFacts, ToolCall};
pub use layout::{Caller, Filter, Order, Outline, Scope};
pub use left::{BranchName, FoldedRow, Left, LeftRows};
pub use line::PreviewLine;
pub use prefix::{Guides, Render};
pub use preview::FIRST_READ;
pub use row::{RowLook, RowParts, RowStyle, ServedRow, push_number};
pub use snapshot::{Entry, Snapshot};
pub use subject::Subject;
pub use visible::{Folding, Start, Visible, page_range};
pub use visible_row::Row;
