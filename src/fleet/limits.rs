//! Checks a stream: whether it may drop or refuse lines of sessions.

use super::subject;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use treelined_core::error::{Error, Kind, Result};

/// The oldest version of NATS whose streams compare and set. With 2.9, two writers at the same position can both
/// append.
const OLDEST_VERSION: (u64, u64) = (2, 10);

/// The smallest limit of a message, in bytes. Headers and a short line fit into this limit.
pub(crate) const SMALLEST_MESSAGE: i64 = 8 << 10;

/// Fails with `logMisconfigured` if the servers are too old.
pub fn check_version(version: &str) -> Result<()> {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= OLDEST_VERSION {
        return Ok(());
    }
    let (major, minor) = OLDEST_VERSION;
    let why = format!(
        "NATS {version} is too old, since it appends for two writers at one place: {major}.{minor} or newer is needed"
    );
    Err(Error::new(Kind::LogMisconfigured, why))
}

/// Fails with `logMisconfigured` if the messages of the servers have no room for a line.
pub fn check_payload(max_payload: usize) -> Result<()> {
    if i64::try_from(max_payload).is_ok_and(|most| most < SMALLEST_MESSAGE) {
        let why = format!(
            "the servers' max_payload is {max_payload}: {SMALLEST_MESSAGE} or more is needed"
        );
        return Err(Error::new(Kind::LogMisconfigured, why));
    }
    Ok(())
}

/// A stream, as its servers describe it.
#[derive(Debug, Clone, Deserialize)]
pub struct StreamInfo {
    pub config: StreamConfig,
    pub created: String,
    #[serde(default)]
    pub state: StreamState,
    pub cluster: Option<StreamCluster>,
    /// The number of subjects on all pages together.
    #[serde(default)]
    pub(crate) total: usize,
}

impl StreamInfo {
    /// The limits at which the stream will soon refuse messages: at most a tenth of the limit is left.
    pub fn fullness(&self) -> Vec<String> {
        let (config, state) = (&self.config, &self.state);
        let limits = [
            ("max_bytes", config.max_bytes, state.bytes),
            ("max_msgs", config.max_msgs, state.messages),
        ];
        let nearly = limits.into_iter().filter_map(|(name, most, has)| {
            let most = u64::try_from(most).ok().filter(|most| *most > 0)?;
            let is_near = has >= most / 10 * 9;
            is_near.then(|| {
                format!("appends fail when the stream is full: it has {has} of {most} ({name})")
            })
        });
        nearly.collect()
    }
}

/// The settings of a stream that this module checks.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct StreamConfig {
    name: String,
    subjects: Vec<String>,
    retention: String,
    storage: String,
    discard: String,
    max_msgs: i64,
    max_bytes: i64,
    max_msgs_per_subject: i64,
    pub(crate) max_msg_size: i64,
    /// In nanoseconds.
    max_age: i64,
    pub num_replicas: u64,
    /// In nanoseconds.
    pub duplicate_window: i64,
    sealed: bool,
    no_ack: bool,
    pub deny_delete: bool,
    pub deny_purge: bool,
    /// Whether a message can remove the messages before it.
    pub allow_rollup_hdrs: bool,
    mirror: Option<serde_json::Value>,
    sources: Vec<serde_json::Value>,
    /// Set if the stream changes the subjects of messages before it stores them.
    subject_transform: Option<serde_json::Value>,
    persist_mode: String,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            subjects: Vec::new(),
            retention: "limits".to_owned(),
            storage: "file".to_owned(),
            discard: "old".to_owned(),
            max_msgs: -1,
            max_bytes: -1,
            max_msgs_per_subject: -1,
            max_msg_size: -1,
            max_age: 0,
            num_replicas: 1,
            duplicate_window: 0,
            sealed: false,
            no_ack: false,
            deny_delete: false,
            deny_purge: false,
            allow_rollup_hdrs: false,
            mirror: None,
            sources: Vec::new(),
            subject_transform: None,
            persist_mode: String::new(),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct StreamState {
    #[serde(default)]
    pub messages: u64,
    #[serde(default)]
    pub bytes: u64,
    #[serde(default)]
    pub(crate) first_seq: u64,
    #[serde(default)]
    pub last_seq: u64,
    #[serde(default)]
    pub num_subjects: u64,
    #[serde(default)]
    pub num_deleted: u64,
    /// The number of messages of each subject, if the request asks for it.
    pub(crate) subjects: Option<BTreeMap<String, u64>>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct StreamCluster {
    pub name: Option<String>,
    pub leader: Option<String>,
    #[serde(default)]
    pub replicas: Vec<StreamPeer>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct StreamPeer {
    pub name: String,
    #[serde(default)]
    pub current: bool,
    #[serde(default)]
    pub offline: bool,
    #[serde(default)]
    pub lag: u64,
}

/// The settings of a new stream.
pub(super) fn new_stream(name: &str, replicas: u64) -> serde_json::Value {
    json!({
        "name": name,
        "subjects": [subject::ALL],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msgs_per_subject": -1,
        "num_replicas": replicas,
        "duplicate_window": 120_000_000_000_i64,
        "deny_delete": true,
        "deny_purge": true,
        "allow_direct": true,
    })
}

impl StreamConfig {
    /// Whether a member can remove messages.
    pub fn is_erasable(&self) -> bool {
        !self.deny_delete || !self.deny_purge || self.allow_rollup_hdrs
    }

    /// The settings with which the stream drops or refuses messages, each as a sentence.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |is_fault: bool, fault: String| {
            if is_fault {
                faults.push(fault);
            }
        };
        let takes = |of: &String| {
            matches!(
                of.as_str(),
                subject::ALL | "treelined.s.>" | "treelined.>" | ">"
            )
        };
        check(
            !self.subjects.iter().any(takes),
            format!("it does not take the subjects {}", subject::ALL),
        );
        check(
            self.retention != "limits",
            format!(
                "its retention {:?} drops messages that were read",
                self.retention
            ),
        );
        check(
            self.storage != "file",
            format!("its storage {:?} is lost with the servers", self.storage),
        );
        check(
            self.max_age > 0,
            "its max_age drops old messages".to_owned(),
        );
        check(
            self.max_msgs_per_subject > 0,
            "its max_msgs_per_subject limits the entries of a session".to_owned(),
        );
        let is_limited = self.max_msgs > 0 || self.max_bytes > 0;
        check(
            is_limited && self.discard != "new",
            "its limits drop old messages: `discard` must be `new`".to_owned(),
        );
        check(
            (1..SMALLEST_MESSAGE).contains(&self.max_msg_size),
            format!("its max_msg_size must be {SMALLEST_MESSAGE} or more"),
        );
        check(
            self.subject_transform.is_some(),
            "its subject_transform keeps sessions under other subjects".to_owned(),
        );
        check(self.sealed, "it is sealed".to_owned());
        check(self.no_ack, "it acknowledges nothing".to_owned());
        check(
            self.mirror.is_some() || !self.sources.is_empty(),
            "it is fed by other streams".to_owned(),
        );
        check(
            self.persist_mode == "async",
            "its persist_mode acknowledges before it writes".to_owned(),
        );
        faults
    }

    /// Fails with `logMisconfigured` if the stream may drop or refuse messages.
    pub(super) fn check(&self) -> Result<()> {
        match self.faults().as_slice() {
            [] => Ok(()),
            faults => {
                let why = format!(
                    "the stream {:?} cannot keep sessions: {}",
                    self.name,
                    faults.join("; ")
                );
                Err(Error::new(Kind::LogMisconfigured, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(changes: &serde_json::Value) -> StreamConfig {
        let mut config = new_stream("s", 3);
        for (name, value) in changes.as_object().unwrap() {
            config[name] = value.clone();
        }
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn servers_that_cannot_compare_and_set_are_too_old() {
        assert!(check_version("2.10.0").is_ok());
        assert!(check_version("2.15.1").is_ok());
        assert!(check_version("3.0.0-beta").is_ok());
        for old in ["2.9.10", "1.99.0", "", "unknown"] {
            let error = check_version(old).unwrap_err();
            assert_eq!(error.kind, Kind::LogMisconfigured, "{old}");
        }
    }

    #[test]
    fn messages_need_room_for_headers_and_a_line() {
        assert!(check_payload(1 << 20).is_ok());
        assert_eq!(
            check_payload(1024).unwrap_err().kind,
            Kind::LogMisconfigured
        );
    }

    /// If a stream drops the oldest messages at a limit, sessions lose their beginnings.
    #[test]
    fn each_setting_that_loses_messages_is_a_fault() {
        assert!(config(&json!({})).check().is_ok());
        assert!(
            config(&json!({ "max_bytes": 1000 })).check().is_ok(),
            "refused, not dropped"
        );
        for fault in [
            json!({ "subjects": ["other.*"] }),
            json!({ "retention": "workqueue" }),
            json!({ "storage": "memory" }),
            json!({ "max_age": 1 }),
            json!({ "max_msgs_per_subject": 100 }),
            json!({ "max_msgs": 100, "discard": "old" }),
            json!({ "max_bytes": 100, "discard": "old" }),
            json!({ "max_msg_size": 300 }),
            json!({ "subject_transform": { "src": "treelined.s.*", "dest": "other.{{wildcard(1)}}" } }),
            json!({ "sealed": true }),
            json!({ "no_ack": true }),
            json!({ "mirror": { "name": "x" } }),
            json!({ "persist_mode": "async" }),
        ] {
            let error = config(&fault).check().unwrap_err();
            assert_eq!(error.kind, Kind::LogMisconfigured, "{fault}");
        }
    }
}
