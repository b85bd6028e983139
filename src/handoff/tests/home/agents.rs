//! The agents in which a conversation continues, with their files in their own form.

use super::super::*;
use super::NOW;
use crate::place::NewFile;

/// A conversation that was handed over to an agent.
pub(super) struct Guest {
    pub(super) tool: Tool,
    pub(super) prepared: Prepared,
    /// The messages that the agent has added, each with its role.
    pub(super) added: Vec<(&'static str, String)>,
}

/// The folder with the files of an agent.
pub(super) fn place_of(tool: Tool) -> &'static str {
    match tool {
        Tool::ClaudeCode => "home/.claude",
        Tool::Codex => "home/.codex",
        Tool::Opencode => "home/.local/share/opencode",
        Tool::Gemini => "home/.gemini",
        Tool::Goose => "home/.local/share/goose/sessions",
        Tool::Pi => "home/.pi/agent",
        other => unreachable!("no conversation goes on in {other:?}"),
    }
}

impl Guest {
    pub(super) fn file(&self) -> &NewFile {
        self.prepared.files.first().unwrap()
    }

    /// Adds a question and its answer, as the agent would.
    pub(super) fn say(&mut self, question: &str, answer: &str) {
        self.added.push(("user", question.to_owned()));
        self.added.push(("assistant", answer.to_owned()));
    }

    /// Writes the agent's files, with the added messages.
    pub(super) fn arrange(&self, world: &World) {
        match self.tool {
            Tool::ClaudeCode | Tool::Codex | Tool::Pi => {
                fs::write(&self.file().path, self.lines()).unwrap();
            }
            Tool::Gemini => {
                let chats = world.at("home/.gemini/tmp/project/chats");
                fs::create_dir_all(&chats).unwrap();
                let name = self.file().path.file_name().unwrap();
                fs::write(chats.join(name), self.lines()).unwrap();
            }
            Tool::Opencode => self.arrange_opencode(world),
            Tool::Goose => self.arrange_goose(world),
            other => unreachable!("no conversation goes on in {other:?}"),
        }
    }

    /// The lines of a fork that Codex 0.169.0 makes of the whole thread. The first two lines are new. In each other
    /// record, the id follows the type.
    pub(super) fn forked_by_codex(&self, fork: &str) -> String {
        let mut text = String::new();
        for (at, line) in self.lines().lines().enumerate() {
            let mut record: Value = serde_json::from_str(line).unwrap();
            if at == 0 {
                let mut first = record.clone();
                first["payload"]["id"] = json!(fork);
                first["payload"]["forked_from_id"] = record["payload"]["id"].clone();
                text.push_str(&format!("{first}\n"));
            }
            if record["type"] == "response_item" {
                let payload = record["payload"].take();
                let own = json!(format!("{fork}-{at}"));
                let id = payload.get("id").unwrap_or(&own);
                let mut copy = json!({ "type": payload["type"], "id": id });
                for (name, value) in payload.as_object().unwrap() {
                    copy[name] = value.clone();
                }
                record["payload"] = copy;
            }
            text.push_str(&format!("{record}\n"));
        }
        for (role, words) in [("user", "IN THE FORK"), ("assistant", "FORKED")] {
            for record in self.records(role, words, &format!("{fork}-{words}"), None) {
                text.push_str(&format!("{record}\n"));
            }
        }
        text
    }

    fn lines(&self) -> String {
        let mut text = String::from_utf8(self.file().bytes.clone()).unwrap();
        let native = self.prepared.native_id.clone().unwrap_or_default();
        let last = |name: &str| {
            let records = text.lines().rev();
            let mut records = records.map(|line| serde_json::from_str::<Value>(line).unwrap());
            records.find_map(|record| Some(record.get(name)?.as_str()?.to_owned()))
        };
        let mut parent = match self.tool {
            Tool::ClaudeCode => last("uuid"),
            Tool::Pi => last("id"),
            _ => None,
        };
        for (at, (role, words)) in self.added.iter().enumerate() {
            let id = format!("{native}-{at}");
            for record in self.records(role, words, &id, parent.as_deref()) {
                text.push_str(&format!("{record}\n"));
            }
            parent = Some(id);
        }
        text
    }

    /// The records of one further message.
    fn records(&self, role: &str, words: &str, id: &str, parent: Option<&str>) -> Vec<Value> {
        let time = "2027-01-15T07:00:00.000Z";
        let native = self.prepared.native_id.as_deref();
        let is_user = role == "user";
        match self.tool {
            Tool::ClaudeCode => {
                let message = match is_user {
                    true => json!({ "role": "user", "content": words }),
                    false => {
                        json!({ "id": format!("msg_{id}"), "role": "assistant", "model": "claude-x",
                        "content": [{ "type": "text", "text": words }], "stop_reason": "end_turn",
                        "usage": { "input_tokens": 10, "output_tokens": 2 } })
                    }
                };
                vec![
                    json!({ "type": role, "uuid": id, "parentUuid": parent, "sessionId": native,
                    "timestamp": time, "cwd": self.prepared.cwd, "message": message }),
                ]
            }
            Tool::Codex if is_user => vec![
                json!({ "timestamp": time, "type": "event_msg", "payload": { "type": "task_started", "turn_id": id } }),
                json!({ "timestamp": time, "type": "response_item", "payload": { "type": "message", "id": id, "role": "user",
                    "content": [{ "type": "input_text", "text": words }] } }),
                json!({ "timestamp": time, "type": "event_msg", "payload": { "type": "user_message", "message": words } }),
            ],
            Tool::Codex => vec![
                json!({ "timestamp": time, "type": "response_item", "payload": { "type": "message", "id": id, "role": "assistant",
                    "content": [{ "type": "output_text", "text": words }] } }),
                json!({ "timestamp": time, "type": "event_msg", "payload": { "type": "token_count", "info": {
                    "last_token_usage": { "input_tokens": 10, "output_tokens": 2, "total_tokens": 12 },
                    "total_token_usage": { "input_tokens": 10, "output_tokens": 2, "total_tokens": 12 } } } }),
                json!({ "timestamp": time, "type": "event_msg", "payload": { "type": "task_complete", "turn_id": id } }),
            ],
            Tool::Gemini if is_user => vec![json!({ "id": id, "timestamp": time, "type": "user",
                "content": [{ "text": words }] })],
            Tool::Gemini => vec![
                json!({ "id": id, "timestamp": time, "type": "gemini", "content": words,
                "model": "gemini-x", "tokens": { "input": 10, "output": 2, "total": 12 } }),
            ],
            _ => {
                let message = match is_user {
                    true => json!({ "role": "user", "content": words }),
                    false => {
                        json!({ "role": "assistant", "content": [{ "type": "text", "text": words }],
                        "api": "a", "provider": "p", "model": "m", "stopReason": "stop",
                        "usage": { "input": 10, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 12 } })
                    }
                };
                vec![
                    json!({ "type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message }),
                ]
            }
        }
    }

    fn arrange_opencode(&self, world: &World) {
        let storage = world.at(place_of(self.tool)).join("storage");
        let put = |path: String, value: &Value| {
            let path = storage.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value.to_string()).unwrap();
        };
        let document: Value = serde_json::from_slice(&self.file().bytes).unwrap();
        let info = &document["info"];
        let native = info["id"].as_str().unwrap();
        put(format!("session/global/{native}.json"), info);
        let mut messages = document["messages"].as_array().unwrap().clone();
        let last = messages.last().unwrap()["info"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        for (at, (role, words)) in self.added.iter().enumerate() {
            // Ids sort by time.
            let id = format!("{last}_{at:03}");
            let time = NOW - 1_000 + i64::try_from(at).unwrap();
            let tokens = json!({ "input": 10, "output": 2, "reasoning": 0, "cache": { "read": 0, "write": 0 } });
            let mut info =
                json!({ "id": id, "sessionID": native, "role": role, "time": { "created": time } });
            if *role == "assistant" {
                info["time"]["completed"] = json!(time);
                info["tokens"] = tokens;
                info["modelID"] = json!("m");
                info["providerID"] = json!("p");
                info["finish"] = json!("stop");
            }
            messages.push(
                json!({ "info": info, "parts": [{ "id": format!("prt_{id}"), "sessionID": native,
                "messageID": id, "type": "text", "text": words }] }),
            );
        }
        for message in messages {
            let id = message["info"]["id"].as_str().unwrap();
            put(format!("message/{native}/{id}.json"), &message["info"]);
            for part in message["parts"].as_array().unwrap() {
                put(
                    format!("part/{id}/{}.json", part["id"].as_str().unwrap()),
                    part,
                );
            }
        }
    }

    /// goose copies the messages of the file into its database, with its own ids.
    fn arrange_goose(&self, world: &World) {
        let folder = world.at(place_of(self.tool));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("sessions.db");
        if !path.exists() {
            let empty = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../tests/data/import/goose/sessions.db");
            fs::copy(empty, &path).unwrap();
        }
        let database = rusqlite::Connection::open(path).unwrap();
        let native = format!("goose-{}", self.prepared.id);
        database
            .execute_batch("DELETE FROM messages WHERE session_id NOT LIKE 'goose-%'; PRAGMA foreign_keys = off; DELETE FROM sessions WHERE id NOT LIKE 'goose-%';")
            .unwrap();
        let row = "INSERT OR REPLACE INTO sessions (id, working_dir, updated_at) VALUES (?1, ?2, datetime('2027-01-15', ?3))";
        let grown = format!("+{} seconds", self.added.len());
        database
            .execute(row, [&native, &self.prepared.cwd, &grown])
            .unwrap();
        database
            .execute("DELETE FROM messages WHERE session_id = ?1", [&native])
            .unwrap();
        let text = String::from_utf8(self.file().bytes.clone()).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let stored = lines.filter(|entry| entry["type"] == "message");
        let stored = stored.map(|entry| entry["message"].clone());
        let added = self.added.iter().map(
            |(role, words)| json!({ "role": role, "content": [{ "type": "text", "text": words }] }),
        );
        for (at, message) in stored.chain(added).enumerate() {
            let (role, content) = goose_content(&message);
            let usage = json!({ "userVisible": true, "agentVisible": true,
                "inference": { "provider": "p", "requestedModel": "m" },
                "usage": { "inputTokens": 10, "outputTokens": 2, "totalTokens": 12 } });
            let row = "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let is_answer = role == "assistant" && at + self.added.len() > 0;
            let metadata = match is_answer {
                true => usage,
                false => json!({ "userVisible": true, "agentVisible": true }),
            };
            database
                .execute(
                    row,
                    rusqlite::params![
                        format!("{native}-{at}"),
                        native,
                        role,
                        content.to_string(),
                        1_800_000_000,
                        metadata.to_string()
                    ],
                )
                .unwrap();
        }
    }
}

/// The role and the content of a pi message, in goose's form.
fn goose_content(message: &Value) -> (&'static str, Value) {
    let blocks = match &message["content"] {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        blocks => blocks.as_array().unwrap().clone(),
    };
    if message["role"] == "toolResult" {
        let result = json!({ "content": blocks, "isError": message["isError"] });
        let response = json!({ "type": "toolResponse", "id": message["toolCallId"],
            "toolResult": { "status": "success", "value": result } });
        return ("user", json!([response]));
    }
    let blocks = blocks.into_iter().map(|block| match block["type"].as_str() {
        Some("toolCall") => json!({ "type": "toolRequest", "id": block["id"], "toolCall": {
            "status": "success", "value": { "name": block["name"], "arguments": block["arguments"] } } }),
        _ => block,
    });
    let role = match message["role"] == "user" {
        true => "user",
        false => "assistant",
    };
    (role, blocks.collect())
}
