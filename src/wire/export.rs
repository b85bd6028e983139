//! Exporting sessions (protocol.md §16).

use super::params::required_count;
use serde::{Deserialize, Serialize};

session_params! {
    /// The params of `export_session`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"format": "html", "path": "/home/ada/tour.html"}"#)))]
    ExportSessionParams {
        /// The form of the export.
        format: ExportFormat,
        /// The part of the session to export. Default: `tree` for `html`, `jsonl`, `dpo` and `verifiers`, else `branch`.
        /// `branch` is refused for `dpo`, and every other one for `trace`.
        scope: Option<ExportScope>,
        /// The last entry of the branch, or the first entry of the subtree. Required for a subtree. Default: the leaf,
        /// for a branch.
        entry_id: Option<String>,
        /// The absolute path of the file to write. Default: the result has `content`.
        path: Option<String>,
        /// Whether an existing file is replaced; otherwise it fails the request with `fileExists`. Default: false.
        overwrite: Option<bool>,
        /// Whether secrets are replaced. Default: true, but for `jsonl` true is refused.
        redact: Option<bool>,
        /// Hashes of secrets that the client knows by their value, as those of its environment variables. Default:
        /// none.
        values: Option<SecretValues>,
        /// Whether nothing is written, and the result has `review`. Default: false; refused for `jsonl`, and if `redact` is false.
        review: Option<bool>,
        /// Ids of secrets that stay, as `review` names them, at most 1,000. Default: none.
        keep: Option<Vec<String>>,
        /// Ids of text that is replaced too, as `review` names it, at most 1,000. Default: none.
        replace: Option<Vec<String>>,
        /// Words that are replaced too, beside those of the configuration, at most 256 together, of 3 to 512 bytes. Default: none.
        words: Option<Vec<String>>,
        /// How paths in the home directory of the daemon's user are shown. `shorten` is refused for `jsonl`. Default:
        /// `keep`.
        home: Option<HomePaths>,
    }
}

/// Secrets by their values, as hashes with one salt.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretValues {
    /// 16 to 128 bytes, made at random.
    #[cfg_attr(feature = "schema", schemars(length(min = 16, max = 128)))]
    pub salt: String,
    /// At most 64.
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub hashes: Vec<SecretValue>,
}

/// The hash of a value.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretValue {
    /// The bytes of the value, 12 to 512.
    #[serde(deserialize_with = "required_count")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::params::Count"))]
    pub length: u64,
    /// 16 bits, by which the daemon knows where to look: the highest of the first 8 bytes of the value as a number (the first
    /// byte is the lowest), xor A, times B modulo 2^64. A and B are the first and the second 8 bytes of SHA-256 of the salt
    /// and `check`, read in the same way; the lowest bit of B is 1.
    #[serde(deserialize_with = "required_count")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::params::Count"))]
    pub check: u64,
    /// SHA-256 of the salt and the value, in hexadecimal digits.
    pub sha256: String,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// One file with the page and the session in it.
    Html,
    /// A document for readers.
    Markdown,
    /// A session file.
    Jsonl,
    /// Plain text.
    Text,
    /// Data for supervised fine-tuning: a line each branch, with its messages.
    Sft,
    /// Data for preference training: a line each pair of a better and a worse answer to one prompt.
    Dpo,
    /// A session trace: the session file of one branch, without secrets.
    Trace,
    /// Trajectories of ATIF: a line each branch, with its subagents.
    Atif,
    /// The message graph of verifiers: one line with all branches.
    Verifiers,
}

/// The part of a session that an export has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExportScope {
    /// All entries.
    Tree,
    /// The path to an entry.
    Branch,
    /// An entry and all entries below it.
    Subtree,
}

/// How paths in a home directory are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HomePaths {
    /// As they are.
    #[default]
    Keep,
    /// With `~` in place of the home directory.
    Shorten,
}

/// The result of `export_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "path": "/home/ada/tour.html", "bytes": 181204,
  "redactions": [{"kind": "github-token", "count": 2, "entryIds": ["a1", "a2"]}]
}"#)))]
pub struct ExportSessionResult {
    /// The path of the file. Present if the request has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The export. Present if the request has no `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The size of the export, in bytes.
    pub bytes: u64,
    /// The number of lines. Present for data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// The replaced secrets, one item for each kind, ascending by kind.
    pub redactions: Vec<Redaction>,
    /// The secrets in the order of their places, at most 1,000, then text that looks like a secret, at most 1,000. Present if the
    /// request has `review`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Vec<ReviewedSecret>>,
}

/// A secret of an export that is reviewed before it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReviewedSecret {
    /// The id of the secret for `keep` and `replace`: a salted hash, the same in each review of the session.
    pub id: String,
    /// The kind of the secret; `unknown` for text that only looks like one.
    pub kind: String,
    /// Whether the export replaces it.
    pub replaced: bool,
    /// Its first two and its last two characters with `…` between them; only `…` if it has fewer than 12 characters.
    pub shown: String,
    /// Its characters.
    pub length: u64,
    /// How often the secret is there.
    pub count: u64,
    /// The entries that have it, at most 20.
    pub entry_ids: Vec<String>,
}

/// The secrets of one kind that an export replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Redaction {
    /// The kind of the secret, such as `github-token`.
    pub kind: String,
    /// The number of replaced secrets.
    pub count: u64,
    /// The entries that have them, at most 1,000, in the order of the session.
    pub entry_ids: Vec<String>,
}
