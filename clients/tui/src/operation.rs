//! Operations of this program that may take a while. They run like commands: Esc cancels them, and they end with a
//! text.

/// An operation to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Create a session in the working directory and open it. The name may be empty.
    Create { name: String },
    /// Fork at an entry, and open the fork.
    Fork { entry: String },
    /// Summarize the older part of the context. The focus may be empty.
    Compact { focus: String },
    /// Copy messages to the leaf.
    CherryPick { entries: Vec<String> },
    /// Append a summary of the branch that ends at `tip`. The focus may be empty.
    Merge { tip: String, focus: String },
    /// Move the leaf to the position before the first message.
    Root,
    /// Name the branch of an entry. An empty name removes the name.
    NameBranch { entry: String, name: String },
    /// Archive the branch of an entry.
    Archive { entry: String },
    /// Bring the archived branches of an entry back.
    Unarchive { entry: String },
    /// Add tags to a session; tags with a `-` before them are removed.
    Tag { session_id: String, tags: String },
    /// Pin a session; if it is pinned, unpin it.
    Pin { session_id: String },
    /// Archive a session; if it is archived, bring it back.
    ArchiveSession { session_id: String },
    /// Go to one of several answers to a question. The reason may be empty.
    Choose { tip: String, reason: String },
    /// Ask a question beside the conversation.
    Aside { question: String },
    /// Copy the messages of the background branch of an entry to the leaf.
    Keep { entry: String },
    /// Name the open session. An empty name removes the name.
    Name { name: String },
    /// Write the session into a file.
    Export {
        format: ExportFormat,
        /// An absolute path.
        path: String,
        /// The ids of secrets that stay, and of texts that are replaced too.
        keep: Vec<String>,
        replace: Vec<String>,
    },
    /// Import conversations of other tools.
    Import(ImportSource),
    /// Show the reports of the imports.
    ImportReport,
    /// Move a session from the trash back to the session directory.
    Restore {
        session_id: String,
        /// The path of its file in the trash.
        trashed: String,
    },
    /// Show messages, tokens and cost of the session.
    Stats,
    /// Show tokens and cost of all sessions by one of [`USAGE_BY`].
    Usage { by: &'static str },
    /// Show the messages that the model sees.
    Context,
    /// Show the moves of the leaf.
    Moves,
    /// Serve the page for browsers, and show its address.
    Web,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Html,
    Markdown,
    Jsonl,
    Text,
}

/// Which conversations to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportSource {
    /// The conversations of all tools.
    All,
    /// The conversations of all tools in the working directory.
    Here,
    /// The conversations of one tool, by the daemon's name for the tool.
    Tool(String),
    /// A file or a folder.
    Path(String),
    /// A file or a folder that may exceed the limits for a source.
    Large(String),
}

/// An agent that can continue a conversation. schema/agents.tsv has the list for all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent {
    /// The daemon's name for the agent.
    pub tool: &'static str,
    /// The name of the agent for people.
    pub name: &'static str,
    /// The agent's program; `None` for any other agent, which gets a text.
    pub program: Option<&'static str>,
}

impl Agent {
    pub const ALL: [Self; 7] = [
        Self::of("claude-code", "Claude Code", "claude"),
        Self::of("codex", "Codex", "codex"),
        Self::of("opencode", "opencode", "opencode"),
        Self::of("gemini", "Gemini CLI", "gemini"),
        Self::of("goose", "goose", "goose"),
        Self::of("pi", "pi", "pi"),
        Self {
            tool: "text",
            name: "any other agent, as a text",
            program: None,
        },
    ];

    const fn of(tool: &'static str, name: &'static str, program: &'static str) -> Self {
        Self {
            tool,
            name,
            program: Some(program),
        }
    }

    /// The agents whose conversations can be imported, but which cannot continue a conversation.
    const ORIGINS: [Self; 6] = [
        Self {
            tool: "qwen-code",
            name: "Qwen Code",
            program: None,
        },
        Self {
            tool: "cline",
            name: "Cline",
            program: None,
        },
        Self {
            tool: "roo-code",
            name: "Roo Code",
            program: None,
        },
        Self {
            tool: "kilo-code",
            name: "Kilo Code",
            program: None,
        },
        Self {
            tool: "copilot-cli",
            name: "Copilot CLI",
            program: None,
        },
        Self {
            tool: "vscode-chat",
            name: "VS Code Copilot Chat",
            program: None,
        },
    ];

    /// The services whose exports can be imported. The path of the file decides which service it is.
    const EXPORTS: [Self; 2] = [
        Self {
            tool: "chatgpt",
            name: "ChatGPT",
            program: None,
        },
        Self {
            tool: "claude-ai",
            name: "Claude.ai",
            program: None,
        },
    ];

    /// The tools from which sessions can come.
    pub fn origins() -> impl Iterator<Item = Self> {
        Self::imported().chain(Self::EXPORTS)
    }

    /// Finds an agent by the daemon's name for it.
    pub fn named(tool: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.tool == tool)
    }

    /// The agents whose conversations can be imported.
    pub fn imported() -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(|agent| agent.program.is_some())
            .chain(Self::ORIGINS)
    }
}

impl Operation {
    /// Returns the name of the command that starts the operation.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "new",
            Self::Fork { .. } => "fork",
            Self::Compact { .. } => "compact",
            Self::CherryPick { .. } => "cherry-pick",
            Self::Merge { .. } => "merge",
            Self::Root => "root",
            Self::NameBranch { .. } => "name-branch",
            Self::Archive { .. } => "archive",
            Self::Unarchive { .. } => "unarchive",
            Self::Tag { .. } => "tags",
            Self::Pin { .. } => "pin",
            Self::ArchiveSession { .. } => "archive-session",
            Self::Choose { .. } => "choose",
            Self::Aside { .. } => "btw",
            Self::Keep { .. } => "keep",
            Self::Name { .. } => "name",
            Self::Export { .. } => "export",
            Self::Import(_) => "import",
            Self::ImportReport => "import-report",
            Self::Restore { .. } => "trash",
            Self::Stats => "stats",
            Self::Usage { .. } => "usage",
            Self::Context => "context",
            Self::Moves => "moves",
            Self::Web => "web",
        }
    }

    /// Returns whether the daemon reports the progress of the operation with the number of the request.
    pub const fn has_progress(&self) -> bool {
        matches!(self, Self::Compact { .. }) || self.reads_files()
    }

    /// Returns whether the progress is in bytes.
    pub const fn reads_files(&self) -> bool {
        matches!(self, Self::Import(_) | Self::Export { .. })
    }

    /// Returns whether the operation moves the leaf. If so, the cursor goes to the leaf.
    pub const fn moves_leaf(&self) -> bool {
        matches!(
            self,
            Self::Compact { .. }
                | Self::CherryPick { .. }
                | Self::Merge { .. }
                | Self::Choose { .. }
                | Self::Keep { .. }
                | Self::Root
        )
    }

    /// Returns whether the operation changes branches, and not the conversation in them.
    pub const fn changes_branches(&self) -> bool {
        matches!(
            self,
            Self::NameBranch { .. } | Self::Archive { .. } | Self::Unarchive { .. }
        )
    }
}

impl ExportFormat {
    pub const ALL: [Self; 4] = [Self::Html, Self::Markdown, Self::Jsonl, Self::Text];

    /// Returns the name of the format in a command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Jsonl => "jsonl",
            Self::Text => "text",
        }
    }

    /// Returns the extension of file names.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Jsonl => "jsonl",
            Self::Text => "txt",
        }
    }

    pub const fn about(self) -> &'static str {
        match self {
            Self::Html => "one page with the whole tree, for browsers",
            Self::Markdown => "a document of the branch, for readers",
            Self::Jsonl => "a session file with the whole tree",
            Self::Text => "plain text of the branch",
        }
    }

    /// Finds a format by its name, or by the extension of a file name.
    pub fn named(name: &str) -> Option<Self> {
        let is = |it: &Self| it.name() == name || it.extension() == name;
        Self::ALL.into_iter().find(is)
    }
}

/// Parses `[FORMAT] [PATH]`. Without a format, the extension of the path decides; a path without an extension is
/// for a page.
pub fn export_of(argument: &str) -> (Option<ExportFormat>, Option<&str>) {
    let (first, rest) = argument
        .split_once(char::is_whitespace)
        .map_or((argument, ""), |(first, rest)| (first, rest.trim()));
    match ExportFormat::named(first) {
        _ if argument.is_empty() => (None, None),
        Some(format) => (Some(format), Some(rest).filter(|rest| !rest.is_empty())),
        None => {
            let ending = argument.rsplit_once('.').map_or("", |(_, ending)| ending);
            let format = ExportFormat::named(ending).unwrap_or(ExportFormat::Html);
            (Some(format), Some(argument))
        }
    }
}

/// The kinds of rows of [`Operation::Usage`].
pub const USAGE_BY: [&str; 6] = ["day", "model", "tool", "session", "branch", "directory"];

/// Parses the argument of an import. `None` if the argument is empty.
pub fn import_of(argument: &str) -> Option<ImportSource> {
    Some(match argument {
        "" => return None,
        "all" | "auto" => ImportSource::All,
        "here" => ImportSource::Here,
        tool if Agent::imported().any(|agent| agent.tool == tool) => {
            ImportSource::Tool(tool.to_owned())
        }
        path => match path.strip_prefix("--large ") {
            Some(path) => ImportSource::Large(path.trim().to_owned()),
            None => ImportSource::Path(path.to_owned()),
        },
    })
}

/// Returns a file name for the export of a session. `title` is the name or the id of the session.
pub fn file_name(title: &str, format: ExportFormat) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_');
    let plain: String = title
        .chars()
        .map(|char| if is_plain(char) { char } else { '-' })
        .take(60)
        .collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "session" } else { plain };
    format!("{plain}.{}", format.extension())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_an_export_is_named_or_the_end_of_its_path() {
        for (argument, expected) in [
            ("", (None, None)),
            ("markdown", (Some(ExportFormat::Markdown), None)),
            (
                "md  a b.txt",
                (Some(ExportFormat::Markdown), Some("a b.txt")),
            ),
            ("notes.txt", (Some(ExportFormat::Text), Some("notes.txt"))),
            ("/tmp/x y", (Some(ExportFormat::Html), Some("/tmp/x y"))),
        ] {
            assert_eq!(export_of(argument), expected, "{argument}");
        }
    }

    #[test]
    fn the_agents_are_those_of_the_table_that_all_clients_share() {
        let table = include_str!("../../../schema/agents.tsv");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let own = Agent::ALL.map(|agent| {
            let program = agent.program.unwrap_or("-");
            format!("{}\t{}\t{program}", agent.tool, agent.name)
        });
        assert_eq!(rows.collect::<Vec<_>>(), own);
    }

    #[test]
    fn file_names_have_no_separators() {
        assert_eq!(
            file_name("Fix ../the build", ExportFormat::Html),
            "Fix----the-build.html"
        );
        assert_eq!(file_name("../..", ExportFormat::Text), "session.txt");
    }

    #[test]
    fn imports_name_a_tool_a_place_or_everything() {
        assert_eq!(import_of(""), None);
        assert_eq!(import_of("all"), Some(ImportSource::All));
        assert_eq!(import_of("codex"), Some(ImportSource::Tool("codex".into())));
        assert_eq!(import_of("~/x"), Some(ImportSource::Path("~/x".into())));
    }
}
