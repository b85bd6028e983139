//! The program that agents start, and the texts of treelined that name it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use treelined_redact::unseen::is_control;

/// The line that marks a file of ours.
pub(crate) const MARK: &str =
    "Written by `treelined setup`; `treelined setup --remove` takes it away.";
/// The command that recalls earlier conversations.
const RECALL: [&str; 2] = ["mcp", "--recall"];
/// The parts of our scripts that recall: the call, and the hooks of opencode and pi.
const ANSWER: &str = include_str!("recall/answer.js");
const OPENCODE: &str = include_str!("recall/opencode.js");
const PI: &str = include_str!("recall/pi.js");
/// The name of the program.
const NAME: &str = "treelined";

/// The program, and the options of each of its commands.
pub(crate) struct Program {
    path: String,
    options: Vec<String>,
    /// The variables that a unit sets, with their values.
    environment: Vec<(String, String)>,
}

impl Program {
    /// `path` is absolute. `session_dir` is the session directory if it is not the default. `environment` has the
    /// variables that a unit does not inherit. `None` if one of these is not Unicode or has control characters, since a
    /// configuration file cannot contain it.
    pub(crate) fn new(
        path: &Path,
        session_dir: Option<&Path>,
        environment: Vec<(&str, OsString)>,
    ) -> Option<Self> {
        let mut options = Vec::new();
        if let Some(folder) = session_dir {
            options = vec!["--session-dir".to_owned(), plain(folder.as_os_str())?];
        }
        let environment = environment.into_iter();
        let environment = environment.map(|(name, value)| Some((name.to_owned(), plain(&value)?)));
        Some(Self {
            path: plain(path.as_os_str())?,
            options,
            environment: environment.collect::<Option<_>>()?,
        })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    fn arguments(&self, command: &[&str]) -> Vec<String> {
        let command = command.iter().map(ToString::to_string);
        self.options.iter().cloned().chain(command).collect()
    }

    /// The arguments of the hook of an agent.
    pub(crate) fn hook(&self, agent: &str) -> Vec<String> {
        self.arguments(&["import", "--hook", agent])
    }

    /// The arguments of the MCP server.
    pub(crate) fn server(&self) -> Vec<String> {
        self.arguments(&["mcp"])
    }

    /// The hook of an agent as a command line of a shell.
    pub(crate) fn hook_command(&self, agent: &str) -> String {
        self.command(self.hook(agent))
    }

    /// The hook that recalls earlier conversations, as a command line of a shell.
    pub(crate) fn recall_command(&self) -> String {
        self.command(self.arguments(&RECALL))
    }

    fn command(&self, arguments: Vec<String>) -> String {
        let words = [self.path.clone()].into_iter().chain(arguments);
        words
            .map(|word| quoted(&word))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// opencode's plugin, with or without the hooks that recall.
    pub(crate) fn plugin(&self, recalls: bool) -> String {
        let arguments = json_words(&self.hook("opencode"));
        let keeps = format!(
            "const options = {arguments}\n\
             \n\
             export const Treelined = async ({{ directory }}) => ({{\n\
             \x20 event: async ({{ event }}) => {{\n\
             \x20   if (event.type !== \"session.idle\") return\n\
             \x20   const hook = spawn(program, [...options, JSON.stringify({{ ...event, cwd: directory }})], {{ detached: true, stdio: \"ignore\" }})\n\
             \x20   hook.on(\"error\", () => {{}})\n\
             \x20   hook.unref()\n\
             \x20 }},\n\
             }})\n"
        );
        let recall = match recalls {
            true => self.script_that_recalls(OPENCODE),
            false => String::new(),
        };
        self.script(&(keeps + &recall))
    }

    /// pi's extension, which recalls.
    pub(crate) fn extension(&self) -> String {
        self.script(self.script_that_recalls(PI).trim_start())
    }

    /// A script that starts the program.
    fn script(&self, rest: &str) -> String {
        let path = serde_json::to_string(&self.path).unwrap_or_default();
        format!(
            "// {MARK}\n\
             import {{ spawn }} from \"node:child_process\"\n\
             \n\
             const program = {path}\n\
             {rest}"
        )
    }

    fn script_that_recalls(&self, hooks: &str) -> String {
        let arguments = json_words(&self.arguments(&RECALL));
        ANSWER.replace("RECALL", &arguments) + hooks
    }

    /// The user unit that imports what an agent without a hook writes.
    pub(crate) fn unit(&self, agent: &str) -> String {
        let command = self.arguments(&["import", "--watch", "--from", agent]);
        // The name of the program has no variables.
        let program = unit_word(&self.path);
        let arguments = command
            .iter()
            .map(|word| unit_word(word).replace('$', "$$"));
        let command: Vec<String> = [program].into_iter().chain(arguments).collect();
        let variables = self.environment.iter();
        let variables: String = variables
            .map(|(name, value)| format!("Environment={}\n", unit_word(&format!("{name}={value}"))))
            .collect();
        format!(
            "# {MARK}\n\
             [Unit]\n\
             Description=Keep the conversations of {agent} in treelined\n\
             \n\
             [Service]\n\
             {variables}ExecStart={}\n\
             Restart=on-failure\n\
             NoNewPrivileges=yes\n\
             \n\
             [Install]\n\
             WantedBy=default.target\n",
            command.join(" ")
        )
    }
}

/// Whether a script of ours recalls.
pub(crate) fn is_script_that_recalls(text: &str) -> bool {
    text.contains(MARK) && text.contains("\"--recall\"")
}

/// An array of JavaScript.
fn json_words(words: &[String]) -> String {
    serde_json::to_string(words).unwrap_or_default()
}

/// Whether a command that a tool starts at the end of a turn is ours: the program, optionally a session directory, and
/// the hook of this agent.
pub(crate) fn is_hook(program: &str, arguments: &[String], agent: &str) -> bool {
    is_program(program) && has_form(arguments, &["import", "--hook", agent])
}

/// Like [`is_hook`], for a command line of a shell, which must contain nothing else.
pub(crate) fn is_hook_command(command: &str, agent: &str) -> bool {
    let words = shell_words(command).unwrap_or_default();
    let split = words.split_first();
    split.is_some_and(|(program, arguments)| is_hook(program, arguments, agent))
}

/// Whether a command line of a shell is a recall of treelined: the program, optionally a session directory, and nothing
/// else.
pub(crate) fn is_recall_command(command: &str) -> bool {
    let words = shell_words(command).unwrap_or_default();
    let split = words.split_first();
    split.is_some_and(|(program, arguments)| is_program(program) && has_form(arguments, &RECALL))
}

/// Whether a server is a server of treelined: the program, optionally a session directory, and only `mcp`.
pub(crate) fn is_server(program: &str, arguments: &[String]) -> bool {
    is_program(program) && has_form(arguments, &["mcp"])
}

/// Whether the arguments are `end`, optionally after a session directory.
fn has_form(arguments: &[String], end: &[&str]) -> bool {
    let rest = match arguments {
        [option, _, rest @ ..] if option == "--session-dir" => rest,
        all => all,
    };
    rest == end
}

fn is_program(path: &str) -> bool {
    let name = PathBuf::from(path);
    name.file_name().is_some_and(|name| name == NAME)
}

/// The text, if every format of configuration can contain it and a person can paste it. A person pastes the commands
/// that setup only shows.
fn plain(text: &OsStr) -> Option<String> {
    let text = text.to_str()?;
    (!text.contains(is_control)).then(|| text.to_owned())
}

/// The words of a command that [`quoted`] has written; `None` if the command has other syntax of a shell.
fn shell_words(command: &str) -> Option<Vec<String>> {
    let mut words = vec![String::new()];
    let mut rest = command;
    while let Some(byte) = rest.bytes().next() {
        let word = words.last_mut()?;
        let after = rest.get(1..).unwrap_or_default();
        rest = match byte {
            b'\'' => {
                let (inner, after) = after.split_once('\'')?;
                word.push_str(inner);
                after
            }
            b'\\' => {
                word.push('\'');
                after.strip_prefix('\'')?
            }
            b' ' => {
                words.push(String::new());
                after
            }
            byte if is_plain(byte) => {
                word.push(char::from(byte));
                after
            }
            _ => return None,
        };
    }
    Some(words)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(&byte)
}

/// The text quoted as one word of a shell.
fn quoted(word: &str) -> String {
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The link by which systemd starts a unit of this folder, and the target of the link.
pub(crate) fn wants(units: &Path, name: &OsStr) -> (PathBuf, PathBuf) {
    let link = units.join("default.target.wants").join(name);
    (link, Path::new("..").join(name))
}

/// The text as one word of a unit, in which `%` has no special meaning.
fn unit_word(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"");
    let word = word.replace('%', "%%");
    match word.contains(|char: char| char.is_whitespace() || "'\"\\;".contains(char)) {
        true => format!("\"{word}\""),
        false => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person's command that ended with ours was once replaced by ours, and removed with it.
    #[test]
    fn only_a_command_of_its_own_is_ours() {
        for command in [
            "/usr/bin/treelined import --hook claude-code",
            "'/a b/it'\\''s/treelined' --session-dir '/my data' import --hook claude-code",
        ] {
            assert!(is_hook_command(command, "claude-code"), "{command}");
        }
        for command in [
            "notify-send x; treelined import --hook claude-code",
            "say treelined import --hook claude-code",
            "treelined import --hook claude-code --verbose",
            "treelined import --hook claude-code; say done",
            "treelined --quiet import --hook claude-code",
            "treelined --session-dir import --hook claude-code",
            "treelined --session-dir $HOME/x import --hook claude-code",
            "treelined  import --hook claude-code",
            "A=1 treelined import --hook claude-code",
            "/a/`id`/treelined import --hook claude-code",
            "treelined import --hook codex",
            "'treelined import --hook claude-code",
            "",
        ] {
            assert!(!is_hook_command(command, "claude-code"), "{command}");
        }
    }

    /// A unit does not have the environment of the user, so it once looked in the default folders.
    #[test]
    fn a_unit_has_what_it_does_not_inherit() {
        let environment = vec![("GOOSE_PATH_ROOT", OsString::from("/my $data/100%"))];
        let folder = Some(Path::new("/a $b"));
        let program = Program::new(Path::new("/$x/treelined"), folder, environment).unwrap();
        let unit = program.unit("goose");
        assert!(
            unit.contains("\nEnvironment=\"GOOSE_PATH_ROOT=/my $data/100%%\"\n"),
            "{unit}"
        );
        // systemd expands variables in arguments, but not in the name of a program.
        let command =
            "\nExecStart=/$x/treelined --session-dir \"/a $$b\" import --watch --from goose\n";
        assert!(unit.contains(command), "{unit}");
    }

    /// A line feed in a path once began another line of the unit.
    #[test]
    fn control_characters_are_refused() {
        assert!(Program::new(Path::new("/a\nb/treelined"), None, Vec::new()).is_none());
        let environment = vec![("GOOSE_PATH_ROOT", OsString::from("/x\nExecStartPre=y"))];
        assert!(Program::new(Path::new("/a/treelined"), None, environment).is_none());
        // Such characters were once written, and a command to paste had marks in their place.
        for char in ['\u{200f}', '\u{2028}', '\u{202e}', '\u{e0041}'] {
            let folder = PathBuf::from(format!("/a{char}b"));
            let program = Program::new(Path::new("/a/treelined"), Some(&folder), Vec::new());
            assert!(program.is_none(), "{char:?}");
        }
    }
}
