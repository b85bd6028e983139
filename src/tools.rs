//! The well-known tools of agents: the argument that describes a call, and the files that a call reads or
//! changes.
//!
//! Owns the one table of these tools, by the names that several agents give them. Reads raw JSON of any
//! shape, damaged too.

use crate::json::{self, Elements, Members};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The access of a call to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    None,
    Read,
    Change,
}

/// Tools with the same purpose.
#[derive(Debug)]
struct Family {
    /// Names as [`normalized`] returns them.
    names: &'static [&'static str],
    /// The arguments that describe a call, the best one first.
    telling: &'static [&'static str],
    access: FileAccess,
}

const PATHS: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "absolute_path",
    "target_file",
    "filename",
    "notebook_path",
    "file",
    "paths",
    "files",
    "include",
];

/// The arguments that have a patch as text.
const PATCHES: &[&str] = &["input", "patch", "patchText", "_raw"];

const FAMILIES: &[Family] = &[
    Family {
        names: &[
            "bash",
            "shell",
            "localshell",
            "execcommand",
            "containerexec",
            "runcommand",
            "runshellcommand",
            "runterminalcmd",
            "shellcommand",
            "executecommand",
            "terminal",
            "automationscript",
        ],
        telling: &["command", "cmd", "commands", "script", "action"],
        access: FileAccess::None,
    },
    Family {
        names: &[
            "read",
            "readfile",
            "readmanyfiles",
            "readtextfile",
            "notebookread",
            "view",
            "viewimage",
            "readimage",
            "imageprocessor",
            "analyze",
            "lsp",
            "cat",
        ],
        telling: PATHS,
        access: FileAccess::Read,
    },
    Family {
        names: &["write", "writefile", "createfile", "writetofile"],
        telling: PATHS,
        access: FileAccess::Change,
    },
    Family {
        names: &[
            "edit",
            "editfile",
            "multiedit",
            "notebookedit",
            "replace",
            "replaceinfile",
            "strreplace",
            "searchreplace",
            "applypatch",
            "patch",
            "texteditor",
            "strreplaceeditor",
            "strreplacebasededittool",
        ],
        telling: PATHS,
        access: FileAccess::Change,
    },
    Family {
        names: &[
            "grep",
            "rg",
            "ripgrep",
            "grepsearch",
            "searchfilecontent",
            "searchfiles",
            "codesearch",
            "toolsearch",
        ],
        telling: &["pattern", "query", "regex"],
        access: FileAccess::None,
    },
    Family {
        names: &["glob", "find", "filesearch", "globfiles", "findfiles"],
        telling: &["pattern", "glob", "glob_pattern", "query", "name"],
        access: FileAccess::None,
    },
    Family {
        names: &[
            "ls",
            "list",
            "listdirectory",
            "listdir",
            "listfiles",
            "tree",
        ],
        telling: &["path", "dir_path", "directory", "dir"],
        access: FileAccess::None,
    },
    Family {
        names: &[
            "task",
            "agent",
            "subagent",
            "spawnagent",
            "delegate",
            "executetask",
            "delegatetoagent",
            "codebaseinvestigator",
        ],
        telling: &[
            "description",
            "task",
            "objective",
            "prompt",
            "message",
            "instructions",
        ],
        access: FileAccess::None,
    },
    Family {
        names: &["webfetch", "fetch", "webscrape"],
        telling: &["url", "urls", "prompt"],
        access: FileAccess::None,
    },
    Family {
        names: &["websearch", "googlewebsearch"],
        telling: &["query", "queries", "url", "pattern", "action"],
        access: FileAccess::None,
    },
    Family {
        names: &[
            "todowrite",
            "writetodos",
            "todo",
            "updateplan",
            "exitplanmode",
        ],
        telling: &["todos", "plan", "content"],
        access: FileAccess::None,
    },
    Family {
        names: &["taskcreate", "taskupdate", "taskget"],
        telling: &["subject", "taskId"],
        access: FileAccess::None,
    },
    Family {
        names: &["bashoutput", "killshell", "taskoutput", "taskstop"],
        telling: &["bash_id", "shell_id", "task_id"],
        access: FileAccess::None,
    },
    Family {
        names: &["question", "askuserquestion", "askuser"],
        telling: &["questions", "question"],
        access: FileAccess::None,
    },
    Family {
        names: &["savememory"],
        telling: &["fact"],
        access: FileAccess::None,
    },
    Family {
        names: &["skill", "loadskill", "activateskill", "slashcommand"],
        telling: &["skill", "name", "command"],
        access: FileAccess::None,
    },
    Family {
        names: &["exec", "writestdin"],
        telling: &["command", "cmd", "script", "chars", "input"],
        access: FileAccess::None,
    },
];

/// Longest argument of an unknown tool that counts as short, in characters.
const SHORT: usize = 80;
/// Most elements of an argument that are read.
const MOST_ELEMENTS: usize = 64;

/// A call with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct CallArguments<'a> {
    family: Option<&'static Family>,
    /// Names and raw values.
    arguments: Vec<(Cow<'a, [u8]>, &'a [u8])>,
}

impl<'a> CallArguments<'a> {
    /// `arguments` is raw JSON: an object if the writer kept to the format.
    pub(crate) fn new(name: &str, arguments: &'a [u8]) -> Self {
        Self {
            family: family(name),
            arguments: members(arguments).collect(),
        }
    }

    /// The argument that describes the call, raw: of any length, with any lines. For an unknown tool its
    /// first short string.
    pub(crate) fn summary(&self) -> Option<Cow<'a, str>> {
        let telling = self.family.map_or(&[][..], |family| family.telling);
        let values = telling.iter().filter_map(|name| self.argument(name));
        let mut told = values.filter_map(told).filter(|told| !is_blank(told));
        let told = told.next().or_else(|| self.patched_files());
        told.or_else(|| self.short())
    }

    pub(crate) fn access(&self) -> FileAccess {
        match self.family.map_or(FileAccess::None, |family| family.access) {
            // Editors with one tool for both name the operation in `command`.
            FileAccess::Change => match self.text("command") {
                Some(command) if command == "view" => FileAccess::Read,
                _ => FileAccess::Change,
            },
            access => access,
        }
    }

    /// The files that it reads or changes, as far as its arguments name them.
    pub(crate) fn files(&self) -> BTreeSet<Cow<'a, str>> {
        let mut files = BTreeSet::new();
        if self.access() == FileAccess::None {
            return files;
        }
        for value in PATHS.iter().filter_map(|name| self.argument(name)) {
            match json::string(value) {
                Some(path) => drop(files.insert(path)),
                None => files.extend(strings(value)),
            }
        }
        if let Some(patch) = self.patch() {
            files.extend(patched(&patch).map(|path| Cow::Owned(path.to_owned())));
        }
        files.retain(|path| !path.is_empty());
        files
    }

    /// Of duplicates the last one counts, as everywhere.
    fn argument(&self, name: &str) -> Option<&'a [u8]> {
        let mut arguments = self.arguments.iter().rev();
        let (_, value) = arguments.find(|(key, _)| **key == *name.as_bytes())?;
        Some(value)
    }

    fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.argument(name).and_then(json::string)
    }

    /// The patch of Codex among the arguments of a tool that changes files.
    pub(crate) fn patch(&self) -> Option<Cow<'a, str>> {
        if self.family?.access != FileAccess::Change {
            return None;
        }
        let mut texts = PATCHES.iter().filter_map(|name| self.text(name));
        texts.find(|text| text.contains("*** Begin Patch"))
    }

    fn patched_files(&self) -> Option<Cow<'a, str>> {
        let patch = self.patch()?;
        let files: Vec<_> = patched(&patch).take(MOST_ELEMENTS).collect();
        (!files.is_empty()).then(|| Cow::Owned(files.join(", ")))
    }

    fn short(&self) -> Option<Cow<'a, str>> {
        let is_short = |value: &&[u8]| json::chars(value).take(SHORT + 1).count() <= SHORT;
        let values = self.arguments.iter().map(|(_, value)| *value);
        let mut texts = values.filter(is_short).filter_map(json::string);
        texts.find(|text| !is_blank(text))
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn family(name: &str) -> Option<&'static Family> {
    let name = normalized(name);
    let mut families = FAMILIES.iter();
    families.find(|family| family.names.contains(&&*name))
}

/// The name without a prefix (`developer__shell`, `container.exec`), in lower case and without separators
/// of words.
fn normalized(name: &str) -> String {
    let own = name.rsplit("__").next().unwrap_or(name);
    let letters = own.chars().filter(|char| char.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The members of an object, as far as it can be read.
fn members(object: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, &[u8])> {
    let mut members = Members::open(object, 0).ok();
    std::iter::from_fn(move || {
        let member = members.as_mut()?.next().ok()??;
        Some((member.name(object), object.get(member.value.clone())?))
    })
}

fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut elements = Elements::open(array, 0).ok();
    std::iter::from_fn(move || array.get(elements.as_mut()?.next().ok()??))
}

/// The strings of an array.
fn strings(array: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    elements(array).filter_map(json::string)
}

/// The text of an argument: a string, the words of a command, or the most descriptive text of an object.
fn told(value: &[u8]) -> Option<Cow<'_, str>> {
    match value.first()? {
        b'"' => json::string(value),
        b'[' => words(value).or_else(|| told_in(elements(value).next()?)),
        _ => told_in(value),
    }
}

fn told_in(object: &[u8]) -> Option<Cow<'_, str>> {
    const TELLING: [&str; 7] = [
        "command",
        "query",
        "content",
        "step",
        "url",
        "question",
        "description",
    ];
    let named = json::get_each(object, TELLING);
    let mut texts = named.into_iter().flatten();
    texts.find_map(|value| json::string(value).or_else(|| words(value)))
}

/// The words of an array; of `["bash", "-lc", "…"]` only the command for the shell.
fn words(array: &[u8]) -> Option<Cow<'_, str>> {
    let mut words: Vec<_> = strings(array).take(MOST_ELEMENTS).collect();
    match &*words {
        [] => None,
        [_, flag, _] if flag == "-lc" || flag == "-c" => words.pop(),
        words => Some(Cow::Owned(words.join(" "))),
    }
}

/// The files that a patch of Codex names.
fn patched(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| {
        let (what, path) = line.strip_prefix("*** ")?.split_once(" File: ")?;
        matches!(what, "Add" | "Update" | "Delete").then(|| path.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, summary: &str) {
        let call = CallArguments::new(name, arguments.as_bytes());
        assert_eq!(call.summary().as_deref().unwrap_or_default(), summary);
    }

    /// A row said `Bash(command="…", description="…")`, in the order of the arguments. Each tool has one
    /// argument that describes the call, for all agents and names of the tool.
    #[test]
    fn well_known_tools_tell_by_one_argument() {
        check(
            "bash",
            r#"{"timeout":5,"command":"cargo test"}"#,
            "cargo test",
        );
        let described = r#"{"description":"Tests","command":"cargo test"}"#;
        check("Bash", described, "cargo test");
        let listed = r#"{"workdir":"/w","command":["bash","-lc","cargo test"]}"#;
        check("shell", listed, "cargo test");
        check("container.exec", r#"{"cmd":["git","diff"]}"#, "git diff");
        let action = r#"{"action":{"type":"exec","command":["sh","-c","ls"]}}"#;
        check("local_shell", action, "ls");
        check("exec_command", r#"{"cmd":"ls","workdir":"/w"}"#, "ls");
        let local = r#"{"type":"exec","command":["bash","-lc","ls"],"timeout_ms":5}"#;
        check("local_shell", local, "ls");
        check("exec", r#"{"input":"text(1)"}"#, "text(1)");
        let stdin = r#"{"session_id":"sess-42","chars":"yes"}"#;
        check("write_stdin", stdin, "yes");
        let image = r#"{"detail":"high","path":"a.png"}"#;
        check("view_image", image, "a.png");
        let page = r#"{"type":"open_page","url":"https://a.b"}"#;
        check("web_search", page, "https://a.b");
        check("run_shell_command", r#"{"command":"ls"}"#, "ls");
        check("developer__shell", r#"{"command":"ls"}"#, "ls");
        check("read", r#"{"offset":1,"path":"a.rs"}"#, "a.rs");
        check("Read", r#"{"file_path":"/w/a.rs"}"#, "/w/a.rs");
        check("read", r#"{"filePath":"/w/a.rs"}"#, "/w/a.rs");
        check("read_file", r#"{"absolute_path":"/w/a.rs"}"#, "/w/a.rs");
        check("read_many_files", r#"{"paths":["a","b"]}"#, "a b");
        check("Write", r#"{"content":"x","file_path":"n.md"}"#, "n.md");
        let edit = r#"{"old_string":"a","new_string":"b","file_path":"m.rs"}"#;
        for name in ["Edit", "MultiEdit", "replace", "str_replace_editor"] {
            check(name, edit, "m.rs");
        }
        check("NotebookEdit", r#"{"notebook_path":"a.ipynb"}"#, "a.ipynb");
        let text_editor = r#"{"command":"write","path":"a.rs","file_text":"x"}"#;
        check("developer__text_editor", text_editor, "a.rs");
        check("Grep", r#"{"path":"src","pattern":"fn main"}"#, "fn main");
        check("search_file_content", r#"{"pattern":"x"}"#, "x");
        check("Glob", r#"{"path":"src","pattern":"**/*.rs"}"#, "**/*.rs");
        check("find", r#"{"path":"src","pattern":"*.rs"}"#, "*.rs");
        check("ls", r#"{"limit":5,"path":"src"}"#, "src");
        check("list_directory", r#"{"dir_path":"src"}"#, "src");
        let task = r#"{"prompt":"Look at it all","description":"Look"}"#;
        check("Task", task, "Look");
        check(
            "WebFetch",
            r#"{"prompt":"p","url":"https://a.b"}"#,
            "https://a.b",
        );
        check("WebSearch", r#"{"query":"rust"}"#, "rust");
        check("google_web_search", r#"{"query":"rust"}"#, "rust");
        let todos = r#"{"todos":[{"status":"done","content":"Build"},{"content":"b"}]}"#;
        check("TodoWrite", todos, "Build");
        check(
            "update_plan",
            r#"{"plan":[{"step":"Build","status":"x"}]}"#,
            "Build",
        );
        let patch = r#"{"input":"*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n*** Add File: b.rs\n+y\n*** End Patch"}"#;
        check("apply_patch", patch, "a.rs, b.rs");
    }

    #[test]
    fn the_tools_of_claude_code_and_gemini_are_known() {
        check("BashOutput", r#"{"bash_id":"b1"}"#, "b1");
        check("ExitPlanMode", r##"{"plan":"# Build it"}"##, "# Build it");
        let asked = r#"{"questions":[{"header":"h","question":"Which one?"}]}"#;
        check("AskUserQuestion", asked, "Which one?");
        check("ask_user", asked, "Which one?");
        let created = r#"{"description":"Build it all","subject":"Build"}"#;
        check("TaskCreate", created, "Build");
        check("TaskUpdate", r#"{"status":"done","taskId":"3"}"#, "3");
        check("SlashCommand", r#"{"command":"/review"}"#, "/review");
        check("ToolSearch", r#"{"max_results":5,"query":"pdf"}"#, "pdf");
        let agent = r#"{"subagent_type":"Explore","description":"Look","prompt":"p"}"#;
        check("Agent", agent, "Look");
        check("read_many_files", r#"{"include":["a","b"]}"#, "a b");
        check("save_memory", r#"{"fact":"Tabs"}"#, "Tabs");
        let todos = r#"{"todos":[{"status":"pending","description":"Build"}]}"#;
        check("write_todos", todos, "Build");
        let delegated = r#"{"agent_name":"x","objective":"Find it"}"#;
        check("delegate_to_agent", delegated, "Find it");
        check("activate_skill", r#"{"name":"pdf"}"#, "pdf");
        let read = CallArguments::new("NotebookRead", br#"{"notebook_path":"a.ipynb"}"#);
        assert_eq!(read.access(), FileAccess::Read);
        assert!(read.files().contains("a.ipynb"));
    }

    #[test]
    fn the_tools_of_opencode_and_goose_tell_by_one_argument() {
        for (name, arguments, summary) in [
            ("bash", r#"{"command":"ls","description":"List"}"#, "ls"),
            (
                "edit",
                r#"{"filePath":"a.rs","oldString":"a","newString":"b"}"#,
                "a.rs",
            ),
            (
                "patch",
                r#"{"patchText":"*** Begin Patch\n*** Add File: b.rs\n*** End Patch"}"#,
                "b.rs",
            ),
            ("list", r#"{"path":"src"}"#, "src"),
            (
                "webfetch",
                r#"{"format":"text","url":"https://a.b"}"#,
                "https://a.b",
            ),
            (
                "lsp",
                r#"{"operation":"hover","filePath":"a.rs","line":3}"#,
                "a.rs",
            ),
            (
                "question",
                r#"{"questions":[{"header":"h","question":"Which?"}]}"#,
                "Which?",
            ),
            (
                "task",
                r#"{"subagent_type":"general","prompt":"p","description":"Look"}"#,
                "Look",
            ),
            (
                "developer__text_editor",
                r#"{"command":"view","path":"a.rs"}"#,
                "a.rs",
            ),
            ("tree", r#"{"depth":2,"path":"src"}"#, "src"),
            ("read_image", r#"{"path":"a.png"}"#, "a.png"),
            (
                "computercontroller__web_scrape",
                r#"{"save_as":"text","url":"https://a.b"}"#,
                "https://a.b",
            ),
            (
                "computercontroller__automation_script",
                r#"{"language":"shell","script":"ls"}"#,
                "ls",
            ),
            ("todo__todo_write", r#"{"content":"- Build"}"#, "- Build"),
            (
                "delegate",
                r#"{"source":"x","instructions":"Look"}"#,
                "Look",
            ),
        ] {
            check(name, arguments, summary);
        }
    }

    #[test]
    fn an_unknown_tool_is_summarized_by_its_first_short_string() {
        let long = "x".repeat(SHORT + 1);
        let fits = "y".repeat(SHORT);
        let arguments = format!(r#"{{"n":1,"long":"{long}","blank":" ","it":"{fits}","z":"z"}}"#);
        check("weather", &arguments, &fits);
        check("mcp__maps__route", r#"{"to":"Ulm"}"#, "Ulm");
        check("weather", r#"{"n":1,"list":["a"]}"#, "");
        // A known tool without its argument counts as unknown.
        check("bash", r#"{"command":7,"what":"ls"}"#, "ls");
        for none in ["", "null", "[]", "5", r#""text""#, "{}"] {
            check("bash", none, "");
        }
        check("bash", r#"{"command":"ls","cut":"of"#, "ls");
        check("bash", r#"{"command":"first","command":"last"}"#, "last");
    }

    #[test]
    fn files_are_those_of_paths_and_patches() {
        let files = |name: &str, arguments: &str| {
            let call = CallArguments::new(name, arguments.as_bytes());
            let files: Vec<_> = call.files().into_iter().map(Cow::into_owned).collect();
            (call.access(), files.join(" "))
        };
        let patch = r#"{"input":"*** Begin Patch\n*** Update File: b\n*** Delete File: a\n*** Update File: b"}"#;
        assert_eq!(
            files("apply_patch", patch),
            (FileAccess::Change, "a b".into())
        );
        let view = r#"{"command":"view","path":"a"}"#;
        assert_eq!(files("text_editor", view), (FileAccess::Read, "a".into()));
        let insert = r#"{"command":"insert","path":"a"}"#;
        assert_eq!(
            files("text_editor", insert),
            (FileAccess::Change, "a".into())
        );
        assert_eq!(files("bash", view), (FileAccess::None, String::new()));
        assert_eq!(
            files("Read", r#"{"file_path":""}"#),
            (FileAccess::Read, String::new())
        );
    }
}
