//! README.md, tests/README.md and the folder `schema` agree with the program and its tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::by_id;
use crate::harness::*;

/// The path of a file of the repository.
pub(crate) fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn readme() -> String {
    fs::read_to_string(root("README.md")).unwrap()
}

#[test]
fn the_schema_folder_equals_the_output_of_the_program() {
    let home = Home::new();
    let out = home.files().join("new/schema");
    home.run(&["schema", "--out", out.to_str().unwrap()], &[], "")
        .clean();
    let texts = |folder: &Path| {
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path());
        let by_hand = [
            "agents.tsv",
            "book.toml",
            "commands.txt",
            "errors.md",
            "files.md",
            "fleet.md",
            "guide.md",
            "keys.tsv",
            "plugins.md",
            "protocol.md",
            "semantics.md",
            "session-file.md",
            "stores.md",
            "usage.md",
        ];
        let mut texts: Vec<_> = files
            .filter(|path| !by_hand.iter().any(|name| path.ends_with(name)))
            .map(|path| {
                (
                    path.file_name().unwrap().to_owned(),
                    fs::read_to_string(&path).unwrap(),
                )
            })
            .collect();
        texts.sort();
        texts
    };
    let (written, kept) = (texts(&out), texts(&root("schema")));
    assert_eq!(written.len(), 5);
    assert!(written == kept, "stale: cargo run -- schema --out schema");
}

/// The list of methods for README.md, made from `schema/methods.json`.
fn method_list() -> String {
    let text = fs::read_to_string(root("schema/methods.json")).unwrap();
    let document: Json = serde_json::from_str(&text).unwrap();
    let mut list = String::from("| method | |\n|---|---|\n");
    for group in document["groups"].as_array().unwrap() {
        let (name, summary) = (&group["name"], group["summary"].as_str().unwrap());
        list += &format!("| **{}** | *{summary}* |\n", name.as_str().unwrap());
        for method in document["methods"].as_array().unwrap() {
            if method["group"] == *name {
                let (name, summary) = (&method["name"], &method["summary"]);
                let (name, summary) = (name.as_str().unwrap(), summary.as_str().unwrap());
                list += &format!("| `{name}` | {summary} |\n");
            }
        }
    }
    list
}

/// With `TREELINED_UPDATE=1` the test writes the list into README.md.
#[test]
fn the_readme_lists_every_method_with_its_summary() {
    const MARKS: [&str; 2] = ["<!-- methods -->\n", "<!-- /methods -->"];
    let readme = readme();
    let start = readme.find(MARKS[0]).expect(MARKS[0]) + MARKS[0].len();
    let end = readme.find(MARKS[1]).expect(MARKS[1]);
    let list = method_list();
    if std::env::var_os("TREELINED_UPDATE").is_some() {
        let updated = [&readme[..start], &list, &readme[end..]].concat();
        fs::write(root("README.md"), updated).unwrap();
        return;
    }
    assert!(
        readme[start..end] == list,
        "stale: TREELINED_UPDATE=1 cargo test --test it the_readme_lists"
    );
}

/// Users can paste the conversation of README.md into a shell without changes.
#[test]
fn the_conversation_in_the_readme_works() {
    let readme = readme();
    let start = readme
        .find("export TREELINED_SESSION_DIR")
        .expect("the script");
    let script = &readme[start..start + readme[start..].find("```").unwrap()];
    let home = Home::new();
    let shell = home.command(&[], &[]);
    let program = Path::new(shell.get_program());
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let output = Command::new("bash")
        .args(["-euc", script])
        .env("PATH", path)
        .env("TMPDIR", home.files())
        .env("HOME", home.files())
        .env("COLUMNS", "84")
        .current_dir(home.cwd())
        .output()
        .unwrap();
    let (said, complaints) = (String::from_utf8(output.stdout).unwrap(), output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{}",
        String::from_utf8_lossy(&complaints)
    );
    let messages: Vec<Json> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    for id in 1..=7 {
        by_id(&messages, id);
    }
    let drawn = said.split_once("A tour\n").expect("the tree").1;
    let shown = readme
        .split_once("\nA tour\n")
        .expect("the tree")
        .1
        .split_once("```")
        .unwrap()
        .0;
    // The working directory of a reader differs from the one in README.md.
    let cwd = home.cwd().display().to_string();
    assert_eq!(
        drawn.replace(&cwd, "/home/ada/project"),
        shown,
        "the README shows what the program draws"
    );
}

#[test]
fn the_import_and_the_search_of_the_readme_print_what_it_shows() {
    let readme = readme();
    let home = Home::new();
    let shown = |args: &[&str]| {
        let output = home.command(args, &[("TZ", "UTC")]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        // README.md shows the path relative to this repository.
        let printed = printed.replace(root("").to_str().unwrap(), "");
        for line in printed.lines().filter(|line| !line.is_empty()) {
            let line = line.trim_end();
            assert!(readme.contains(line), "the README does not show {line:?}");
        }
    };
    let samples = root("tests/data/import/codex");
    shown(&["import", "--final", samples.to_str().unwrap()]);
    shown(&["tree", "cdadbb0a"]);
    shown(&["search", "third", "question", "--limit", "2"]);
    shown(&["go", "cdadbb0a", "68f6"]);
}

/// The full names of all tests in the sources below this folder. `module` is the name of the folder's module.
fn test_names(folder: &Path, module: &str, found: &mut Vec<String>) {
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            test_names(&path, &format!("{module}{name}::"), found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let module = match name.as_str() {
                "mod" | "main" => module.to_owned(),
                _ => format!("{module}{name}::"),
            };
            let text = fs::read_to_string(&path).unwrap();
            let tests = text.split("#[test]\n").skip(1);
            found.extend(tests.map(|test| {
                let name = test.split_once("fn ").unwrap().1.split('(').next().unwrap();
                format!("{module}{name}")
            }));
        }
    }
}

#[test]
fn every_test_named_in_tests_readme_exists() {
    let mut tests = Vec::new();
    test_names(&root("tests/it"), "", &mut tests);
    let text = fs::read_to_string(root("tests/README.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut count = 0;
    for row in rows {
        let named = row.rsplit_once("| `").expect("every named test exists").1;
        for name in named.trim_end_matches("` |").split("`, `") {
            let exists = tests.iter().any(|test| test.starts_with(name));
            assert!(exists, "no test begins with {name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count} names");
}
