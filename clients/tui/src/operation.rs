//! Operations of this program that may take a while. They run as commands do: Esc cancels them, and they end with a
//! text.

/// An operation to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Create a session in the working directory and open it. The name may be empty.
    Create { name: String },
    /// Fork at an entry, and open the new session.
    Fork { entry: String },
    /// Summarize the older part of the context. The focus may be empty.
    Compact { focus: String },
    /// Copy messages to the leaf.
    CherryPick { entries: Vec<String> },
    /// Append a summary of the branch that ends at `tip`. The focus may be empty.
    Merge { tip: String, focus: String },
    /// Move the leaf to before the first message.
    Root,
    /// Name the branch of an entry. An empty name removes it.
    NameBranch { entry: String, name: String },
    /// Put the branch of an entry away.
    Archive { entry: String },
    /// Bring the archived branches of an entry back.
    Unarchive { entry: String },
    /// Give a session tags, and take away those after a `-`.
    Tag { session_id: String, tags: String },
    /// Pin a session, or take the pin away.
    Pin { session_id: String },
    /// Put a session away, or bring it back.
    ArchiveSession { session_id: String },
    /// Go to one of several answers to a question. The reason may be empty.
    Choose { tip: String, reason: String },
    /// Ask a question beside the conversation.
    Aside { question: String },
    /// Copy the messages of the background branch of an entry to the leaf.
    Keep { entry: String },
    /// Name the open session. An empty name removes it.
    Name { name: String },
    /// Write the session into a file.
    Export {
        format: ExportFormat,
        /// Absolute.
        path: String,
    },
    /// Import conversations of other tools.
    Import(ImportSource),
    /// Show the reports of the imports.
    ImportReport,
    /// Move a session from the trash back to the session directory.
    Restore {
        session_id: String,
        /// Its file in the trash.
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

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Html,
    Markdown,
    Jsonl,
    Text,
}

/// The conversations to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportSource {
    /// Those of all tools.
    All,
    /// Those of all tools in the working directory.
    Here,
    /// Those of a tool, by the daemon's name for it.
    Tool(String),
    /// A file or a folder.
    Path(String),
    /// A file or a folder, beyond the limits on one source too.
    Large(String),
}

/// An agent that goes on with a conversation; schema/agents.tsv has the list that clients share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent {
    /// The daemon's name for it.
    pub tool: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// Its program; `None` for any other agent, which gets a text.
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

    /// The agents whose conversations are imported, and in which none goes on.
    const ORIGINS: [Self; 1] = [Self {
        tool: "qwen-code",
        name: "Qwen Code",
        program: None,
    }];

    /// The accounts whose exports are imported; the path of the file says which one it is.
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

    /// The tools from which sessions come.
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
    /// Returns the name of the command that starts it.
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

    /// Returns whether the daemon reports its progress under the number of the request.
    pub const fn has_progress(&self) -> bool {
        matches!(self, Self::Compact { .. }) || self.reads_files()
    }

    /// Returns whether its progress is in bytes.
    pub const fn reads_files(&self) -> bool {
        matches!(self, Self::Import(_) | Self::Export { .. })
    }

    /// Returns whether it moves the leaf, so that the cursor goes there.
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

    /// Returns whether it changes the branches, and not the conversation in them.
    pub const fn changes_branches(&self) -> bool {
        matches!(
            self,
            Self::NameBranch { .. } | Self::Archive { .. } | Self::Unarchive { .. }
        )
    }
}

impl ExportFormat {
    pub const ALL: [Self; 4] = [Self::Html, Self::Markdown, Self::Jsonl, Self::Text];

    /// Returns the name in a command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Jsonl => "jsonl",
            Self::Text => "text",
        }
    }

    /// Returns the end of a file's name.
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

    /// Finds a format by its name or by the end of a file's name.
    pub fn named(name: &str) -> Option<Self> {
        let is = |it: &Self| it.name() == name || it.extension() == name;
        Self::ALL.into_iter().find(is)
    }
}

/// Parses `[FORMAT] [PATH]`. Without a format, the end of the path decides; a path without one gets a page.
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
pub const USAGE_BY: [&str; 5] = ["day", "model", "tool", "session", "directory"];

/// Parses the argument of an import; `None` if it is empty.
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

/// Returns a file name for an export of a session with this name or id.
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
