//! The pieces that setup puts into a file, and their removal.

use crate::agent::Agent;
use crate::json::{self, Hook, Presence};
use crate::program::{self, MARK, Program};
use crate::refusal::Refusal;
use crate::toml::Codex;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The name of the MCP server.
const NAME: &str = "treelined";

/// A piece of a file.
#[derive(Clone)]
pub(crate) enum Piece {
    /// The hooks of Claude Code, Codex or Gemini CLI, with or without the hooks that recall.
    Hooks { agent: Agent, recalls: bool },
    /// Codex's `notify` and server.
    Codex,
    /// An MCP server in the object with this name.
    Server {
        object: &'static str,
        server: Server,
    },
    /// goose's extension: YAML, of which only the lines are shown.
    Extension,
    /// A file of our own, with this text.
    Own(String),
    /// opencode's plugin, with or without the hooks that recall. It is a file of our own.
    Plugin { recalls: bool },
    /// Pieces of one file in JSON.
    Several(Vec<Piece>),
    /// A link to this path.
    Link(PathBuf),
}

/// The seconds after which an agent ends a hook. Our hooks take less than a second, and a recall ends after four
/// seconds.
const TIMEOUT: u64 = 10;

/// The forms of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server {
    /// The form of Claude Code.
    Stdio,
    /// The form of Gemini CLI.
    Plain,
    /// The form of opencode.
    Local,
}

impl Piece {
    /// The piece for this text. If the text has hooks that recall, the piece has them too: they stay until setup
    /// removes everything.
    pub(crate) fn for_text(&self, text: &str) -> Self {
        match self {
            Self::Hooks { agent, .. } if json::has_command(text, &program::is_recall_command) => {
                Self::Hooks {
                    agent: *agent,
                    recalls: true,
                }
            }
            Self::Plugin { .. } if program::is_script_that_recalls(text) => {
                Self::Plugin { recalls: true }
            }
            Self::Several(pieces) => {
                let pieces = pieces.iter().map(|piece| piece.for_text(text));
                Self::Several(pieces.collect())
            }
            other => other.clone(),
        }
    }

    /// The hooks of this piece; none if it is another kind of piece.
    fn hooks(&self, program: &Program) -> Vec<Hook> {
        let Self::Hooks { agent, recalls } = *self else {
            return Vec::new();
        };
        let hook = |event, matcher, command: String| Hook {
            event,
            matcher,
            command,
            timeout: match agent {
                // Milliseconds.
                Agent::Gemini => TIMEOUT * 1_000,
                _ => TIMEOUT,
            },
        };
        let mut hooks = Vec::new();
        if agent == Agent::ClaudeCode {
            let command = || program.hook_command(agent.name());
            hooks.push(hook("Stop", None, command()));
            hooks.push(hook("SessionEnd", None, command()));
        }
        if recalls {
            // A conversation that continues knows its past. A matcher of Gemini CLI must have the whole kind.
            let (begins, failure, tool) = match agent {
                Agent::Gemini => (None, "AfterTool", "run_shell_command"),
                Agent::Codex => (Some("startup|clear"), "PostToolUse", "Bash"),
                _ => (Some("startup|clear"), "PostToolUseFailure", "Bash"),
            };
            hooks.push(hook("SessionStart", begins, program.recall_command()));
            hooks.push(hook(failure, Some(tool), program.recall_command()));
        }
        hooks
    }

    /// Whether this setup adds the piece. If all hooks of an agent are for recalling, they are added only with
    /// `--recall`.
    fn is_wanted(&self, program: &Program) -> bool {
        !matches!(self, Self::Hooks { .. }) || !self.hooks(program).is_empty()
    }

    /// Whether the text has the piece, and which form of it.
    pub(crate) fn presence(&self, program: &Program, text: &str) -> Result<Presence, Refusal> {
        match self {
            Self::Hooks { .. } => {
                json::has_hooks(text, &self.hooks(program), &is_our_hook(program))
            }
            Self::Codex => codex(program).presence(text),
            Self::Server { object, server } => {
                let own = server.value(program);
                json::has_server(text, object, NAME, &own, &is_server)
            }
            Self::Extension => match text.contains(NAME) {
                true => Ok(Presence::Same),
                false => Err(Refusal::new("YAML is not edited")),
            },
            Self::Own(own) => own_file(own, text),
            Self::Plugin { recalls } => own_file(&program.plugin(*recalls), text),
            Self::Several(pieces) => {
                let wanted = pieces.iter().filter(|piece| piece.is_wanted(program));
                let all = wanted.map(|piece| piece.presence(program, text));
                let all = all.collect::<Result<Vec<_>, _>>()?;
                let has = |presence| all.contains(&presence);
                // If one of our hooks is there and another one is missing, an earlier setup has written them.
                Ok(match (has(Presence::Missing), has(Presence::Same)) {
                    _ if has(Presence::Older) => Presence::Older,
                    (true, true) => Presence::Older,
                    (true, false) => Presence::Missing,
                    (false, _) => Presence::Same,
                })
            }
            Self::Link(_) => Ok(Presence::Missing),
        }
    }

    /// Adds the piece to a text that does not have it.
    pub(crate) fn add(&self, program: &Program, text: &str) -> Result<String, Refusal> {
        match self {
            Self::Hooks { .. } => json::add_hooks(text, &self.hooks(program)),
            Self::Codex => codex(program).add(text),
            Self::Server { object, server } => {
                json::add_server(text, object, NAME, &server.value(program))
            }
            Self::Own(own) => Ok(own.clone()),
            Self::Plugin { recalls } => Ok(program.plugin(*recalls)),
            Self::Several(pieces) => pieces.iter().try_fold(text.to_owned(), |text, piece| {
                match piece.presence(program, &text)? {
                    Presence::Missing => piece.add(program, &text),
                    _ => Ok(text),
                }
            }),
            Self::Extension | Self::Link(_) => Err(Refusal::new("it is not edited")),
        }
    }

    /// The text without the piece; `None` if the whole file is ours and can be removed.
    pub(crate) fn remove(&self, program: &Program, text: &str) -> Result<Option<String>, Refusal> {
        let without = match self {
            Self::Hooks { .. } => json::remove_hooks(text, &is_our_hook(program))?,
            Self::Codex => codex(program).remove(text)?,
            Self::Server { object, server } => {
                let own = server.value(program);
                let is_ours = |found: &Value| is_server(found) || *found == own;
                json::remove_server(text, object, NAME, &is_ours)?
            }
            Self::Own(_) | Self::Plugin { .. } if text.contains(MARK) => return Ok(None),
            Self::Several(pieces) => {
                let start = Some(text.to_owned());
                return pieces.iter().try_fold(start, |text, piece| match text {
                    Some(text) => piece.remove(program, &text),
                    None => Ok(None),
                });
            }
            Self::Extension | Self::Own(_) | Self::Plugin { .. } | Self::Link(_) => text.to_owned(),
        };
        Ok(Some(without))
    }

    /// The step that a person must do after the text has the piece: the reason, and the lines.
    pub(crate) fn advice(&self, program: &Program, text: &str) -> Option<(String, String)> {
        match self {
            Self::Codex if codex(program).has_another_notify(text) => {
                let command = program.hook_command(Agent::Codex.name());
                let reason = "it has a `notify` already, and Codex knows only one. Have its program \
                              call this, with its own last argument for JSON";
                Some((reason.to_owned(), format!("{command} JSON")))
            }
            Self::Hooks {
                agent: Agent::Codex,
                recalls: true,
            } => {
                let reason = "Codex runs a hook once you have reviewed it: start it and enter this";
                Some((reason.to_owned(), "/hooks".to_owned()))
            }
            _ => None,
        }
    }

    /// The lines of treelined that setup leaves in a text, and why. A person may remove them.
    pub(crate) fn rest(&self, program: &Program, text: &str) -> Option<(String, String)> {
        let theirs = "somebody has added to it, or written it".to_owned();
        match self {
            Self::Server { object, .. } => {
                let has_it = json::has_member(text, object, NAME);
                has_it.then(|| (theirs, format!("{object}.{NAME}")))
            }
            Self::Codex => {
                let lines = codex(program).header();
                codex(program).has_server(text).then_some((theirs, lines))
            }
            Self::Extension if text.contains(NAME) => {
                Some(("YAML is not edited".to_owned(), self.lines(program)))
            }
            Self::Several(pieces) => pieces.iter().find_map(|piece| piece.rest(program, text)),
            _ => None,
        }
    }

    /// The lines that a person adds, if setup does not.
    pub(crate) fn lines(&self, program: &Program) -> String {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        match self {
            Self::Hooks { .. } => pretty(&json::hooks(&self.hooks(program))),
            Self::Codex => codex(program).lines(),
            Self::Server { object, server } => {
                pretty(&json!({*object: {NAME: server.value(program)}}))
            }
            Self::Extension => {
                let word = |text: &str| serde_json::to_string(text).unwrap_or_default();
                let arguments = program.server();
                let arguments: Vec<String> = arguments.iter().map(|it| word(it)).collect();
                let (path, arguments) = (word(program.path()), arguments.join(", "));
                format!(
                    "extensions:\n  {NAME}:\n    enabled: true\n    type: stdio\n    name: {NAME}\n    \
                     cmd: {path}\n    args: [{arguments}]\n    envs: {{}}\n    timeout: 300"
                )
            }
            Self::Own(own) => own.clone(),
            Self::Plugin { recalls } => program.plugin(*recalls),
            Self::Several(pieces) => {
                let wanted = pieces.iter().filter(|piece| piece.is_wanted(program));
                let lines: Vec<String> = wanted.map(|piece| piece.lines(program)).collect();
                lines.join("\n")
            }
            Self::Link(target) => format!("a link to {}", target.display()),
        }
    }
}

impl Server {
    fn value(self, program: &Program) -> Value {
        let (path, arguments) = (program.path(), program.server());
        match self {
            Self::Stdio => json!({"type": "stdio", "command": path, "args": arguments}),
            Self::Plain => json!({"command": path, "args": arguments}),
            Self::Local => {
                let path = [path.to_owned()].into_iter();
                let command: Vec<String> = path.chain(arguments).collect();
                json!({"type": "local", "command": command})
            }
        }
    }
}

/// Whether a file of our own has this text.
fn own_file(own: &str, text: &str) -> Result<Presence, Refusal> {
    match () {
        () if own == text => Ok(Presence::Same),
        () if text.contains(MARK) => Ok(Presence::Older),
        () => Err(Refusal::new("another program has written it")),
    }
}

/// Recognizes our commands, whatever the name of their program is, and the commands of an earlier setup.
fn is_our_hook(program: &Program) -> impl Fn(&str) -> bool {
    let agent = Agent::ClaudeCode.name();
    let own = [program.hook_command(agent), program.recall_command()];
    move |command| {
        own.iter().any(|own| own == command)
            || program::is_hook_command(command, agent)
            || program::is_recall_command(command)
    }
}

/// Whether a server has one of the forms that setup writes, without additions of a person.
fn is_server(found: &Value) -> bool {
    let words = |value: &Value| {
        let words = value.as_array()?.iter();
        words
            .map(|it| it.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
    };
    let Some(members) = found.as_object() else {
        return false;
    };
    let known = ["type", "command", "args"];
    let is_known = members.keys().all(|name| known.contains(&name.as_str()));
    let command = match (members.get("command"), members.get("args")) {
        (Some(Value::String(path)), Some(arguments)) => {
            words(arguments).map(|it| (path.clone(), it))
        }
        (Some(command @ Value::Array(_)), None) => words(command).and_then(|words| {
            let (path, arguments) = words.split_first()?;
            Some((path.clone(), arguments.to_vec()))
        }),
        _ => None,
    };
    is_known && command.is_some_and(|(path, arguments)| program::is_server(&path, &arguments))
}

fn codex(program: &Program) -> Codex {
    let name = Agent::Codex.name();
    let path = [program.path().to_owned()].into_iter();
    Codex {
        notify: path.chain(program.hook(name)).collect(),
        server: NAME.to_owned(),
        command: (program.path().to_owned(), program.server()),
        is_our_line: |program, arguments| program::is_hook(program, arguments, Agent::Codex.name()),
        is_our_server: program::is_server,
    }
}
