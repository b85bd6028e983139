//! The names of tools and arguments in each agent, for the tools that all agents have. Other arguments keep their
//! names: agents accept any names in a history.

use super::path::Call;
use serde_json::{Map, Value};
use treelined_core::agent::Tool;
use treelined_core::tools::common_name;

/// A tool of an agent: its purpose, as in [`common_name`], its name, and the name of each argument by meaning.
type Row = (
    &'static str,
    &'static str,
    &'static [(Meaning, &'static str)],
);

/// The meaning of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Command,
    Path,
    Content,
    Old,
    New,
    Pattern,
    Url,
}

use Meaning::{Command, Content, New, Old, Path, Pattern, Url};

/// For each meaning, the names of such arguments in all agents.
const ARGUMENTS: &[(Meaning, &[&str])] = &[
    (Command, &["command", "cmd", "script"]),
    (
        Path,
        &[
            "file_path",
            "filePath",
            "absolute_path",
            "target_file",
            "filename",
            "path",
            "dir_path",
            "directory",
        ],
    ),
    (Content, &["content", "file_text", "contents", "text"]),
    (Old, &["old_string", "oldString", "oldText", "old_str"]),
    (New, &["new_string", "newString", "newText", "new_str"]),
    (Pattern, &["pattern", "regex", "glob", "query"]),
    (Url, &["url"]),
];

const CLAUDE_CODE: &[Row] = &[
    ("bash", "Bash", &[(Command, "command")]),
    ("read", "Read", &[(Path, "file_path")]),
    (
        "write",
        "Write",
        &[(Path, "file_path"), (Content, "content")],
    ),
    (
        "edit",
        "Edit",
        &[
            (Path, "file_path"),
            (Old, "old_string"),
            (New, "new_string"),
        ],
    ),
    ("grep", "Grep", &[(Pattern, "pattern")]),
    ("glob", "Glob", &[(Pattern, "pattern")]),
    ("webfetch", "WebFetch", &[(Url, "url")]),
];
const CODEX: &[Row] = &[("bash", "exec_command", &[(Command, "cmd")])];
const OPENCODE: &[Row] = &[
    ("bash", "bash", &[(Command, "command")]),
    ("read", "read", &[(Path, "filePath")]),
    (
        "write",
        "write",
        &[(Path, "filePath"), (Content, "content")],
    ),
    (
        "edit",
        "edit",
        &[(Path, "filePath"), (Old, "oldString"), (New, "newString")],
    ),
    ("grep", "grep", &[(Pattern, "pattern")]),
    ("glob", "glob", &[(Pattern, "pattern")]),
    ("ls", "list", &[(Path, "path")]),
    ("webfetch", "webfetch", &[(Url, "url")]),
];
const GEMINI: &[Row] = &[
    ("bash", "run_shell_command", &[(Command, "command")]),
    ("read", "read_file", &[(Path, "file_path")]),
    (
        "write",
        "write_file",
        &[(Path, "file_path"), (Content, "content")],
    ),
    (
        "edit",
        "replace",
        &[
            (Path, "file_path"),
            (Old, "old_string"),
            (New, "new_string"),
        ],
    ),
    ("grep", "grep_search", &[(Pattern, "pattern")]),
    ("glob", "glob", &[(Pattern, "pattern")]),
    ("ls", "list_directory", &[(Path, "dir_path")]),
];
const GOOSE: &[Row] = &[("bash", "shell", &[(Command, "command")])];
const PI: &[Row] = &[
    ("bash", "bash", &[(Command, "command")]),
    ("read", "read", &[(Path, "path")]),
    ("write", "write", &[(Path, "path"), (Content, "content")]),
    (
        "edit",
        "edit",
        &[(Path, "path"), (Old, "oldText"), (New, "newText")],
    ),
    ("grep", "grep", &[(Pattern, "pattern")]),
    ("glob", "find", &[(Pattern, "pattern")]),
    ("ls", "ls", &[(Path, "path")]),
];

fn rows(tool: Tool) -> &'static [Row] {
    match tool {
        Tool::ClaudeCode => CLAUDE_CODE,
        Tool::Codex => CODEX,
        Tool::Opencode => OPENCODE,
        Tool::Gemini => GEMINI,
        Tool::Goose => GOOSE,
        Tool::Pi => PI,
        // Conversations cannot be handed over to these tools.
        Tool::QwenCode | Tool::ChatGpt | Tool::ClaudeAi => &[],
        Tool::CopilotCli | Tool::VscodeChat | Tool::Cline | Tool::RooCode | Tool::KiloCode => &[],
    }
}

/// Gives a call the names that an agent uses. Returns whether the agent has the tool. If the call lacks an argument
/// that the agent's tool needs, the call is not changed.
pub(super) fn rename(call: &mut Call, tool: Tool) -> bool {
    let rows = rows(tool);
    let purpose = common_name(&call.name);
    let Some((_, name, needed)) = rows.iter().find(|(of, ..)| Some(*of) == purpose) else {
        return false;
    };
    let Some(arguments) = renamed(&call.arguments, needed) else {
        return call.name == *name;
    };
    call.arguments = arguments;
    (*name).clone_into(&mut call.name);
    true
}

/// The arguments with the agent's names, in the agent's order; `None` if one is missing.
fn renamed(
    arguments: &Map<String, Value>,
    needed: &[(Meaning, &'static str)],
) -> Option<Map<String, Value>> {
    let mut given = Vec::with_capacity(needed.len());
    for (meaning, name) in needed {
        given.push((argument(arguments, *meaning)?, *name));
    }
    let mut renamed = Map::new();
    for (key, value) in arguments {
        match given.iter().find(|(known, _)| known == key) {
            Some((_, "command" | "cmd")) => {
                let name = given.iter().find(|(known, _)| known == key)?.1;
                renamed.insert(name.to_owned(), Value::String(command(value)?));
            }
            Some((_, name)) => {
                renamed.insert((*name).to_owned(), value.clone());
            }
            None => {
                renamed.insert(key.clone(), value.clone());
            }
        }
    }
    Some(renamed)
}

/// The name in `arguments` of the argument that has this meaning.
fn argument(arguments: &Map<String, Value>, meaning: Meaning) -> Option<&'static str> {
    let (_, names) = ARGUMENTS.iter().find(|(known, _)| *known == meaning)?;
    let mut names = names.iter();
    names.find(|name| arguments.contains_key(**name)).copied()
}

/// A command as one text. `["bash", "-lc", "…"]` becomes the command that the shell runs.
fn command(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
            match *words {
                [] => None,
                [_, "-lc" | "-c", script] => Some(script.to_owned()),
                _ => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}
