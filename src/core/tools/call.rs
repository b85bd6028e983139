//! The arguments of a call in one line.

use crate::json;
use crate::json::{Elements, Members};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The access of a call to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    None,
    Read,
    Change,
}

/// How the row of a call describes its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saying {
    /// The tool runs a command, and the command says what it does.
    Command,
    /// The result is text, of which the row shows only the number of lines: a file, or the matches of a search.
    Lines,
    /// One line of the result describes it.
    Line,
}

/// Tools with the same purpose.
#[derive(Debug)]
pub(super) struct Family {
    /// Names as [`normalized`] returns them.
    pub(super) names: &'static [&'static str],
    /// The arguments that describe a call, the best one first.
    pub(super) telling: &'static [&'static str],
    pub(super) saying: Saying,
    pub(super) access: FileAccess,
}

pub(super) const PATHS: &[&str] = &[
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
pub(super) const PATCHES: &[&str] = &["input", "patch", "patchText", "_raw"];

pub(super) const FAMILIES: &[Family] = &[
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
        saying: Saying::Command,
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
        saying: Saying::Lines,
        access: FileAccess::Read,
    },
    Family {
        names: &["write", "writefile", "createfile", "writetofile"],
        telling: PATHS,
        saying: Saying::Line,
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
        saying: Saying::Line,
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
        saying: Saying::Lines,
        access: FileAccess::None,
    },
    Family {
        names: &["glob", "find", "filesearch", "globfiles", "findfiles"],
        telling: &["pattern", "glob", "glob_pattern", "query", "name"],
        saying: Saying::Lines,
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
        saying: Saying::Lines,
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
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["webfetch", "fetch", "webscrape"],
        telling: &["url", "urls", "prompt"],
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["websearch", "googlewebsearch"],
        telling: &["query", "queries", "url", "pattern", "action"],
        saying: Saying::Line,
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
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["taskcreate", "taskupdate", "taskget"],
        telling: &["subject", "taskId"],
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["bashoutput", "killshell", "taskoutput", "taskstop"],
        telling: &["bash_id", "shell_id", "task_id"],
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["question", "askuserquestion", "askuser"],
        telling: &["questions", "question"],
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["savememory"],
        telling: &["fact"],
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["skill", "loadskill", "activateskill", "slashcommand"],
        telling: &["skill", "name", "command"],
        saying: Saying::Line,
        access: FileAccess::None,
    },
    Family {
        names: &["exec", "writestdin"],
        telling: &["command", "cmd", "script", "chars", "input"],
        saying: Saying::Command,
        access: FileAccess::None,
    },
];

/// The longest string, in characters, that describes a call of an unknown tool.
pub(super) const SHORT: usize = 80;

/// The most elements of an argument that are read.
pub(super) const MOST_ELEMENTS: usize = 64;

/// A call with its arguments.
#[derive(Debug, Clone)]
pub struct CallArguments<'a> {
    pub(super) family: Option<&'static Family>,
    /// The names of the arguments, and their raw values.
    pub(super) arguments: Vec<(Cow<'a, [u8]>, &'a [u8])>,
}

impl<'a> CallArguments<'a> {
    /// `arguments` is raw JSON: an object if the writer followed the format.
    pub fn new(name: &str, arguments: &'a [u8]) -> Self {
        Self {
            family: family(name),
            arguments: members(arguments).collect(),
        }
    }

    /// The argument that describes the call: decoded, but not shortened, and with its line breaks. For an unknown tool
    /// it is the first short string.
    pub(crate) fn summary(&self) -> Option<Cow<'a, str>> {
        let telling = self.family.map_or(&[][..], |family| family.telling);
        let values = telling.iter().filter_map(|name| self.argument(name));
        let mut told = values.filter_map(told).filter(|told| !is_blank(told));
        let told = told.next().or_else(|| self.patched_files());
        told.or_else(|| self.short())
    }

    pub fn access(&self) -> FileAccess {
        match self.family.map_or(FileAccess::None, |family| family.access) {
            // Some editors have one tool that both reads and changes files. This tool names the operation in `command`.
            FileAccess::Change => match self.text("command") {
                Some(command) if command == "view" => FileAccess::Read,
                _ => FileAccess::Change,
            },
            access => access,
        }
    }

    /// The files that the call reads or changes, if its arguments name them.
    pub fn files(&self) -> BTreeSet<Cow<'a, str>> {
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

    /// The raw value of an argument. Of duplicate arguments, the last one counts.
    pub(super) fn argument(&self, name: &str) -> Option<&'a [u8]> {
        let mut arguments = self.arguments.iter().rev();
        let (_, value) = arguments.find(|(key, _)| **key == *name.as_bytes())?;
        Some(value)
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.argument(name).and_then(json::string)
    }

    /// The patch in the format of Codex, if the arguments of a tool that changes files have one.
    pub fn patch(&self) -> Option<Cow<'a, str>> {
        if self.family?.access != FileAccess::Change {
            return None;
        }
        let mut texts = PATCHES.iter().filter_map(|name| self.text(name));
        texts.find(|text| text.contains("*** Begin Patch"))
    }

    pub(super) fn patched_files(&self) -> Option<Cow<'a, str>> {
        let patch = self.patch()?;
        let files: Vec<_> = patched(&patch).take(MOST_ELEMENTS).collect();
        (!files.is_empty()).then(|| Cow::Owned(files.join(", ")))
    }

    pub(super) fn short(&self) -> Option<Cow<'a, str>> {
        let is_short = |value: &&[u8]| json::chars(value).take(SHORT + 1).count() <= SHORT;
        let values = self.arguments.iter().map(|(_, value)| *value);
        let mut texts = values.filter(is_short).filter_map(json::string);
        texts.find(|text| !is_blank(text))
    }
}

/// One name for all tools with the same purpose: `bash`, `read`, `write`, `edit`, `grep`, `glob`, `ls`, `webfetch` and
/// others; `None` for an unknown tool.
pub fn common_name(name: &str) -> Option<&'static str> {
    family(name)?.names.first().copied()
}

/// How rows describe the results of the tool with this name.
pub(crate) fn saying(name: &str) -> Saying {
    family(name).map_or(Saying::Line, |family| family.saying)
}

pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

pub(super) fn family(name: &str) -> Option<&'static Family> {
    let of = |name: &str| {
        let mut families = FAMILIES.iter();
        families.find(|family| family.names.contains(&name))
    };
    // Most names are in the table as they are written.
    of(name).or_else(|| of(&normalized(name)))
}

/// The name without its prefix (`developer__shell`, `container.exec`), in lower case, and without the characters
/// between its words.
pub(super) fn normalized(name: &str) -> String {
    let own = name.rsplit("__").next().unwrap_or(name);
    let letters = own.chars().filter(|char| char.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The members of an object, up to the first byte that cannot be read.
pub(super) fn members(object: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, &[u8])> {
    let mut members = Members::open(object, 0).ok();
    std::iter::from_fn(move || {
        let member = members.as_mut()?.next_member().ok()??;
        Some((member.name(object), object.get(member.value.clone())?))
    })
}

pub(super) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut elements = Elements::open(array, 0).ok();
    std::iter::from_fn(move || array.get(elements.as_mut()?.next_value().ok()??))
}

/// The strings of an array.
pub(super) fn strings(array: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    elements(array).filter_map(json::string)
}

/// The text of an argument: a string, the words of a command, or the most descriptive text of an object.
pub(super) fn told(value: &[u8]) -> Option<Cow<'_, str>> {
    match value.first()? {
        b'"' => json::string(value),
        b'[' => words(value).or_else(|| told_in(elements(value).next()?)),
        _ => told_in(value),
    }
}

pub(super) fn told_in(object: &[u8]) -> Option<Cow<'_, str>> {
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

/// The words of an array, joined. For `["bash", "-lc", "…"]`, only the command for the shell.
pub(super) fn words(array: &[u8]) -> Option<Cow<'_, str>> {
    let mut words: Vec<_> = strings(array).take(MOST_ELEMENTS).collect();
    match &*words {
        [] => None,
        [_, flag, _] if flag == "-lc" || flag == "-c" => words.pop(),
        words => Some(Cow::Owned(words.join(" "))),
    }
}

/// The files that a patch in the format of Codex names.
pub(super) fn patched(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| {
        let (what, path) = line.strip_prefix("*** ")?.split_once(" File: ")?;
        matches!(what, "Add" | "Update" | "Delete").then(|| path.trim())
    })
}
