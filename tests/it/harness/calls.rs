//! Requests and their results. It sends requests, claims responses and notifications, and has the calls that most tests
//! make.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::checks::BOOKKEEPING;
use super::*;

#[derive(Debug, Clone)]
pub(crate) struct RpcError {
    pub code: i64,
    pub kind: String,
    pub data: Box<Json>,
    pub message: String,
}

impl RpcError {
    fn parse(error: &Json) -> RpcError {
        RpcError {
            code: error["code"]
                .as_i64()
                .unwrap_or_else(|| panic!("error without a code: {error}")),
            kind: error["data"]["kind"]
                .as_str()
                .unwrap_or_else(|| panic!("error without data.kind: {error}"))
                .to_owned(),
            message: error["message"]
                .as_str()
                .unwrap_or_else(|| panic!("error without a message: {error}"))
                .to_owned(),
            data: Box::new(error["data"].clone()),
        }
    }

    pub(crate) fn details(&self, member: &str) -> &Json {
        self.data["details"]
            .get(member)
            .unwrap_or_else(|| panic!("no details.{member} in {self:?}"))
    }
}

impl Daemon {
    #[track_caller]
    pub(crate) fn initialize(&mut self, params: Json) -> Json {
        self.ok("initialize", params)
    }

    /// Sends `initialize` with these capabilities.
    #[track_caller]
    pub(crate) fn init(&mut self, capabilities: Json) -> Json {
        self.initialize(json!({
            "protocolVersion": 1,
            "clientInfo": {"name": "it", "version": "1"},
            "capabilities": capabilities,
        }))
    }

    #[track_caller]
    pub(crate) fn send(&mut self, method: &str, params: Json) -> Json {
        let id = self.fresh_id();
        self.send_as(id.clone(), method, params);
        id
    }

    /// An id that no earlier request on this connection has used.
    pub(crate) fn fresh_id(&mut self) -> Json {
        let id = json!(self.next_id);
        self.next_id += 1;
        id
    }

    #[track_caller]
    pub(crate) fn send_as(&mut self, id: Json, method: &str, params: Json) {
        self.send_together(&[(id, method, params)]);
    }

    pub(crate) fn notify(&mut self, method: &str, params: Json) {
        self.raw_line(
            json!({"jsonrpc": "2.0", "method": method, "params": params})
                .to_string()
                .as_bytes(),
        );
    }

    /// Sends a request whose params are text, for bytes that a JSON value cannot hold.
    #[track_caller]
    pub(crate) fn send_text(&mut self, method: &str, params: &str) -> Json {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.pending.insert(id.to_string(), method.to_owned());
        self.bytes(
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
            )
            .into_bytes(),
        );
        id
    }

    /// Sends one line and `\n`. If the line is a well-formed request, it must be answered.
    #[track_caller]
    pub(crate) fn raw_line(&mut self, line: &[u8]) {
        if let Ok(Json::Object(message)) = serde_json::from_slice(line)
            && let (Some(id), Some(Json::String(method))) =
                (message.get("id"), message.get("method"))
        {
            self.pending.insert(id.to_string(), method.clone());
        }
        self.bytes([line, b"\n"].concat());
    }

    /// Sends several requests in one write.
    #[track_caller]
    pub(crate) fn send_together(&mut self, requests: &[(Json, &str, Json)]) {
        let mut bytes = Vec::new();
        for (id, method, params) in requests {
            self.pending.insert(id.to_string(), (*method).to_owned());
            bytes.extend_from_slice(request(id, method, params).as_bytes());
            bytes.push(b'\n');
        }
        self.bytes(bytes);
    }
}

impl Daemon {
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Json) -> Result<Json, RpcError> {
        let id = self.send(method, params);
        self.response(&id)
    }

    #[track_caller]
    pub(crate) fn ok(&mut self, method: &str, params: Json) -> Json {
        let shown = shorten(&params.to_string());
        match self.call(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method} {shown} failed: {error:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn err(&mut self, method: &str, params: Json) -> RpcError {
        let shown = shorten(&params.to_string());
        match self.call(method, params) {
            Ok(result) => panic!(
                "{method} {shown} succeeded: {}",
                shorten(&result.to_string())
            ),
            Err(error) => error,
        }
    }

    #[track_caller]
    pub(crate) fn err_kind(&mut self, method: &str, params: Json, kind: &str) -> RpcError {
        let shown = shorten(&params.to_string());
        let error = self.err(method, params);
        assert_eq!(error.kind, kind, "{method} {shown}: {error:?}");
        error
    }

    #[track_caller]
    pub(crate) fn response(&mut self, id: &Json) -> Result<Json, RpcError> {
        let (_, mut message) = self.response_message(id);
        match message.get("error") {
            Some(error) => Err(RpcError::parse(error)),
            None => Ok(message["result"].take()),
        }
    }

    /// The line of the response, with its original bytes.
    #[track_caller]
    pub(crate) fn response_text(&mut self, id: &Json) -> String {
        self.response_message(id).0
    }

    #[track_caller]
    fn response_message(&mut self, id: &Json) -> (String, Json) {
        let key = id.to_string();
        let until = Instant::now() + self.deadline;
        loop {
            if let Some(found) = self.responses.remove(&key) {
                return found;
            }
            self.receive(until, &format!("the response to {key}"));
        }
    }

    /// Waits for the next response whose id is null.
    #[track_caller]
    pub(crate) fn response_with_null_id(&mut self) -> RpcError {
        let until = Instant::now() + self.deadline;
        loop {
            if let Some(found) = self.responses_with_null_id.pop_front() {
                return RpcError::parse(&found["error"]);
            }
            self.receive(until, "a response with id null");
        }
    }

    /// Waits for the next unclaimed notification of this name, claims it and returns its params.
    #[track_caller]
    pub(crate) fn notification(&mut self, name: &str) -> Json {
        let until = Instant::now() + self.deadline;
        loop {
            if let Some(at) = self.notifications.iter().position(|n| n["method"] == name) {
                return self.notifications.remove(at).unwrap()["params"].take();
            }
            self.receive(until, &format!("notification {name}"));
        }
    }

    /// Claims all notifications of this name received so far and returns their params.
    #[track_caller]
    pub(crate) fn received(&mut self, name: &str) -> Vec<Json> {
        self.ok("list_sessions", json!({"limit": 1}));
        let (found, others): (VecDeque<Json>, _) = std::mem::take(&mut self.notifications)
            .into_iter()
            .partition(|n| n["method"] == name);
        self.notifications = others;
        found.into_iter().map(|mut n| n["params"].take()).collect()
    }

    /// Checks that no unclaimed notification of this name was received so far.
    #[track_caller]
    pub(crate) fn no_notification(&mut self, name: &str) {
        self.ok("list_sessions", json!({}));
        let found: Vec<_> = self
            .notifications
            .iter()
            .filter(|n| n["method"] == name)
            .collect();
        assert!(found.is_empty(), "unexpected: {found:?}");
    }

    /// Checks that this request has no response although a later one has.
    #[track_caller]
    pub(crate) fn still_waits(&mut self, id: &Json) {
        assert!(self.has_no_response(id), "the request {id} was answered");
    }

    /// Whether this request has no response although a later one has.
    #[track_caller]
    pub(crate) fn has_no_response(&mut self, id: &Json) -> bool {
        self.ok("list_sessions", json!({}));
        !self.responses.contains_key(&id.to_string())
    }

    /// Waits for the responses to all requests, and claims them.
    #[track_caller]
    pub(crate) fn claim_responses(&mut self) {
        let until = Instant::now() + self.deadline;
        while !self.pending.is_empty() {
            self.receive(until, "the other responses");
        }
        self.responses.clear();
    }

    pub(crate) fn ignore(&mut self, name: &str) {
        self.ignored.insert(name.to_owned());
    }

    pub(crate) fn ignore_bookkeeping(&mut self) {
        for name in BOOKKEEPING {
            self.ignore(name);
        }
    }

    /// The received messages in order: the names of notifications, and `=method` for responses.
    pub(crate) fn order(&self) -> &[String] {
        &self.order
    }

    pub(crate) fn forget_order(&mut self) {
        self.order.clear();
    }
}

impl Daemon {
    /// Creates a session whose file is written with its first entry, and returns its id.
    #[track_caller]
    pub(crate) fn create(&mut self) -> String {
        let made = self.ok("create_session", json!({"write": "first-entry"}));
        made["session"]["sessionId"]
            .as_str()
            .expect("sessionId")
            .to_owned()
    }

    #[track_caller]
    pub(crate) fn open(&mut self, path: &Path) -> Json {
        self.ok("open_session", json!({"path": path}))
    }

    /// A quiet daemon with an open session whose file, outside the session directory, holds these bytes.
    #[track_caller]
    pub(crate) fn opened(bytes: &[u8]) -> (Daemon, PathBuf) {
        let home = Home::new();
        let path = home.file("s.jsonl", bytes);
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        (d, path)
    }

    #[track_caller]
    pub(crate) fn user(&mut self, id: &str, text: &str) -> Json {
        self.ok(
            "append_message",
            json!({"message": user(text), "entryId": id}),
        )
    }

    #[track_caller]
    pub(crate) fn assistant(&mut self, id: &str, text: &str) -> Json {
        self.ok(
            "append_message",
            json!({"message": assistant(text), "entryId": id}),
        )
    }

    /// Appends a chain of messages. An id that begins with `u` gets a user message, any other an assistant
    /// message; the text is "text of" and the id.
    #[track_caller]
    pub(crate) fn chain(&mut self, ids: &[&str]) {
        for id in ids {
            let text = format!("text of {id}");
            if id.starts_with('u') {
                self.user(id, &text)
            } else {
                self.assistant(id, &text)
            };
        }
    }

    /// Appends a message below `parent` instead of the leaf.
    #[track_caller]
    pub(crate) fn below(&mut self, parent: Option<&str>, id: &str) {
        let text = format!("text of {id}");
        let message = if id.starts_with('u') {
            user(&text)
        } else {
            assistant(&text)
        };
        self.ok(
            "append_message",
            json!({"message": message, "entryId": id, "parentId": parent}),
        );
    }

    #[track_caller]
    pub(crate) fn leaf(&mut self) -> Json {
        self.ok("get_leaf", json!({}))["leafId"].clone()
    }

    #[track_caller]
    pub(crate) fn set_leaf(&mut self, id: Option<&str>) -> Json {
        self.ok("set_leaf", json!({"leafId": id}))
    }

    #[track_caller]
    pub(crate) fn entry(&mut self, id: &str) -> Json {
        self.ok("get_entry", json!({"entryId": id}))["entry"].clone()
    }

    /// The ids of all entries in file order.
    #[track_caller]
    pub(crate) fn ids(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        let mut since = json!({});
        loop {
            let page = self.ok("get_entries", since);
            all.extend(ids(&page["entries"]));
            match page.get("nextCursor") {
                Some(cursor) => since = json!({"since": cursor}),
                None => return all,
            }
        }
    }

    #[track_caller]
    pub(crate) fn path_ids(&mut self, entry: Option<&str>) -> Vec<String> {
        let params = entry.map_or(json!({}), |id| json!({"entryId": id}));
        ids(&self.ok("get_path", params)["entries"])
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, event: &Json, result: Json) -> Json {
        self.ok(
            "answer_event",
            json!({"eventId": event["eventId"], "result": result}),
        )
    }
}

pub(crate) fn request(id: &Json, method: &str, params: &Json) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}
