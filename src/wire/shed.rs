//! Branches in the cold file: `shed_branches` and `unshed_branches` (protocol.md §3.24).

use super::append::Durability;
use serde::Serialize;

mutation_params! {
    /// The params of `shed_branches`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
    ShedBranchesParams {
        /// An entry of each archived branch that is moved. Default: all archived branches.
        entry_ids: Option<Vec<String>>,
    }
}

/// The result of `shed_branches`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"shed": [], "staying": [], "durability": "none"}"#)))]
pub struct ShedBranchesResult {
    /// The branches whose lines are in the cold file now.
    pub shed: Vec<ShedBranch>,
    /// The archived branches that stay in the session file.
    pub staying: Vec<StayingBranch>,
    /// The call that takes this back. Absent if nothing was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<ShedInverse>,
    /// How safe the write is at the time of the response; `none` if nothing was moved.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `unshed_branches`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryIds": ["u2"]}"#)))]
    UnshedBranchesParams {
        /// An entry of each shed branch that is moved back. Default: all shed branches.
        entry_ids: Option<Vec<String>>,
    }
}

/// The result of `unshed_branches`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryIds": [], "durability": "none"}"#)))]
pub struct UnshedBranchesResult {
    /// The first entry of each branch that is in the session file again. The branches are archived as before.
    pub entry_ids: Vec<String>,
    /// The call that takes this back. Absent if nothing was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<ShedInverse>,
    /// How safe the write is at the time of the response; `none` if nothing was moved.
    pub durability: Durability,
}

/// A branch whose lines are in the cold file, as its record says.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShedBranch {
    /// The id of the first entry.
    pub entry_id: String,
    /// The id of the entry from which the branch hangs; null for a root.
    pub fork_id: Option<String>,
    /// The number of entries.
    pub entries: u64,
    /// The number of bytes of their lines.
    pub bytes: u64,
    /// The name of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The beginning of the first message of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
}

/// An archived branch that stays in the session file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StayingBranch {
    /// The id of the first entry.
    pub entry_id: String,
    /// Why it stays.
    pub reason: StayReason,
    /// The entry that is the reason, if it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Why an archived branch stays: `named`, an entry outside names an entry of it; `names`, it has a label, a note or a
/// name of the session; `damaged`, a line of it is damaged, too long, or there twice.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StayReason {
    Named,
    Names,
    Damaged,
}

/// The call that takes a move of branches back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShedInverse {
    /// The method.
    pub method: ShedVerb,
    /// Its params.
    pub params: ShedInverseArguments,
}

/// A method that moves branches.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShedVerb {
    ShedBranches,
    UnshedBranches,
}

/// The params of the inverse call of a move of branches.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShedInverseArguments {
    /// The first entry of each branch.
    pub entry_ids: Vec<String>,
}
