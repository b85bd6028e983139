//! README.md, tests/README.md and the folder `schema` match the program and its tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::by_id;
use crate::harness::*;

/// A file of the package.
pub fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn readme() -> String {
    fs::read_to_string(root("README.md")).unwrap()
}

#[test]
fn the_schema_folder_is_what_the_program_writes() {
    let home = Home::new();
    let out = home.files().join("new/schema");
    home.run(&["schema", "--out", out.to_str().unwrap()], &[], "")
        .clean();
    let texts = |folder: &Path| {
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path());
        // CHANGES.md is written by hand.
        let mut texts: Vec<_> = files
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
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
    assert_eq!(written.len(), 4);
    assert!(written == kept, "stale: cargo run -- schema --out schema");
}

#[test]
fn the_readme_has_every_method_with_its_params() {
    let document = |name: &str| -> Json {
        serde_json::from_str(&fs::read_to_string(root("schema").join(name)).unwrap()).unwrap()
    };
    let (wire, list) = (document("treelined.v1.json"), document("methods.json"));
    let readme = readme();
    let rows: Vec<&str> = readme
        .lines()
        .filter(|line| line.starts_with("| `") && !line.starts_with("| `treelined"))
        .collect();
    let expected: Vec<String> = list["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| {
            let (_, definition) = method["params"]["$ref"]
                .as_str()
                .unwrap()
                .rsplit_once('/')
                .unwrap();
            let params = &wire["$defs"][definition];
            let required = |name: &str| {
                params["required"]
                    .as_array()
                    .is_some_and(|r| r.contains(&json!(name)))
            };
            let names = params["properties"]
                .as_object()
                .into_iter()
                .flat_map(|p| p.keys());
            let names: Vec<String> = names
                // These params are explained once for all methods.
                .filter(|name| {
                    required(name) || !["sessionId", "expectedLeafId"].contains(&name.as_str())
                })
                .map(|name| format!("`{name}{}`", if required(name) { "" } else { "?" }))
                .collect();
            let (name, summary) = (&method["name"], &method["summary"]);
            format!(
                "| `{}` | {} | {} |",
                name.as_str().unwrap(),
                names.join(" "),
                summary.as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_readme_has_the_map_of_the_source() {
    let words = |text: &str| -> String {
        let start = text.find("- **The words.**").expect("the map");
        let end = start + text[start..].find("then answers.").expect("its end");
        let plain = text[start..end]
            .replace("[`", "`")
            .replace("`]", "`")
            .replace("//!", "");
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let source = fs::read_to_string(root("src/lib.rs")).unwrap();
    assert_eq!(words(&readme()), words(&source));
    for module in source
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "))
    {
        let module = module.trim_end_matches(';');
        assert!(
            source.contains(&format!("[`{module}`]:")),
            "{module} is not on the map"
        );
    }
}

/// The conversation is pasted into a shell as it is.
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
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().skip(2).take_while(|line| !line.is_empty());
        rows.map(str::to_owned).collect()
    };
    assert_eq!(rows(drawn), rows(shown), "what it draws is what is shown");
}

/// The full names of all tests, from the sources below this folder; `module` is the folder's own name.
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
        let named = row.rsplit_once("| `").expect("a promise has a test").1;
        for name in named.trim_end_matches("` |").split("`, `") {
            let exists = tests.iter().any(|test| test.starts_with(name));
            assert!(exists, "no test begins with {name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count} names");
}
