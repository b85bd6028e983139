//! The capabilities that the editor and the agent promise in `initialize`. The relay also promises capabilities that
//! the agent lacks. Pure.

use super::message::{Message, replaced, span};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The capabilities and the name of the agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// Whether the agent has answered `initialize`.
    pub(crate) is_known: bool,
    pub(crate) name: String,
    pub(crate) loads: bool,
    pub(crate) lists: bool,
    pub(crate) forks: bool,
    pub(crate) closes: bool,
    pub(crate) deletes: bool,
    /// Whether the agent takes a text of the relay as a resource, separate from the prompt.
    pub(crate) embeds: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Initialized {
    agent_info: Info,
    agent_capabilities: Capabilities,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Capabilities {
    load_session: bool,
    prompt_capabilities: PromptCapabilities,
    session_capabilities: SessionCapabilities,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PromptCapabilities {
    embedded_context: bool,
}

/// A capability is promised by an object; `null` does not promise it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionCapabilities {
    list: Option<Value>,
    fork: Option<Value>,
    close: Option<Value>,
    delete: Option<Value>,
}

/// The params of the editor's `initialize`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Hello {
    client_capabilities: ClientCapabilities,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClientCapabilities {
    elicitation: Option<Elicitation>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Elicitation {
    form: Option<Value>,
}

impl About {
    /// Reads the answer to `initialize`.
    pub(crate) fn read(message: &Message<'_>) -> About {
        let given: Initialized = message.result().unwrap_or_default();
        let capabilities = given.agent_capabilities;
        let sessions = capabilities.session_capabilities;
        // Gemini CLI joins the address of a resource and the first word of the prompt to one word.
        let is_gemini = given.agent_info.name.to_lowercase().contains("gemini");
        About {
            is_known: true,
            name: given.agent_info.name,
            loads: capabilities.load_session,
            lists: sessions.list.is_some(),
            forks: sessions.fork.is_some(),
            closes: sessions.close.is_some(),
            deletes: sessions.delete.is_some(),
            embeds: capabilities.prompt_capabilities.embedded_context && !is_gemini,
        }
    }

    /// The answer to `initialize`, with the capabilities that the relay adds. `None` if the agent has all of them.
    pub(crate) fn promise(&self, line: &[u8], message: &Message<'_>) -> Option<Vec<u8>> {
        if self.loads && self.lists && self.forks {
            return None;
        }
        let result: &RawValue = message.result()?;
        let mut answer: Value = serde_json::from_str(result.get()).ok()?;
        let capabilities = member(&mut answer, "agentCapabilities")?;
        capabilities.insert("loadSession".to_owned(), json!(true));
        let capabilities = answer.get_mut("agentCapabilities")?;
        let sessions = member(capabilities, "sessionCapabilities")?;
        for (name, is_promised) in [("list", self.lists), ("fork", self.forks)] {
            if !is_promised {
                sessions.insert(name.to_owned(), json!({}));
            }
        }
        let answer = answer.to_string();
        Some(replaced(line, span(line, result), answer.as_bytes()))
    }
}

/// The object that is the member `name`. If this member is missing or null, it becomes an empty object.
fn member<'a>(of: &'a mut Value, name: &str) -> Option<&'a mut serde_json::Map<String, Value>> {
    let members = of.as_object_mut()?;
    let value = members.entry(name).or_insert_with(|| json!({}));
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

/// Whether the editor promises forms in its `initialize`.
pub(crate) fn has_forms(message: &Message<'_>) -> bool {
    let hello: Hello = message.params().unwrap_or_default();
    let elicitation = hello.client_capabilities.elicitation;
    elicitation.is_some_and(|elicitation| elicitation.form.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promised(result: &Value) -> Option<Value> {
        let line = json!({ "id": 1, "result": result, "x": 1e300 }).to_string();
        let message = Message::read(line.as_bytes()).unwrap();
        let promised = About::read(&message).promise(line.as_bytes(), &message)?;
        Some(serde_json::from_slice(&promised).unwrap())
    }

    /// Gemini CLI joins the address of the text and the first word of the prompt to one word.
    #[test]
    fn gemini_cli_gets_no_resources() {
        for (name, embeds) in [("gemini-cli", false), ("other", true)] {
            let result = json!({ "agentInfo": { "name": name },
                "agentCapabilities": { "promptCapabilities": { "embeddedContext": true } } });
            let line = json!({ "id": 1, "result": result }).to_string();
            let message = Message::read(line.as_bytes()).unwrap();
            assert_eq!(About::read(&message).embeds, embeds, "{name}");
        }
    }

    #[test]
    fn the_editor_is_promised_what_the_agent_lacks_and_nothing_else_changes() {
        let all = json!({ "loadSession": true, "sessionCapabilities": { "list": {}, "fork": {}, "resume": null } });
        assert_eq!(promised(&json!({ "agentCapabilities": all })), None);
        let none = promised(&json!({ "protocolVersion": 1 })).unwrap();
        assert_eq!(none["x"], 1e300);
        assert_eq!(
            none["result"],
            json!({ "protocolVersion": 1, "agentCapabilities": {
                "loadSession": true, "sessionCapabilities": { "list": {}, "fork": {} } } })
        );
        let some = json!({ "loadSession": false, "mcpCapabilities": { "http": true },
            "sessionCapabilities": { "list": { "y": 1 }, "fork": null } });
        let some = promised(&json!({ "agentCapabilities": some })).unwrap();
        assert_eq!(
            some["result"]["agentCapabilities"],
            json!({ "loadSession": true, "mcpCapabilities": { "http": true },
                "sessionCapabilities": { "list": { "y": 1 }, "fork": {} } })
        );
    }
}
