//! Checks the architecture: the imports between modules of `src`, the pure modules, and the lengths of files
//! and functions. The table of modules is in README.md.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that pure modules must not use: the system, threads, locks, the runtime, the clock.
const IMPURE: &str =
    r"\b(std::(fs|thread|net|process|env|os)|tokio|rustix|Mutex|RwLock|Instant|SystemTime)\b";
/// The names of one operating system's items and devices, and the conditions on a system.
const SYSTEM: &str = r#"\b(std::os|rustix|libc|nix|close_fds|listenfd|winapi_util|tokio::signal|tokio::net::(unix|Unix\w+))(::|\b)|process_group\(|cfg\(.*(unix|windows|target_os)|"/(proc|dev/fd|dev/tty)"#;
const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 80;
/// Tables, which may be longer: a table is read row by row.
const TABLES: &[&str] = &["src/wire/methods.rs"];

type Imports = BTreeMap<String, BTreeSet<String>>;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The rows of README's table: name, purpose, "pure" or nothing, imports.
fn table() -> Vec<[String; 4]> {
    let readme = read("README.md");
    let (_, table) = readme.split_once("<!-- modules -->").expect("a table");
    let (table, _) = table.split_once("<!-- /modules -->").expect("its end");
    let rows = table
        .lines()
        .skip(3)
        .filter(|line| !line.starts_with("| **"));
    let row = |line: &str| {
        let cells = line.trim_matches('|').split('|');
        let cells: Vec<String> = cells
            .map(|cell| cell.replace('`', "").trim().to_owned())
            .collect();
        cells.try_into().expect("four cells in each row")
    };
    rows.map(row).collect()
}

/// The Rust files below `folder`, by their paths in the project, with their text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).unwrap();
        let (inner, files): (Vec<PathBuf>, _) = entries
            .map(|entry| entry.unwrap().path())
            .partition(|path| path.is_dir());
        folders.extend(inner);
        for file in files {
            if file.extension().is_some_and(|extension| extension == "rs") {
                let path = file.strip_prefix(root).unwrap().to_str().unwrap();
                found.push((path.to_owned(), read(path)));
            }
        }
    }
    found
}

/// The code of each module of `src`, without comments and tests.
fn modules() -> BTreeMap<String, String> {
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for (path, text) in sources("src") {
        let module = path.split('/').nth(1).unwrap().trim_end_matches(".rs");
        if path.contains("/tests") || matches!(module, "lib" | "main") {
            continue;
        }
        let (code, _) = text
            .split_once("#[cfg(test)]\nmod tests {")
            .unwrap_or((&text, ""));
        let code = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let whole = modules.entry(module.to_owned()).or_default();
        whole.extend(code.flat_map(|line| [line, "\n"]));
    }
    modules
}

fn imports() -> Imports {
    let path = Regex::new(r"\bcrate::(\w+|\{)").unwrap();
    let imports = modules().into_iter().map(|(module, code)| {
        let names = path.captures_iter(&code).map(|found| found[1].to_owned());
        let names: BTreeSet<String> = names.filter(|name| *name != module).collect();
        assert!(
            !names.contains("{"),
            "{module}: write one `use` for each module"
        );
        (module, names)
    });
    imports.collect()
}

#[test]
fn modules_import_exactly_what_the_readme_allows() {
    let (actual, allowed) = (imports(), table());
    let names: BTreeSet<&String> = allowed.iter().map(|[name, ..]| name).collect();
    assert_eq!(
        names,
        actual.keys().collect(),
        "rows of README.md, modules of src"
    );
    for [module, .., allowed] in &allowed {
        let allowed = allowed.split_whitespace().map(str::to_owned).collect();
        let (actual, allowed): (_, BTreeSet<String>) = (&actual[module], allowed);
        let more: Vec<_> = actual.difference(&allowed).collect();
        assert!(
            more.is_empty(),
            "README.md does not allow `{module}` to import {more:?}"
        );
        let less: Vec<_> = allowed.difference(actual).collect();
        assert!(
            less.is_empty(),
            "README.md lists imports that `{module}` does not have: {less:?}"
        );
    }
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let mut left = imports();
    while let Some(name) = left
        .iter()
        .find(|(_, imports)| imports.is_empty())
        .map(|(name, _)| name.clone())
    {
        left.remove(&name);
        for imports in left.values_mut() {
            imports.remove(&name);
        }
    }
    assert!(
        left.is_empty(),
        "in a cycle, or importing a module of a cycle: {left:#?}"
    );
}

#[test]
fn pure_modules_name_no_system_thread_lock_or_clock() {
    let (modules, table) = (modules(), table());
    let impure = Regex::new(IMPURE).unwrap();
    let pure: BTreeSet<&str> = table
        .iter()
        .filter(|[_, _, pure, _]| pure == "pure")
        .map(|[name, ..]| &**name)
        .collect();
    assert!(pure.contains("tree") && pure.contains("flow"), "{pure:?}");
    for [name, _, _, imports] in table.iter().filter(|[name, ..]| pure.contains(&**name)) {
        let found = modules[name].lines().find(|line| impure.is_match(line));
        assert_eq!(found, None, "`{name}` is pure");
        let imported = imports.split_whitespace().find(|name| !pure.contains(name));
        assert_eq!(imported, None, "`{name}` is pure");
    }
    // The crate that the pure module `redact` imports.
    for (path, text) in sources("clients/redact/src") {
        let found = text.lines().find(|line| impure.is_match(line));
        let is_test = path.ends_with("tests.rs");
        assert!(is_test || found.is_none(), "{path} is pure: {found:?}");
    }
}

/// Some 35 files named Unix items, so that the program could be built nowhere else, and nobody saw on what it depends.
#[test]
fn only_the_module_os_names_an_operating_system() {
    let system = Regex::new(SYSTEM).unwrap();
    let modules = modules();
    assert!(system.is_match(&modules["os"]), "the pattern finds them");
    for (module, code) in modules.iter().filter(|(module, _)| *module != "os") {
        let found = code.lines().find(|line| system.is_match(line));
        assert_eq!(found, None, "`{module}` names a system: put it behind `os`");
    }
}

#[test]
fn the_map_in_lib_rs_is_that_of_the_readme() {
    let source = read("src/lib.rs").replace('`', "");
    let map: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("//! - "))
        .collect();
    let rows = table()
        .into_iter()
        .map(|[name, purpose, ..]| format!("{name}: {purpose}"));
    assert_eq!(map, rows.collect::<Vec<_>>());
}

#[test]
fn files_and_functions_are_short() {
    let function =
        Regex::new(r"(?m)^( *)(pub(\(.*?\))? )?(async |const |unsafe )*fn (\w+)[^;{]*\{$").unwrap();
    let mut long = BTreeSet::new();
    let folders = ["src", "clients/redact/src", "tests/it", "tests/bench/src"];
    for (path, text) in folders.iter().flat_map(|folder| sources(folder)) {
        if text.lines().count() > MAX_FILE_LINES && !TABLES.contains(&&*path) {
            long.insert(path.clone());
        }
        for found in function.captures_iter(&text) {
            let (_, body) = text.split_at(found.get(0).unwrap().start());
            let end = body
                .find(&format!("\n{}}}\n", &found[1]))
                .expect("formatted code");
            if body[..end].lines().count() >= MAX_FUNCTION_LINES {
                long.insert(format!("{path}: {}", &found[5]));
            }
        }
    }
    assert!(
        long.is_empty(),
        "over {MAX_FILE_LINES} or {MAX_FUNCTION_LINES} lines: {long:#?}"
    );
}
