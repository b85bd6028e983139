//! Generates the enum of notifications.

use crate::NOTICE;
use crate::schema::{last, pascal};
use serde_json::Value;
use std::fmt::Write as _;

/// The notifications about a request. The request may be about any session, or about none.
const ABOUT_A_REQUEST: [&str; 3] = ["progress", "search_hit", "sessions_changed"];
/// Notifications that may be about a session.
const PERHAPS_ABOUT_A_SESSION: [&str; 4] = [
    "event_resolved",
    "command_invoked",
    "user_asked",
    "user_notified",
];

pub fn notification(table: &Value) -> String {
    let all: Vec<(&str, String, &str, &str)> = table["notifications"]
        .as_array()
        .expect("notifications")
        .iter()
        .map(|notification| {
            let name = notification["name"].as_str().expect("name");
            let params = last(notification["params"]["$ref"].as_str().expect("params"));
            let summary = notification["summary"].as_str().expect("summary");
            (name, pascal(name), params, summary)
        })
        .collect();
    let mut text = String::from("//! Notifications of the daemon.\n//!\n")
        + NOTICE
        + "use super::types::*;\nuse crate::Json;\n\n\
           /// A notification of the daemon.\n\
           #[derive(Debug, Clone, PartialEq)]\n\
           #[non_exhaustive]\n\
           pub enum Notification {\n";
    for (name, variant, params, summary) in &all {
        writeln!(text, "    /// {summary} `{name}`\n    {variant}({params}),").unwrap();
    }
    text += "    /// A notification that this client does not know.\n    Unknown {\n        /// The name.\n        method: String,\n        /// The params.\n        params: Json,\n    },\n\
             \n    /// More notifications arrived than this stream can hold before they were read, so some were dropped here.\n\
             /// Read the state again.\n    Missed {\n        /// The number of dropped notifications.\n        count: u64,\n    },\n}\n\n";
    text += "impl Notification {\n    fn unknown(method: &str, params: &Json) -> Notification {\n        Notification::Unknown { method: method.to_owned(), params: params.clone() }\n    }\n\n    /// Returns `Unknown` for an unknown name, and for params of another shape.\n    pub(crate) fn parse(method: &str, params: &Json) -> Notification {\n        let known = match method {\n";
    for (name, variant, _, _) in &all {
        writeln!(
            text,
            "            {name:?} => params.parse().map(Notification::{variant}),"
        )
        .unwrap();
    }
    text += "            _ => return Notification::unknown(method, params),\n        };\n        known.unwrap_or_else(|_| Notification::unknown(method, params))\n    }\n\n";
    text += "    /// Returns the name in the protocol; `None` for `Missed`.\n    pub fn method(&self) -> Option<&str> {\n        Some(match self {\n";
    for (name, variant, _, _) in &all {
        writeln!(text, "            Notification::{variant}(_) => {name:?},").unwrap();
    }
    text += "            Notification::Unknown { method, .. } => method,\n            Notification::Missed { .. } => return None,\n        })\n    }\n\n";
    text += "    /// Returns the id of the session that the notification is about.\n    pub fn session_id(&self) -> Option<&str> {\n        Some(match self {\n";
    for (name, variant, _, _) in &all {
        if ABOUT_A_REQUEST.contains(name) {
            continue;
        }
        let id = match PERHAPS_ABOUT_A_SESSION.contains(name) {
            true => "params.session_id.as_deref()?",
            false => "&params.session_id",
        };
        writeln!(text, "            Notification::{variant}(params) => {id},").unwrap();
    }
    text += "            _ => return None,\n        })\n    }\n}\n";
    text
}
