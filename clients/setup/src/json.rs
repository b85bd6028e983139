//! Adds hooks and MCP servers to JSON with comments, and removes them. The rest of the text does not change. The texts
//! are the settings of Claude Code, Gemini CLI and opencode.

use crate::refusal::Refusal;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Value, json};

/// The extensions of JSON that the agents accept: comments, and commas before a closing bracket.
const FORM: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};
/// The events for which setup writes hooks, of Claude Code, Codex and Gemini CLI.
const EVENTS: [&str; 6] = [
    "Stop",
    "SessionEnd",
    "SessionStart",
    "PostToolUseFailure",
    "PostToolUse",
    "AfterTool",
];

/// A hook, in the form that Claude Code, Codex and Gemini CLI share.
pub(crate) struct Hook {
    pub(crate) event: &'static str,
    /// The hook runs for these kinds of the event.
    pub(crate) matcher: Option<&'static str>,
    /// A command of a shell.
    pub(crate) command: String,
    /// The time after which the agent ends the hook, in the unit of the agent.
    pub(crate) timeout: u64,
}

impl Hook {
    /// The member of the event's array.
    fn group(&self) -> Value {
        let hook = json!({"type": "command", "command": self.command, "timeout": self.timeout});
        match self.matcher {
            Some(matcher) => json!({"matcher": matcher, "hooks": [hook]}),
            None => json!({"hooks": [hook]}),
        }
    }
}

/// The value of a file that has only these hooks.
pub(crate) fn hooks(hooks: &[Hook]) -> Value {
    let events = hooks
        .iter()
        .map(|hook| (hook.event.to_owned(), json!([hook.group()])));
    json!({"hooks": events.collect::<serde_json::Map<_, _>>()})
}

/// How the piece in a text compares with the piece that setup would write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Missing,
    /// Setup would write the same piece.
    Same,
    /// An earlier setup has written the piece.
    Older,
    /// A person has written or changed the piece.
    Theirs,
}

/// Adds hooks.
pub(crate) fn add_hooks(text: &str, hooks: &[Hook]) -> Result<String, Refusal> {
    let mut expected = parse(text)?;
    for hook in hooks {
        let groups = member(&mut expected, &["hooks", hook.event], json!([]))?;
        let groups = groups.as_array_mut().ok_or_else(other_form)?;
        groups.push(hook.group());
    }
    edited(text, &expected, |root| {
        let object = root.object_value_or_create()?;
        let object = object.object_value_or_create("hooks")?;
        for hook in hooks {
            let groups = object.array_value_or_create(hook.event)?;
            groups.append(input(&hook.group()));
        }
        Some(())
    })
}

/// The commands of the hooks of one event.
fn commands(value: &Value, event: &str) -> Vec<String> {
    let groups = value.pointer(&format!("/hooks/{event}"));
    let groups = groups.and_then(Value::as_array).into_iter().flatten();
    let hooks = groups.filter_map(|group| group.get("hooks")?.as_array());
    let commands = hooks
        .flatten()
        .filter_map(|hook| hook.get("command")?.as_str());
    commands.map(str::to_owned).collect()
}

/// Whether the text has a hook for whose command `is_meant` is true.
pub(crate) fn has_command(text: &str, is_meant: &dyn Fn(&str) -> bool) -> bool {
    parse(text).is_ok_and(|value| {
        let mut all = EVENTS.iter().flat_map(|event| commands(&value, event));
        all.any(|command| is_meant(&command))
    })
}

/// Whether the text has these hooks, and no other hooks of treelined. `is_ours` also recognizes hooks of an earlier
/// setup.
pub(crate) fn has_hooks(
    text: &str,
    hooks: &[Hook],
    is_ours: &dyn Fn(&str) -> bool,
) -> Result<Presence, Refusal> {
    let value = parse(text)?;
    let (mut has_any, mut has_all) = (false, true);
    for event in EVENTS {
        let mut ours = commands(&value, event);
        ours.retain(|command| is_ours(command));
        let wanted = hooks.iter().filter(|hook| hook.event == event);
        has_any |= !ours.is_empty();
        has_all &= wanted.map(|hook| &hook.command).eq(&ours);
    }
    Ok(match (has_any, has_all) {
        (_, true) => Presence::Same,
        (true, false) => Presence::Older,
        (false, false) => Presence::Missing,
    })
}

/// Removes the commands of treelined from the hooks, then the objects and lists that are empty.
pub(crate) fn remove_hooks(text: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<String, Refusal> {
    let mut expected = parse(text)?;
    if let Some(hooks) = expected.get_mut("hooks").and_then(Value::as_object_mut) {
        let mut is_emptied = false;
        hooks.retain(|event, groups| {
            let Some(groups) = groups
                .as_array_mut()
                .filter(|_| EVENTS.contains(&event.as_str()))
            else {
                return true;
            };
            let before = groups.len();
            groups.retain_mut(|group| {
                let Some(inner) = group.get_mut("hooks").and_then(Value::as_array_mut) else {
                    return true;
                };
                let count = inner.len();
                inner.retain(|hook| !is_our_hook(hook, is_ours));
                count == inner.len() || !inner.is_empty()
            });
            let stays = groups.len() == before || !groups.is_empty();
            is_emptied |= !stays;
            stays
        });
        if is_emptied && hooks.is_empty() {
            remove_member(&mut expected, "hooks");
        }
    }
    edited(text, &expected, |root| {
        let Some(object) = root.object_value() else {
            return Some(());
        };
        let Some(hooks) = object.object_value("hooks") else {
            return Some(());
        };
        let mut is_emptied = false;
        for event in EVENTS {
            let Some(groups) = hooks.array_value(event) else {
                continue;
            };
            if take_out(&groups, is_ours) && groups.elements().is_empty() {
                hooks.get(event)?.remove();
                is_emptied = true;
            }
        }
        if is_emptied && hooks.properties().is_empty() {
            object.get("hooks")?.remove();
        }
        Some(())
    })
}

/// Removes the commands of treelined from the groups of one event. Returns whether a group was removed.
fn take_out(groups: &CstArray, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let mut is_gone = false;
    for group in groups.elements() {
        let Some(inner) = group.as_object().and_then(|it| it.array_value("hooks")) else {
            continue;
        };
        let ours: Vec<CstNode> = inner
            .elements()
            .into_iter()
            .filter(|hook| {
                let value = hook.to_serde_value();
                value.is_some_and(|hook| is_our_hook(&hook, is_ours))
            })
            .collect();
        match ours.len() {
            0 => {}
            count if count == inner.elements().len() => {
                group.remove();
                is_gone = true;
            }
            _ => ours.into_iter().for_each(CstNode::remove),
        }
    }
    is_gone
}

fn is_our_hook(hook: &Value, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let command = hook.get("command").and_then(Value::as_str);
    command.is_some_and(is_ours)
}

/// Adds a server to the object with this name.
pub(crate) fn add_server(
    text: &str,
    of: &str,
    name: &str,
    server: &Value,
) -> Result<String, Refusal> {
    let mut expected = parse(text)?;
    let servers = member(&mut expected, &[of], json!({}))?;
    let servers = servers.as_object_mut().ok_or_else(other_form)?;
    servers.insert(name.to_owned(), server.clone());
    edited(text, &expected, |root| {
        let servers = root.object_value_or_create()?.object_value_or_create(of)?;
        servers.append(name, input(server));
        Some(())
    })
}

pub(crate) fn has_server(
    text: &str,
    of: &str,
    name: &str,
    server: &Value,
    is_ours: &dyn Fn(&Value) -> bool,
) -> Result<Presence, Refusal> {
    let value = parse(text)?;
    Ok(match value.get(of).and_then(|servers| servers.get(name)) {
        None => Presence::Missing,
        Some(found) if found == server => Presence::Same,
        Some(found) if is_ours(found) => Presence::Older,
        Some(_) => Presence::Theirs,
    })
}

/// Whether the text can be parsed and its object `of` has the member `name`.
pub(crate) fn has_member(text: &str, of: &str, name: &str) -> bool {
    let value = parse(text).unwrap_or_default();
    value.get(of).is_some_and(|of| of.get(name).is_some())
}

/// Removes a server from the object with this name. If the object is then empty, removes the object too.
pub(crate) fn remove_server(
    text: &str,
    of: &str,
    name: &str,
    is_ours: &dyn Fn(&Value) -> bool,
) -> Result<String, Refusal> {
    let mut expected = parse(text)?;
    let Some(servers) = expected.get_mut(of).and_then(Value::as_object_mut) else {
        return Ok(text.to_owned());
    };
    if !servers.get(name).is_some_and(is_ours) {
        return Ok(text.to_owned());
    }
    servers.shift_remove(name);
    if servers.is_empty() {
        remove_member(&mut expected, of);
    }
    edited(text, &expected, |root| {
        let object: CstObject = root.object_value()?;
        let servers = object.object_value(of)?;
        servers.get(name)?.remove();
        if servers.properties().is_empty() {
            object.get(of)?.remove();
        }
        Some(())
    })
}

fn remove_member(value: &mut Value, name: &str) {
    if let Some(object) = value.as_object_mut() {
        object.shift_remove(name);
    }
}

/// Parses a text. An empty text is an empty object.
fn parse(text: &str) -> Result<Value, Refusal> {
    let body = text.strip_prefix(BOM).unwrap_or(text);
    let value = parse_to_serde_value::<Value>(body, &FORM)
        .map_err(|error| Refusal::new(format!("it cannot be parsed: {error}")))?;
    match value {
        Value::Null => Ok(json!({})),
        Value::Object(_) => Ok(value),
        _ => Err(other_form()),
    }
}

const BOM: char = '\u{feff}';

/// The member at a path. Missing members are made; the last one gets the value `last`.
fn member<'v>(value: &'v mut Value, path: &[&str], last: Value) -> Result<&'v mut Value, Refusal> {
    let mut at = value;
    for (depth, name) in path.iter().enumerate() {
        let object = at.as_object_mut().ok_or_else(other_form)?;
        let missing = match depth + 1 == path.len() {
            true => last.clone(),
            false => json!({}),
        };
        at = object.entry(*name).or_insert(missing);
    }
    Ok(at)
}

fn other_form() -> Refusal {
    Refusal::new("it has another form than its tool documents")
}

/// Applies `edit` to a text. Fails unless the result has the expected value.
fn edited(
    text: &str,
    expected: &Value,
    edit: impl FnOnce(&CstRootNode) -> Option<()>,
) -> Result<String, Refusal> {
    let (bom, body) = match text.strip_prefix(BOM) {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let root = CstRootNode::parse(body, &FORM)
        .map_err(|error| Refusal::new(format!("it cannot be parsed: {error}")))?;
    edit(&root).ok_or_else(other_form)?;
    let new = format!("{bom}{root}");
    match parse(&new)? == *expected {
        true => Ok(new),
        false => Err(other_form()),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter();
            CstInputValue::Object(
                members
                    .map(|(name, value)| (name.clone(), input(value)))
                    .collect(),
            )
        }
    }
}
