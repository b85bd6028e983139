//! The documents of the contract in `schema/`: references lead to headings, the named tests exist, the examples are
//! valid, and no file refers to a document that is not in the repository.

mod examples;
mod plugins;

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The documents by the names under which other files refer to them.
const DOCUMENTS: &[(&str, &str)] = &[
    ("protocol.md", "protocol.md"),
    ("session-file.md", "session-file.md"),
    ("semantics.md", "semantics.md"),
    ("files.md", "files.md"),
    ("usage.md", "usage.md"),
];

/// The folders of files that people write and read.
const FOLDERS: &[&str] = &["src", "tests", "clients", "schema", ".ci", ".github"];
/// The folders of generated files, in addition to hidden folders.
const MADE: &[&str] = &[
    "node_modules",
    "target",
    "venv",
    "out",
    "dist",
    "__pycache__",
];
/// Extensions of files without comments.
const WITHOUT_COMMENTS: &[&str] = &["json", "jsonl", "lock", "tsv", "png"];

/// A text file of the repository.
struct Source {
    /// Relative to the root.
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// The file and line of a byte of the text, for messages.
    fn place(&self, at: usize) -> String {
        let line = self.text[..at].matches('\n').count() + 1;
        format!("{}:{line}", self.path)
    }

    /// The name of the document, if this file is one.
    fn document(&self) -> Option<&str> {
        let name = self.path.strip_prefix("schema/")?;
        let mut documents = DOCUMENTS.iter().map(|(_, name)| *name);
        documents.find(|document| *document == name)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file, except the files of this module, which contain the text that is searched for.
fn sources() -> Vec<Source> {
    let files = all_sources().into_iter();
    files
        .filter(|source| !source.path.starts_with("tests/it/documents/"))
        .collect()
}

fn all_sources() -> Vec<Source> {
    let mut paths = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            let is_made = is_hidden || MADE.iter().any(|made| name == *made);
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && !is_made {
                folders.push(entry.path());
            } else if kind.is_file() {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        let path = path.strip_prefix(root()).ok()?.to_str()?;
        Some(Source::new(path, &text))
    };
    paths.into_iter().filter_map(read).collect()
}

/// A pattern that is compiled once, when it is first used.
macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).unwrap());
    };
}
use pattern;

#[track_caller]
fn check(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

// ---------------------------------------------------------------------------------------------
// References to sections

/// The numbers of the headings `## 1. …` and `### 1.2 …`.
fn headings(text: &str) -> BTreeSet<&str> {
    pattern!(HEADING, r"(?m)^(?:## (\d+)\. |### (\d+\.\d+) )\S");
    let number = |found: regex::Captures<'_>| {
        let number = found.get(1).or_else(|| found.get(2)).unwrap();
        &text[number.range()]
    };
    HEADING
        .captures_iter(text)
        .map(|found| {
            let start = found.get(0).unwrap().start();
            assert!(
                !is_in_fence(text, start),
                "a heading in an example: {found:?}"
            );
            number(found)
        })
        .collect()
}

fn is_in_fence(text: &str, at: usize) -> bool {
    let fences = text[..at].lines().filter(|line| line.starts_with("```"));
    fences.count() % 2 == 1
}

/// The wrong references to sections in a file. `§3` after the name of a document refers to that document. Without a
/// name it refers to the document in which it is.
fn reference_faults(
    source: &Source,
    headings: &BTreeMap<&str, BTreeSet<&str>>,
) -> (usize, Vec<String>) {
    pattern!(REFERENCE, r"([\w-]+\.md)|RFC \d+ §|§\s*(\d+(?:\.\d+)*)?");
    pattern!(BETWEEN, r"^(?:[\s,;/!#*`–-]|\band\b|\bor\b|\bto\b)*$");
    let (mut count, mut faults) = (0, Vec::new());
    let mut last: Option<(&str, usize)> = None;
    for found in REFERENCE.captures_iter(&source.text) {
        let whole = found.get(0).unwrap();
        if let Some(name) = found.get(1) {
            last = Some((name.as_str(), whole.end()));
            continue;
        }
        if whole.as_str().starts_with("RFC") {
            continue;
        }
        count += 1;
        let place = source.place(whole.start());
        let Some(number) = found.get(2).map(|number| number.as_str()) else {
            faults.push(format!("{place}: § without a number"));
            continue;
        };
        let named = last.filter(|(_, end)| BETWEEN.is_match(&source.text[*end..whole.start()]));
        let name = named.map(|(name, _)| name).or(source.document());
        if let Some((_, end)) = last.as_mut().filter(|_| named.is_some()) {
            *end = whole.end();
        }
        let Some(name) = name else {
            faults.push(format!("{place}: §{number} of which document?"));
            continue;
        };
        let document = DOCUMENTS.iter().find(|(other, _)| *other == name);
        let sections = document.and_then(|(_, document)| headings.get(document));
        match sections {
            Some(sections) if sections.contains(number) => {}
            Some(_) => faults.push(format!("{place}: {name} has no §{number}")),
            None => faults.push(format!("{place}: there is no {name}")),
        }
    }
    (count, faults)
}

#[test]
fn every_reference_to_a_section_has_its_heading() {
    let sources = sources();
    let documents = sources.iter().filter_map(|source| {
        let document = source.document()?;
        Some((document, headings(&source.text)))
    });
    let headings: BTreeMap<&str, BTreeSet<&str>> = documents.collect();
    let (mut count, mut faults) = (0, Vec::new());
    for source in &sources {
        let (found, wrong) = reference_faults(source, &headings);
        count += found;
        faults.extend(wrong);
    }
    check(faults);
    assert!(count > 100, "{count} references");
}

#[test]
fn a_reference_without_a_heading_is_found() {
    let text = "## 1. One\n### 1.2 Two\n## 3. Three\n";
    let headings = BTreeMap::from([("protocol.md", headings(text))]);
    let faults = |path: &str, text: &str| {
        let (_, faults) = reference_faults(&Source::new(path, text), &headings);
        faults.into_iter().map(|fault| {
            let (_, fault) = fault.split_once(": ").unwrap();
            fault.to_owned()
        })
    };
    let found = |text: &str| faults("src/x.rs", text).collect::<Vec<_>>();
    for sound in [
        "protocol.md §1",
        "protocol.md §1, §1.2 and §3",
        "protocol.md\n//! §1–§3",
        "RFC 9110 §5.6",
        "protocol.md without a section",
    ] {
        assert!(found(sound).is_empty(), "{sound}");
    }
    assert_eq!(found("protocol.md §2"), ["protocol.md has no §2"]);
    assert_eq!(found("protocol.md §1, §1.3"), ["protocol.md has no §1.3"]);
    assert_eq!(found("semantics.md §1"), ["there is no semantics.md"]);
    assert_eq!(found("other.md §1"), ["there is no other.md"]);
    assert_eq!(
        found("protocol.md says. §1"),
        ["§1 of which document?"],
        "a sentence lies between"
    );
    assert_eq!(found("protocol.md §"), ["§ without a number"]);
    let own = |text: &str| faults("schema/protocol.md", text).collect::<Vec<_>>();
    assert!(own("see §3").is_empty());
    assert_eq!(own("see §4"), ["protocol.md has no §4"]);
}

// ---------------------------------------------------------------------------------------------
// Tests named in documents

/// The names of the tests in the Rust files below a folder, by module: `log::recover::tests::name`.
fn tests_below(folder: &str, sources: &[Source]) -> BTreeSet<String> {
    pattern!(
        TEST,
        r"(?m)^mod (\w+) \{|^(\})|#\[(?:tokio::)?test\b[^\]]*\]\s*(?:(?:#\[[^\]]*\]|//.*)\s*)*(?:async )?fn (\w+)"
    );
    let mut names = BTreeSet::new();
    for source in sources {
        let module = source.path.strip_prefix(folder);
        let Some(module) = module.and_then(|path| path.strip_suffix(".rs")) else {
            continue;
        };
        let module = module.strip_suffix("/mod").unwrap_or(module);
        let module = module.replace('/', "::");
        let mut inner = String::new();
        for found in TEST.captures_iter(&source.text) {
            if let Some(name) = found.get(1) {
                inner = format!("{}::", name.as_str());
            } else if found.get(2).is_some() {
                inner.clear();
            } else {
                names.insert(format!("{module}::{inner}{}", &found[3]));
            }
        }
    }
    names
}

/// The tests in the footnotes of a document, `[^1.1-1]: test: module::name, module::other; lib: module::name`. The faults
/// are tests that do not exist, labels without a footnote or a rule, and tests named within the text.
fn test_faults(source: &Source, tests: &BTreeMap<&str, BTreeSet<String>>) -> (usize, Vec<String>) {
    pattern!(FOOTNOTE, r"(?m)^\[\^([^\]]+)\]: (.*)$");
    pattern!(LABEL, r"\[\^([^\]\s]+)\](:?)");
    // Without the explaining sentences, which have the names in code spans.
    pattern!(
        INLINE,
        r"(?m)^\[\^.*$|\((?:tests?|lib|fleet):\s|[^`\w](?:tests?|lib|fleet):\s+\w+::\w"
    );
    let (mut count, mut faults) = (0, Vec::new());
    let mut footnotes = BTreeSet::new();
    for found in FOOTNOTE.captures_iter(&source.text) {
        let place = source.place(found.get(0).unwrap().start());
        if !footnotes.insert(found.get(1).unwrap().as_str()) {
            faults.push(format!("{place}: a second footnote {:?}", &found[1]));
        }
        for part in found[2].split("; ") {
            let (kind, names) = part.split_once(": ").unwrap_or((part, ""));
            for name in names.split(',').map(str::trim) {
                count += 1;
                if !tests.get(kind).is_some_and(|tests| tests.contains(name)) {
                    faults.push(format!("{place}: there is no {kind} {name:?}"));
                }
            }
        }
    }
    let labels = LABEL.captures_iter(&source.text);
    let labels: BTreeSet<&str> = labels
        .filter(|found| found[2].is_empty())
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    for label in labels.symmetric_difference(&footnotes) {
        faults.push(format!(
            "{}: [^{label}] needs a rule and a footnote",
            source.path
        ));
    }
    let inline = INLINE.find_iter(&source.text);
    for found in inline.filter(|found| !found.as_str().starts_with("[^")) {
        let place = source.place(found.start());
        faults.push(format!("{place}: name the test in a footnote"));
    }
    (count, faults)
}

#[test]
fn every_test_that_a_document_names_exists() {
    let sources = all_sources();
    let tests = tests_below("tests/it/", &sources);
    let mut lib = tests_below("src/", &sources);
    let wings = "core files wire import find pages fleet service";
    for wing in wings.split(' ') {
        lib.extend(tests_below(&format!("src/{wing}/"), &sources));
    }
    // A part of `redact` is a separate crate, which the MCP server uses too.
    let part = tests_below("clients/redact/src/", &sources);
    lib.extend(part.into_iter().map(|name| format!("redact::{name}")));
    // The tests of the simulation, of the package that saves files, and of the MCP server.
    for (folder, name) in [
        ("tests/simulation/", "simulation"),
        ("clients/files/src/", "snapshots"),
        ("clients/files/tests/it/", "snapshots::it"),
        ("clients/mcp/tests/it/", "mcp::it"),
    ] {
        let package = tests_below(folder, &sources);
        lib.extend(package.into_iter().map(|test| format!("{name}::{test}")));
    }
    let fleet = tests_below("tests/fleet/", &sources);
    let tests = BTreeMap::from([("test", tests), ("lib", lib), ("fleet", fleet)]);
    let (mut faults, mut all) = (Vec::new(), 0);
    for source in &sources {
        if source.path.starts_with("schema/") && source.path.ends_with(".md")
            || source.path == ".github/SECURITY.md"
        {
            let (count, wrong) = test_faults(source, &tests);
            faults.extend(wrong);
            all += count;
        }
    }
    check(faults);
    assert!(all > 1_000, "{all} tests");
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let code =
        "#[test]\nfn one() {}\nfn no_test() {}\nmod tests {\n    #[test]\n    fn two() {}\n}";
    let sources = [
        Source::new("tests/it/a.rs", code),
        Source::new("tests/it/b/mod.rs", code),
    ];
    let tests = tests_below("tests/it/", &sources);
    let names: Vec<&str> = tests.iter().map(String::as_str).collect();
    assert_eq!(
        names,
        ["a::one", "a::tests::two", "b::one", "b::tests::two"]
    );
    let tests = BTreeMap::from([("test", tests), ("lib", BTreeSet::new())]);
    let faults = |text: &str| {
        let source = Source::new("schema/protocol.md", text);
        test_faults(&source, &tests).1
    };
    let sound = "The footnotes: `test: a::one` is a function. A rule.[^1-1] Another one,[^1-2] and again.[^1-1]\n\n[^1-1]: test: a::one, b::tests::two\n[^1-2]: test: b::one\n";
    assert!(faults(sound).is_empty(), "{:?}", faults(sound));
    for broken in [
        "test: a::no_test",
        "test: a::one, a::three",
        "test: one",
        "test: ",
        "lib: a::one",
        "other: a::one",
        "a::one",
    ] {
        let text = format!("A rule.[^1-1]\n\n[^1-1]: {broken}\n");
        assert_eq!(faults(&text).len(), 1, "{broken}");
    }
    for broken in [
        "A rule.[^1-1]\n",
        "A rule.\n\n[^1-1]: test: a::one\n",
        "A rule.[^1-1]\n\n[^1-1]: test: a::one\n[^1-1]: test: b::one\n",
        "A rule (test: a::one).\n",
        "A rule (§5, test: a::one).\n",
        "A rule (see above; tests:\na::one, b::one).\n",
    ] {
        assert_eq!(faults(broken).len(), 1, "{broken}");
    }
}

// ---------------------------------------------------------------------------------------------
// Documents that do not exist

/// References to documents that are not in the repository: in comments, and in the prose of documents.
fn stray_faults(source: &Source, names: &BTreeSet<String>) -> Vec<String> {
    let (_, ending) = source.path.rsplit_once('.').unwrap_or_default();
    if WITHOUT_COMMENTS.contains(&ending) {
        return Vec::new();
    }
    pattern!(COMMENT, r"(?:^|\s)(?://[/!]?|#!?|--+|/\*+|\*) (.*)");
    pattern!(DOCUMENT, r"[\w-]+\.md\b");
    pattern!(
        STRAY,
        r#"\.\./shared|\b[Tt]he issue\b|\b[Ii]ssue "|\bdecisions §"#
    );
    let mut faults = Vec::new();
    let mut is_example = false;
    for (number, line) in source.text.lines().enumerate() {
        let prose = match ending {
            "md" => {
                is_example ^= line.trim_start().starts_with("```");
                (!is_example).then_some(line)
            }
            _ => COMMENT
                .captures(line)
                .map(|found| found.get(1).unwrap().as_str()),
        };
        let prose = prose.unwrap_or_default();
        let documents = DOCUMENT.find_iter(prose).map(|found| found.as_str());
        let missing = documents.filter(|name| {
            !names.contains(*name) && !DOCUMENTS.iter().any(|(known, _)| known == name)
        });
        let strays = STRAY.find_iter(prose).map(|found| found.as_str());
        for found in missing.chain(strays) {
            faults.push(format!("{}:{}: {found}", source.path, number + 1));
        }
    }
    faults
}

#[test]
fn no_file_refers_to_a_document_that_is_not_here() {
    let sources = sources();
    let name = |source: &Source| {
        let (_, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
        name.to_owned()
    };
    let names = sources.iter().map(name);
    let names = names.collect();
    let revised = sources.iter();
    check(
        revised
            .flat_map(|source| stray_faults(source, &names))
            .collect(),
    );
}

#[test]
fn a_reference_to_a_document_that_is_not_here_is_found() {
    let names = BTreeSet::from(["README.md".to_owned()]);
    let faults = |path: &str, text: &str| stray_faults(&Source::new(path, text), &names).len();
    assert_eq!(
        faults(
            "src/a.rs",
            "//! README.md, protocol.md §1\nlet x = \"notes.md\";"
        ),
        0
    );
    assert_eq!(
        faults("a.md", "README.md\n\n```sh\nedit notes.md\n```\n"),
        0
    );
    assert_eq!(faults("a.json", "# notes.md"), 0);
    for (path, broken) in [
        ("src/a.rs", "//! As in notes.md."),
        ("src/a.rs", "    let x = 1; // see the issue"),
        ("tests/a.py", "# issue \"The daemon\""),
        ("clients/a.lua", "-- ../shared/design"),
        ("tests/a.rs", "// decisions §18"),
        ("schema/protocol.md", "As notes.md says."),
    ] {
        assert_eq!(faults(path, broken), 1, "{broken}");
    }
}
