//! Checks the architecture: the wings and what each may use, the imports between their modules, the pure modules, and
//! the lengths of files and functions. The tables of wings and modules are in README.md.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that modules without I/O must not use: the system, threads, locks, the runtime, the clock, random numbers, and
/// the methods of paths that read the disk.
const IMPURE: &str = r"\b(std::(fs|thread|net|process|env|os)|tokio|rustix|getrandom|Mutex|RwLock|Instant|SystemTime|Uuid::(new_v[1467]|now_v\d))\b|\.(exists|try_exists|is_file|is_dir|canonicalize|read_dir|symlink_metadata)\(\)";
/// The methods of paths that read the disk without `os`.
const PATH_READS: &str =
    r"\.(exists|try_exists|is_file|is_dir|canonicalize|read_dir|read_link|symlink_metadata)\(\)";
/// The names of items and devices of one operating system, and conditions on the operating system.
const SYSTEM: &str = r#"\b(std::os|rustix|libc|nix|close_fds|listenfd|winapi_util|tokio::signal|tokio::net::(unix|Unix\w+))(::|\b)|process_group\(|cfg\(.*(unix|windows|target_os)|"/(proc|dev/fd|dev/tty)"#;
const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 80;
/// Files that are tables. They may be longer, since a reader looks up single rows.
const TABLES: &[&str] = &["src/wire/methods.rs"];
/// Modules of wings that are one module each. The files of such a wing are siblings of its module here.
const INNER: &[&str] = &["importer", "schema"];

/// The most files of the service that may use one of its files.
const MOST_USERS: usize = 12;

type Names = BTreeSet<String>;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The cells of the rows of a table in README.md. Comments around the table contain its name.
fn table<const CELLS: usize>(name: &str) -> Vec<[String; CELLS]> {
    let readme = read("README.md");
    let (_, table) = readme
        .split_once(&format!("<!-- {name} -->"))
        .expect("a table");
    let (table, _) = table
        .split_once(&format!("<!-- /{name} -->"))
        .expect("its end");
    let rows = table.lines().skip(3);
    let rows = rows.filter(|line| !line.starts_with("| **"));
    let row = |line: &str| {
        let cells = line.trim_matches('|').split('|');
        let cells: Vec<String> = cells
            .map(|cell| cell.replace('`', "").trim().to_owned())
            .collect();
        cells.try_into().expect("as many cells in each row")
    };
    rows.map(row).collect()
}

fn words(cell: &str) -> Names {
    cell.split_whitespace().map(str::to_owned).collect()
}

/// The Rust files below `folder`: their paths in the project, and their texts.
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
            // A build script is not a part of its crate.
            let is_source = !file.ends_with("build.rs");
            if is_source && file.extension().is_some_and(|extension| extension == "rs") {
                let path = file.strip_prefix(root).unwrap().to_str().unwrap();
                found.push((path.to_owned(), read(path)));
            }
        }
    }
    found
}

/// The wings, which are the folders of `src` with a crate.
fn wings() -> Names {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let crates = folders.filter(|folder| folder.join("Cargo.toml").is_file());
    crates
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// The wings that a `Cargo.toml` has as dependencies.
fn dependencies(manifest: &str) -> Names {
    let manifest = read(manifest);
    let (_, dependencies) = manifest.split_once("\n[dependencies]\n").expect("some");
    let dependencies = dependencies.split("\n[").next().unwrap();
    let names = dependencies.lines().filter_map(|line| {
        let name = line.split(['.', ' ']).next()?;
        name.strip_prefix("treelined-")
    });
    names.map(str::to_owned).collect()
}

/// A module. It has its wing (`treelined` for the program), and its code without comments and tests.
#[derive(Default)]
struct Module {
    wing: String,
    code: String,
}

/// The code of a file, without comments and tests. Other files may use the tests (`pub(crate) mod tests`).
fn code(text: &str) -> String {
    let tests = Regex::new(r"#\[cfg\(test\)\]\n(pub(\(.*\))? )?mod tests \{").unwrap();
    let code = tests.split(text).next().unwrap_or_default();
    let code = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| [line, "\n"]).collect()
}

fn modules() -> BTreeMap<String, Module> {
    let wings = wings();
    let flat = |wing: &str| {
        matches!(
            wing,
            "wire" | "import" | "find" | "fleet" | "handoff" | "usage"
        )
    };
    let mut modules: BTreeMap<String, Module> = BTreeMap::new();
    for (path, text) in sources("src") {
        let mut parts = path.split('/').skip(1);
        let first = parts.next().unwrap();
        let second = parts.next().unwrap_or_default().trim_end_matches(".rs");
        let (wing, module) = match wings.contains(first) {
            true if flat(first) && !INNER.contains(&second) => (first, first),
            true => (first, second),
            false => ("treelined", first.trim_end_matches(".rs")),
        };
        if path.contains("/tests") || matches!(module, "lib" | "main" | "test_support") {
            continue;
        }
        let whole = modules.entry(module.to_owned()).or_default();
        whole.wing = wing.to_owned();
        whole.code.push_str(&code(&text));
    }
    modules
}

/// The imports of each module from its own wing.
fn imports() -> BTreeMap<String, Names> {
    let path = Regex::new(r"\bcrate::(\w+|\{)").unwrap();
    let modules = modules();
    let imports = modules.iter().map(|(name, module)| {
        let mut names = Names::new();
        for found in path.captures_iter(&module.code) {
            let imported = &found[1];
            assert!(
                imported != "{" || modules.contains_key(&module.wing),
                "{name}: write one `use` for each module"
            );
            match modules
                .get(imported)
                .filter(|other| other.wing == module.wing)
            {
                Some(_) => names.insert(imported.to_owned()),
                // An item of a wing that is one module.
                None => names.insert(module.wing.clone()),
            };
        }
        names.remove(name);
        (name.clone(), names)
    });
    imports.collect()
}

#[test]
fn wings_use_what_the_readme_allows() {
    let rows = table::<3>("wings");
    let named: Names = rows.iter().map(|[name, ..]| name.clone()).collect();
    let mut expected = wings();
    expected.insert("treelined".to_owned());
    assert_eq!(named, expected, "rows of README.md, crates of src");
    for [wing, _, allowed] in &rows {
        let manifest = match &**wing {
            "treelined" => "Cargo.toml".to_owned(),
            wing => format!("src/{wing}/Cargo.toml"),
        };
        let mut used = dependencies(&manifest);
        used.remove("redact");
        assert_eq!(used, words(allowed), "{manifest} and the row of `{wing}`");
    }
}

/// The `lib.rs` of each wing states the promises of the wing. The test sees only that it has prose; whether the promises
/// hold is for the other tests.
#[test]
fn wings_say_their_invariants() {
    for wing in wings() {
        let library = read(&format!("src/{wing}/lib.rs"));
        let prose = library.lines().take_while(|line| line.starts_with("//!"));
        assert!(prose.count() >= 5, "src/{wing}/lib.rs");
    }
}

#[test]
fn modules_import_exactly_what_the_readme_allows() {
    let (actual, allowed) = (imports(), table::<4>("modules"));
    let names: Names = allowed.iter().map(|[name, ..]| name.clone()).collect();
    assert_eq!(
        names,
        actual.keys().cloned().collect(),
        "rows of README.md, modules of src"
    );
    for [module, .., allowed] in &allowed {
        let (actual, allowed) = (&actual[module], words(allowed));
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

/// Expands the braces of a `use`: adds each path in them, after `before`.
fn open_braces(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((prefix, inner)) = tree.split_once('{') else {
        return paths.push(format!("{before}{}", tree.trim()));
    };
    let before = format!("{before}{}", prefix.trim());
    let inner = inner.trim().strip_suffix('}').expect("a closing brace");
    let (mut depth, mut start) = (0, 0);
    for (at, byte) in inner.bytes().chain([b',']).enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                let item = inner[start..at].trim();
                if !item.is_empty() {
                    open_braces(&before, item, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The names in a file of `src`.
struct SourceFile {
    path: String,
    /// The number of names in the path of the file's wing.
    wing: usize,
    code: String,
    /// All paths in the file, first the paths in its `use` items.
    paths: Vec<String>,
    /// The paths in the `use` items of the file, by the names that they import.
    brought: BTreeMap<String, String>,
}

/// The files of `src`, by the paths of their modules.
type SourceFiles = BTreeMap<Vec<String>, SourceFile>;

fn source_files() -> SourceFiles {
    let import = Regex::new(r"(?m)^ *(?:pub\S* )?use ([^;]+);").unwrap();
    let named = Regex::new(r"\b\w+(::\w+)+").unwrap();
    let restricted = Regex::new(r"pub\(in [^)]*\)").unwrap();
    let wings = wings();
    let mut files = SourceFiles::new();
    for (path, text) in sources("src") {
        if path.contains("/tests") {
            continue;
        }
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let (wing, inner) = parts.split_at(1 + usize::from(wings.contains(parts[1])));
        let name = inner
            .iter()
            .filter(|name| !["lib", "main", "mod"].contains(name));
        let module: Vec<String> = wing.iter().chain(name).map(|&name| name.into()).collect();
        let code = restricted.replace_all(&code(&text), "pub").into_owned();
        let mut paths = Vec::new();
        for found in import.captures_iter(&code) {
            open_braces("", &found[1], &mut paths);
        }
        let mut brought = BTreeMap::new();
        for used in &mut paths {
            let (named, alias) = used.split_once(" as ").unwrap_or((used, ""));
            let named = named.trim_end_matches("::self").to_owned();
            let last = named.rsplit("::").next().unwrap_or_default();
            let name = if alias.is_empty() { last } else { alias };
            brought.insert(name.to_owned(), named.clone());
            *used = named;
        }
        let rest = import.replace_all(&code, "");
        let rest = named.find_iter(&rest);
        paths.extend(rest.map(|found| found.as_str().to_owned()));
        let file = SourceFile {
            wing: wing.len(),
            path,
            paths,
            brought,
            code,
        };
        files.insert(module, file);
    }
    files
}

/// The module at which a path begins, seen from the file of `module`; `None` if it is in another crate.
fn beginning(files: &SourceFiles, module: &[String], path: &str) -> Option<Vec<String>> {
    let mut at = module.to_vec();
    match path.split("::").next()?.trim() {
        "crate" => at.truncate(files[module].wing),
        "self" | "super" => {}
        name => {
            let below = [module, &[name.to_owned()]].concat();
            files.get(&below)?;
        }
    }
    Some(at)
}

/// The files that each file imports. They are found by the paths in it: `crate::…`, `super::…`, `self::…`, and paths
/// that begin with a submodule of the file.
fn imported_files() -> BTreeMap<String, Names> {
    let files = source_files();
    let arrows = files.iter().map(|(module, file)| {
        let imported = file.paths.iter().filter_map(|path| {
            let mut at = beginning(&files, module, path)?;
            let names = path.split("::").map(str::trim);
            for name in names.skip_while(|name| ["crate", "self"].contains(name)) {
                if name == "super" {
                    at.pop();
                    continue;
                }
                at.push(name.to_owned());
                if !files.contains_key(&at) {
                    at.pop();
                    break;
                }
            }
            Some(files.get(&at)?.path.clone())
        });
        (
            file.path.clone(),
            imported.filter(|other| *other != file.path).collect(),
        )
    });
    arrows.collect()
}

/// The module whose file defines the item of a path, after re-exports; `None` for a path to a module, and for an item
/// of another crate. `steps` limits the re-exports that are followed, since a re-export may name itself.
fn definer(files: &SourceFiles, module: &[String], path: &str, steps: u8) -> Option<Vec<String>> {
    let steps = steps.checked_sub(1)?;
    let brought = |module: &[String], name: &str, rest: &[&str]| {
        let path = files.get(module)?.brought.get(name)?;
        let path = [&[&**path], rest].concat().join("::");
        definer(files, module, &path, steps)
    };
    let names: Vec<&str> = path.split("::").map(str::trim).collect();
    let Some(mut at) = beginning(files, module, path) else {
        return brought(module, names[0], &names[1..]);
    };
    let is_start = |name: &str| ["crate", "self"].contains(&name);
    let start = names.iter().take_while(|name| is_start(name)).count();
    for (index, name) in names.iter().enumerate().skip(start) {
        if *name == "super" {
            at.pop();
            continue;
        }
        at.push((*name).to_owned());
        if !files.contains_key(&at) {
            at.pop();
            let found = brought(&at, name, &names[index + 1..]);
            return found.or(Some(at));
        }
    }
    None
}

/// Once 25 files of the service used its conversions, and 24 used `Daemon`: whoever changed one of these had to read
/// most of the crate. A file uses another one if it names an item of it, also through a re-export.
#[test]
fn no_file_of_the_service_has_many_users() {
    let files = source_files();
    let is_service = |module: &[String]| module.get(1).is_some_and(|wing| wing == "service");
    let mut users: BTreeMap<&str, Names> = BTreeMap::new();
    for (module, file) in files.iter().filter(|(module, _)| is_service(module)) {
        let definers = file.paths.iter();
        for definer in definers.filter_map(|path| definer(&files, module, path, 10)) {
            if definer != *module
                && let Some(defining) = files.get(&definer)
            {
                let users = users.entry(&defining.path).or_default();
                users.insert(file.path.clone());
            }
        }
    }
    let most = users.values().map(Names::len).max();
    assert!(most.is_some_and(|most| most > 5), "the measure finds users");
    users.retain(|_, users| users.len() > MOST_USERS);
    assert!(users.is_empty(), "over {MOST_USERS} users: {users:#?}");
}

/// `impl Daemon` was once in 13 files, so that no single file showed what the daemon is.
#[test]
fn what_the_daemon_does_is_in_few_files() {
    let block = Regex::new(r"(?m)^impl(<.*>)? (\w.* for )?Daemon\b").unwrap();
    let files = source_files();
    let files = files.values().filter(|file| block.is_match(&file.code));
    let files: Names = files.map(|file| file.path.clone()).collect();
    assert!(files.contains("src/service/daemon/mod.rs"), "{files:?}");
    assert!(files.len() <= 3, "{files:?}");
}

/// A menu and the items that its entries share were once in one `mod.rs`, so 40 of the 44 files of `cli` imported each
/// other.
#[test]
fn no_files_of_a_folder_import_each_other_in_a_circle() {
    let imported = imported_files();
    let reached = |from: &String| {
        let (mut found, mut next) = (Names::new(), vec![from]);
        while let Some(file) = next.pop() {
            let new = imported[file].iter();
            next.extend(new.filter(|file| found.insert((*file).clone())));
        }
        found
    };
    let reached: BTreeMap<&String, Names> =
        imported.keys().map(|file| (file, reached(file))).collect();
    let mut circles: BTreeMap<String, Names> = BTreeMap::new();
    for (file, others) in reached
        .iter()
        .filter(|(file, others)| others.contains(**file))
    {
        let circle = others.iter().filter(|other| reached[other].contains(*file));
        let folders = file.match_indices('/').map(|(end, _)| &file[..end]);
        let holds_all = |folder: &&str| circle.clone().all(|other| other.starts_with(*folder));
        let room = folders.rev().find(holds_all).expect("at least src");
        circles
            .entry(room.to_owned())
            .or_default()
            .insert((*file).clone());
    }
    assert!(circles.is_empty(), "files in a circle: {circles:#?}");
}

#[test]
fn pure_modules_name_no_system_thread_lock_or_clock() {
    let (modules, table) = (modules(), table::<4>("modules"));
    let impure = Regex::new(IMPURE).unwrap();
    let pure: BTreeSet<&str> = table
        .iter()
        .filter(|[_, _, pure, _]| pure == "pure")
        .map(|[name, ..]| &**name)
        .collect();
    for (name, module) in &modules {
        let is_core = module.wing == "core";
        assert!(
            !is_core || pure.contains(&**name),
            "`{name}` is in the core"
        );
    }
    let files = Regex::new(r"\btreelined_(files|import|find|pages|fleet|service)\b").unwrap();
    for [name, _, _, imports] in table.iter().filter(|[name, ..]| pure.contains(&**name)) {
        let mut lines = modules[name].code.lines();
        let found = lines.find(|line| impure.is_match(line) || files.is_match(line));
        assert_eq!(found, None, "`{name}` is pure");
        let imported = imports.split_whitespace().find(|name| !pure.contains(name));
        assert_eq!(imported, None, "`{name}` is pure");
    }
    // The crate of redaction, which every wing may use.
    for (path, text) in sources("clients/redact/src") {
        let found = text.lines().find(|line| impure.is_match(line));
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        assert!(is_test || found.is_none(), "{path} is pure: {found:?}");
    }
}

/// Some 35 files once named Unix items, so the program could be built on no other system, and its dependencies on the
/// system were not visible.
#[test]
fn only_the_module_os_names_an_operating_system() {
    let system = Regex::new(SYSTEM).unwrap();
    let modules = modules();
    assert!(
        system.is_match(&modules["os"].code),
        "the pattern finds them"
    );
    for (name, module) in modules.iter().filter(|(name, _)| *name != "os") {
        let found = module.code.lines().find(|line| system.is_match(line));
        assert_eq!(found, None, "`{name}` names a system: put it behind `os`");
    }
}

/// `log`, `session` and `cache` once used the files of the standard library directly, so they could not run on a
/// simulated disk.
#[test]
fn the_files_of_a_store_are_reached_through_os() {
    let modules = modules();
    let reads = Regex::new(PATH_READS).unwrap();
    let named = |module: &Module| {
        let is_open = |line: &str| line.contains("std::fs") || reads.is_match(line);
        module.code.lines().position(is_open)
    };
    assert!(named(&modules["os"]).is_some(), "the module itself does");
    for (name, module) in modules.iter().filter(|(name, _)| *name != "os") {
        let is_open = module.wing == "files" && named(module).is_some();
        assert!(
            !is_open,
            "`{name}` names `std::fs`, or reads a path: use the items of `os`"
        );
    }
    // tests/simulation decides about these too.
    let chance =
        Regex::new(r"\b(Instant::now|SystemTime::now|thread::sleep|Uuid::new_v4)\b").unwrap();
    for name in ["log", "session", "cache", "clock", "embed"] {
        let found = chance.find(&modules[name].code).map(|found| found.as_str());
        assert_eq!(found, None, "`{name}`: use `os::time`");
    }
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
