//! The program that agents start, and the texts of ours that name it.

use std::path::{Path, PathBuf};

/// The line by which a file of ours is known.
pub(crate) const MARK: &str =
    "Written by `treelined setup`; `treelined setup --remove` takes it away.";
/// The name of the program.
const NAME: &str = "treelined";

/// The program, and the options of each of its commands.
pub(crate) struct Program {
    path: String,
    options: Vec<String>,
}

impl Program {
    /// `path` is absolute, `session_dir` the session directory if it is not the usual one.
    pub(crate) fn new(path: &Path, session_dir: Option<&Path>) -> Option<Self> {
        let mut options = Vec::new();
        if let Some(folder) = session_dir {
            options = vec!["--session-dir".to_owned(), folder.to_str()?.to_owned()];
        }
        Some(Self {
            path: path.to_str()?.to_owned(),
            options,
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

    /// The hook of an agent as a command of a shell.
    pub(crate) fn hook_command(&self, agent: &str) -> String {
        let words = [self.path.clone()].into_iter().chain(self.hook(agent));
        words
            .map(|word| quoted(&word))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// opencode's plugin.
    pub(crate) fn plugin(&self) -> String {
        let json = |value: &[String]| serde_json::to_string(value).unwrap_or_default();
        let path = serde_json::to_string(&self.path).unwrap_or_default();
        let arguments = json(&self.hook("opencode"));
        format!(
            "// {MARK}\n\
             import {{ spawn }} from \"node:child_process\"\n\
             \n\
             const program = {path}\n\
             const options = {arguments}\n\
             \n\
             export const Treelined = async () => ({{\n\
             \x20 event: async ({{ event }}) => {{\n\
             \x20   if (event.type !== \"session.idle\") return\n\
             \x20   const hook = spawn(program, [...options, JSON.stringify(event)], {{ detached: true, stdio: \"ignore\" }})\n\
             \x20   hook.on(\"error\", () => {{}})\n\
             \x20   hook.unref()\n\
             \x20 }},\n\
             }})\n"
        )
    }

    /// The user unit that imports what an agent without a hook writes.
    pub(crate) fn unit(&self, agent: &str) -> String {
        let command = self.arguments(&["import", "--watch", "--from", agent]);
        let words = [self.path.clone()].into_iter().chain(command);
        let command: Vec<String> = words.map(|word| unit_word(&word)).collect();
        format!(
            "# {MARK}\n\
             [Unit]\n\
             Description=Keep the conversations of {agent} in treelined\n\
             \n\
             [Service]\n\
             ExecStart={}\n\
             Restart=on-failure\n\
             NoNewPrivileges=yes\n\
             \n\
             [Install]\n\
             WantedBy=default.target\n",
            command.join(" ")
        )
    }
}

/// Whether a command that a tool starts at the end of a turn is ours: the program, any options, and the hook of this agent.
pub(crate) fn is_hook(program: &str, arguments: &[String], agent: &str) -> bool {
    let end = ["import", "--hook", agent];
    is_program(program) && arguments.ends_with(&end.map(str::to_owned))
}

/// As [`is_hook`], of a command of a shell.
pub(crate) fn is_hook_command(command: &str, agent: &str) -> bool {
    let end = format!(" import --hook {agent}");
    let program = command.strip_suffix(&end);
    program.is_some_and(|program| program.contains(NAME))
}

/// Whether a server is ours: the program, any session directory, and `mcp` alone.
pub(crate) fn is_server(program: &str, arguments: &[String]) -> bool {
    let options = arguments.split_last().filter(|(last, _)| *last == "mcp");
    let is_usual = |options: &[String]| match options {
        [] => true,
        [option, _] => option == "--session-dir",
        _ => false,
    };
    is_program(program) && options.is_some_and(|(_, options)| is_usual(options))
}

fn is_program(path: &str) -> bool {
    let name = PathBuf::from(path);
    name.file_name().is_some_and(|name| name == NAME)
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A word of a unit's command.
fn unit_word(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"");
    let word = word.replace('%', "%%").replace('$', "$$");
    match word.contains(|char: char| char.is_whitespace() || "'\"\\;".contains(char)) {
        true => format!("\"{word}\""),
        false => word,
    }
}
