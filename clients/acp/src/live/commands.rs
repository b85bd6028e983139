//! The commands that the relay answers, and the messages with which it announces and answers them.

use super::params::Setup;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Tree,
    Back,
    Branches,
    Go,
    Label,
    Undo,
}

/// A command, as the editor's list of commands shows it.
struct Offer {
    verb: Verb,
    name: &'static str,
    description: &'static str,
    hint: Option<&'static str>,
}

const OFFERS: [Offer; 6] = [
    Offer {
        verb: Verb::Tree,
        name: "tree",
        description: "Show the prompts of this conversation, with all branches",
        hint: None,
    },
    Offer {
        verb: Verb::Back,
        name: "back",
        description: "Go back before the last prompt, or before the last N prompts",
        hint: Some("number of prompts"),
    },
    Offer {
        verb: Verb::Branches,
        name: "branches",
        description: "List the branches of this conversation",
        hint: None,
    },
    Offer {
        verb: Verb::Go,
        name: "go",
        description: "Continue after a prompt and its answer, for instance on another branch",
        hint: Some("number of the prompt in /tree, or a label"),
    },
    Offer {
        verb: Verb::Label,
        name: "label",
        description: "Label this position of the conversation; without a text, remove the label",
        hint: Some("text"),
    },
    Offer {
        verb: Verb::Undo,
        name: "undo",
        description: "Undo the last prompt; if its files are saved, they can be restored too",
        hint: Some("“files” or “conversation”"),
    },
];
/// The prefix of a command if the agent has a command of the same name.
const OWN: &str = "tl-";

/// The marks of avante.nvim around a prompt.
const MARKS: (&str, &str) = ("<previous_user_message>", "</previous_user_message>");

/// The prefix of the session ids that stand for branches.
const BRANCH: &str = "treelined:";

/// For each command of the relay, whether the agent has a command of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clashes([bool; OFFERS.len()]);

impl Clashes {
    fn names(self) -> impl Iterator<Item = (&'static Offer, String)> {
        OFFERS.iter().zip(self.0).map(|(offer, clashes)| {
            let own = if clashes { OWN } else { "" };
            (offer, format!("{own}{}", offer.name))
        })
    }
}

/// A command in the agent's list.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// A command that an editor has sent as a prompt.
#[derive(Debug)]
pub(crate) struct Command {
    /// The id of the prompt's request.
    pub(crate) id: Box<RawValue>,
    /// The editor's id of the session.
    pub(crate) session: String,
    pub(crate) verb: Verb,
    /// The text after the name.
    pub(crate) words: String,
    /// The question that the words answer.
    pub(crate) asked: Option<Asked>,
}

/// The question whether the files are restored too.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The id of the tool call that shows the question in the editor.
    pub(crate) call: String,
    /// The id of the prompt. The conversation goes back before it.
    pub(crate) about: String,
    /// The changes of files that the question shows.
    pub(crate) preview: String,
}

impl Command {
    /// The same prompt with another verb, other words and another question.
    pub(crate) fn with(&self, verb: Verb, words: &str, asked: Option<Asked>) -> Command {
        Command {
            id: self.id.clone(),
            session: self.session.clone(),
            verb,
            words: words.to_owned(),
            asked,
        }
    }
}

/// Work that the relay gives to the recorder's thread.
#[derive(Debug)]
pub(crate) enum Job {
    Command(Command),
    Load(Load),
    /// The agent's answer to `session/list`.
    Sessions(Vec<u8>),
    List(List),
    Fork(Fork),
}

/// An editor's request for a list of sessions. The relay answers it if the agent cannot list sessions.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) id: Box<RawValue>,
    /// Only sessions of this directory are listed.
    pub(crate) cwd: Option<String>,
    pub(crate) cursor: Option<String>,
}

/// An editor's request for a copy of a session.
#[derive(Debug)]
pub(crate) struct Fork {
    pub(crate) id: Box<RawValue>,
    /// The editor's id of the session.
    pub(crate) session: String,
    /// The message at which the copy ends. `None` means the last message.
    pub(crate) message: Option<String>,
    pub(crate) setup: Setup,
}

/// An editor's request to open a session that stands for a branch, or that the agent cannot load.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) id: Box<RawValue>,
    /// The editor's id of the session.
    pub(crate) session: String,
    /// The session of treelined that has the branch, and the tip of the branch.
    pub(crate) branch: Option<(String, String)>,
    /// Whether the editor wants the history.
    pub(crate) replays: bool,
    pub(crate) setup: Setup,
}

/// The session id that stands for a branch.
pub(crate) fn branch_id(tree: &str, entry: &str) -> String {
    format!("{BRANCH}{entry}:{tree}")
}

/// The session and the tip of the branch that a session id stands for.
pub(crate) fn branch_of(session: &str) -> Option<(&str, &str)> {
    let (entry, tree) = session.strip_prefix(BRANCH)?.split_once(':')?;
    Some((tree, entry))
}

#[derive(Deserialize)]
struct Prompt {
    prompt: Vec<Value>,
}

/// The text of a block; `None` if the block is not a text.
fn text(block: &Value) -> Option<&str> {
    let kind = block.get("type")?.as_str()?;
    block.get("text")?.as_str().filter(|_| kind == "text")
}

/// The text that the person has typed, if the prompt has nothing else from the person. avante.nvim puts the prompt
/// between marks, and adds blocks: links to files, earlier prompts between the same marks, and a sentence about them.
fn typed(prompt: &[Value]) -> Option<&str> {
    if let [block] = prompt {
        return text(block);
    }
    let is_link =
        |block: &Value| block.get("type").and_then(Value::as_str) == Some("resource_link");
    let texts = prompt.iter().filter(|block| !is_link(block)).map(text);
    let texts = texts.collect::<Option<Vec<_>>>()?;
    let [now, earlier @ .., about] = &texts[..] else {
        return None;
    };
    let is_marked = |text: &&str| text.starts_with(MARKS.0) && text.ends_with(MARKS.1);
    let is_avante = earlier.iter().all(is_marked) && about.starts_with("<system_context>");
    now.strip_prefix(MARKS.0)?
        .strip_suffix(MARKS.1)
        .filter(|_| is_avante)
}

/// The command in a prompt. A command is one line without attachments.
pub(crate) fn read(params: &str, clashes: Clashes) -> Option<(Verb, String)> {
    // Most prompts are not commands, and may be long: they are not parsed.
    let begins = ["\"/", "\"\\/", "_message>/", "_message>\\/"];
    if !begins.iter().any(|begin| params.contains(begin)) {
        return None;
    }
    let Prompt { prompt } = serde_json::from_str(params).ok()?;
    let text = typed(&prompt)?.trim_end();
    let line = text.strip_prefix('/').filter(|line| !line.contains('\n'))?;
    let (name, words) = match line.split_once(char::is_whitespace) {
        Some((name, words)) => (name, words.trim()),
        None => (line, ""),
    };
    let (offer, _) = clashes.names().find(|(_, own)| own == name)?;
    Some((offer.verb, words.to_owned()))
}

/// Finds the commands in the agent's list that have the name of a command of the relay.
pub(crate) fn clashes(agents: &RawValue) -> Clashes {
    let agents: Vec<Named> = serde_json::from_str(agents.get()).unwrap_or_default();
    Clashes(OFFERS.each_ref().map(|offer| {
        let mut names = agents.iter().map(|agents| agents.name.as_str());
        names.any(|name| name == offer.name)
    }))
}

/// The editor's list of commands: the relay's commands, then the agent's. `None` if the agent's value is not a list.
pub(crate) fn merged(agents: &RawValue, clashes: Clashes) -> Option<Vec<u8>> {
    let rest = agents.get().strip_prefix('[')?;
    let ours = Value::from_iter(own(clashes)).to_string();
    let ours = ours.strip_suffix(']')?;
    let comma = if rest.trim_start().starts_with(']') {
        ""
    } else {
        ","
    };
    Some([ours, comma, rest].concat().into_bytes())
}

fn own(clashes: Clashes) -> impl Iterator<Item = Value> {
    clashes.names().map(|(offer, name)| {
        let mut command = json!({ "name": name, "description": offer.description });
        if let (Some(hint), Value::Object(members)) = (offer.hint, &mut command) {
            members.insert("input".to_owned(), json!({ "hint": hint }));
        }
        command
    })
}

/// A line that announces the commands of `list`, which already has the relay's commands. Without a list, the line
/// announces only the relay's commands.
pub(crate) fn announcement(session: &str, list: Option<&str>) -> Vec<u8> {
    let list = list.and_then(|list| serde_json::from_str(list).ok());
    let commands = list.unwrap_or_else(|| Value::from_iter(own(Clashes::default())));
    let update =
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
    update_line(session, &update)
}

pub(crate) fn update_line(session: &str, update: &Value) -> Vec<u8> {
    let params = json!({ "sessionId": session, "update": update });
    line(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
}

/// A line that sends a text to the editor as a message of the agent.
pub(crate) fn said(session: &str, text: &str) -> Vec<u8> {
    let content = json!({ "type": "text", "text": text });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    update_line(session, &update)
}

/// Lines that answer a command.
pub(crate) fn answer(command: &Command, text: &str) -> Vec<u8> {
    let mut lines = asked(command, "completed");
    lines.extend(said(&command.session, text));
    lines.extend(ended(command, "end_turn"));
    lines
}

/// Lines that end a command whose question the user has cancelled.
pub(crate) fn given_up(command: &Command) -> Vec<u8> {
    let mut lines = asked(command, "failed");
    lines.extend(ended(command, "cancelled"));
    lines
}

/// The line that ends the tool call that shows a question in the editor.
fn asked(command: &Command, status: &str) -> Vec<u8> {
    let call = command.asked.as_ref().map(|asked| &asked.call);
    let update =
        |call| json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": status });
    call.map(|call| update_line(&command.session, &update(call)))
        .unwrap_or_default()
}

fn ended(command: &Command, reason: &str) -> Vec<u8> {
    let id = &command.id;
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"stopReason\":\"{reason}\"}}}}\n")
        .into_bytes()
}

/// A line that answers a request of the editor.
pub(crate) fn done(id: &RawValue, result: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into_bytes()
}

/// A line that refuses a request of the editor.
pub(crate) fn refusal(id: &RawValue, text: &str) -> Vec<u8> {
    let error = json!({ "code": -32603, "message": text });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes()
}

/// A line that answers the agent's request for permission with "cancelled".
pub(crate) fn cancelled(id: &str) -> String {
    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{outcome}}}\n")
}

/// A line that answers a request of the agent in a session that the conversation has left.
pub(crate) fn unanswered(id: &RawValue, method: &str) -> Vec<u8> {
    match method {
        "session/request_permission" => cancelled(id.get()).into_bytes(),
        _ => refusal(id, "the conversation has left this session"),
    }
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(blocks: &Value) -> Option<(Verb, String)> {
        let params = json!({ "sessionId": "s", "prompt": blocks }).to_string();
        read(&params, Clashes::default())
    }

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    #[test]
    fn a_command_is_one_line_and_nothing_with_it() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let is = |verb, words: &str| Some((verb, words.to_owned()));
        assert_eq!(prompt(&json!([text("/tree")])), is(Verb::Tree, ""));
        assert_eq!(prompt(&json!([text("/tree \n")])), is(Verb::Tree, ""));
        let labelled = prompt(&json!([text("/label  two ideas ")]));
        assert_eq!(labelled, is(Verb::Label, "two ideas"));
        let escaped = r#"{"prompt":[{"type":"text","text":"\/tree"}]}"#;
        assert_eq!(read(escaped, Clashes::default()), is(Verb::Tree, ""));
        let file = json!({ "type": "resource_link", "name": "a", "uri": "file:///a" });
        for other in [
            json!([text("/trees")]),
            json!([text("tree")]),
            json!([text(" /tree")]),
            json!([text("/tree\nand more")]),
            json!([text("/label a\nb")]),
            json!([text("/tree"), file]),
            json!([file]),
            json!([]),
            json!("/tree"),
        ] {
            assert_eq!(prompt(&other), None, "{other}");
        }
    }

    /// avante.nvim sends each prompt with the file that is open, with earlier prompts, and with a sentence. So a
    /// command in such a prompt was once not found.
    #[test]
    fn a_command_is_found_among_the_blocks_that_avante_adds() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let said = |said: &str| {
            text(&format!(
                "<previous_user_message>{said}</previous_user_message>"
            ))
        };
        let about = text("<system_context>Continuing from previous session</system_context>");
        let file = json!({ "type": "resource_link", "name": "a", "uri": "file:///a" });
        let go = Some((Verb::Go, "2".to_owned()));
        let whole = json!([file, said("/go 2"), said("one"), said("/tree"), about]);
        assert_eq!(prompt(&whole), go);
        assert_eq!(prompt(&json!([said("/go 2"), about])), go);
        for other in [
            json!([file, said("one"), said("/go 2"), about]),
            json!([file, said("/go 2\nplease"), about]),
            json!([
                text("<selected_code>x</selected_code>"),
                said("/go 2"),
                about
            ]),
            json!([said("/go 2"), text("and more"), about]),
            json!([said("/go 2"), said("one")]),
            json!([said("/go 2"), { "type": "image" }, about]),
            json!([said("/go 2")]),
        ] {
            assert_eq!(prompt(&other), None, "{other}");
        }
    }

    #[test]
    fn ours_come_first_and_have_another_name_where_the_agent_has_it() {
        let agents = raw(&json!([{ "name": "label", "description": "its own", "x": 1 }]));
        let clashes = clashes(&agents);
        let all: Value = serde_json::from_slice(&merged(&agents, clashes).unwrap()).unwrap();
        let names: Vec<_> = all.as_array().unwrap().iter().collect();
        let names: Vec<_> = names.iter().map(|command| &command["name"]).collect();
        assert_eq!(
            names,
            [
                "tree", "back", "branches", "go", "tl-label", "undo", "label"
            ]
        );
        assert_eq!(all[6]["x"], 1);
        let params = |text: &str| {
            let prompt = json!([{ "type": "text", "text": text }]);
            json!({ "prompt": prompt }).to_string()
        };
        let own = read(&params("/tl-label x"), clashes);
        assert_eq!(own, Some((Verb::Label, "x".to_owned())));
        assert_eq!(read(&params("/label x"), clashes), None);

        let none = raw(&json!([]));
        let all: Value =
            serde_json::from_slice(&merged(&none, Clashes::default()).unwrap()).unwrap();
        assert_eq!(all.as_array().unwrap().len(), 6);
        assert!(merged(&raw(&json!("none")), Clashes::default()).is_none());
    }
}
