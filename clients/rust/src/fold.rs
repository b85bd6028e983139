//! The rows that `get_tree` folds.

use serde::{Deserialize, Serialize};

/// The rows that `get_tree` folds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TreeFold {
    /// The descendants of these entries.
    Below(Vec<String>),
    /// The branches that the leaf has left. They have one row at their fork.
    Left(LeftBranches),
}

/// The word `left`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeftBranches {
    /// The branches that the leaf has left.
    Left,
}

impl TreeFold {
    /// Folds the branches that the leaf has left.
    pub const LEFT: TreeFold = TreeFold::Left(LeftBranches::Left);
}

impl<T: Into<String>> From<Vec<T>> for TreeFold {
    fn from(ids: Vec<T>) -> Self {
        Self::Below(ids.into_iter().map(Into::into).collect())
    }
}
