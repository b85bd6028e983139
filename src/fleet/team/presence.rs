//! The row of a daemon in the bucket of presence: the sessions that the daemon has open.

use serde::{Deserialize, Serialize};
use treelined_core::author::short;
use treelined_core::error::{Error, Kind};
use treelined_core::team::OpenElsewhere;
use treelined_core::timestamp;

/// The most bytes of a row. A row with 1,000 sessions has about 90 kB.
pub(super) const MAX_PRESENCE_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PresenceText {
    host: String,
    daemon: String,
    sessions: Vec<OpenText>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenText {
    session_id: String,
    since: String,
}

/// The row of a daemon with these sessions, and the times at which they were opened. If not all sessions fit, the row
/// has the sessions that were opened last.
pub(crate) fn encode(host_name: &str, daemon: &str, mut sessions: Vec<(String, i64)>) -> Vec<u8> {
    sessions.sort_unstable_by(|(a, at), (b, bt)| bt.cmp(at).then_with(|| a.cmp(b)));
    let mut left = MAX_PRESENCE_BYTES - 1024;
    let mut text = PresenceText {
        host: short(host_name),
        daemon: daemon.to_owned(),
        sessions: Vec::new(),
    };
    for (session_id, since) in sessions {
        let open = OpenText {
            session_id,
            since: timestamp::format(since),
        };
        // The comma counts too.
        let bytes = serde_json::to_vec(&open).map_or(left, |made| made.len() + 1);
        let Some(rest) = left.checked_sub(bytes) else {
            break;
        };
        left = rest;
        text.sessions.push(open);
    }
    serde_json::to_vec(&text).unwrap_or_else(|error| {
        debug_assert!(false, "{error}");
        Vec::new()
    })
}

/// The sessions in the row of a daemon, with their ids. `None` if the row is damaged.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<(String, OpenElsewhere)>> {
    if text.len() > MAX_PRESENCE_BYTES {
        return None;
    }
    let text: PresenceText = serde_json::from_slice(text).ok()?;
    let host = short(&text.host);
    let open = text.sessions.into_iter().map(|open| {
        let since = timestamp::format(timestamp::parse(&open.since)?);
        let host = host.clone();
        Some((open.session_id, OpenElsewhere { host, since }))
    });
    open.collect()
}

/// The error for a row of a daemon that is damaged, where it matters which sessions are open.
pub(crate) fn damaged() -> Error {
    let why = "a daemon's row of open sessions in the team's list is damaged: it disappears a minute after its last write";
    Error::new(Kind::LogForeign, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_sessions_are_one_row() {
        let sessions: Vec<_> = (0..1000)
            .map(|n| (format!("0198c1f0-5e00-7000-8000-{n:012}"), n))
            .collect();
        let text = encode("laptop", "d1", sessions);
        assert!(text.len() < 100_000, "{}", text.len());
        let read = decode(&text).unwrap();
        assert_eq!(read.len(), 1000);
        assert_eq!(read[0].0, "0198c1f0-5e00-7000-8000-000000000999");
        assert_eq!(read[0].1.host, "laptop");
    }

    #[test]
    fn of_more_sessions_than_fit_the_last_opened_are_in_the_row() {
        let sessions: Vec<_> = (0..9000).map(|n| (format!("{n:0>128}"), n)).collect();
        let text = encode("laptop", "d1", sessions);
        assert!(text.len() <= MAX_PRESENCE_BYTES);
        let read = decode(&text).unwrap();
        assert!(read.len() > 100);
        assert_eq!(read[0].0, format!("{:0>128}", 8999));
    }

    #[test]
    fn damaged_rows_are_none() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"host":"h","daemon":"d","sessions":[{"sessionId":"s","since":"x"}]}"#,
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
