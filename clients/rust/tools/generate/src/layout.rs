//! The files of src/generated: a folder for each kind of item, and in it a file for each group.

use crate::NOTICE;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A generated item: its group, and its source.
pub type Piece = (String, String);

/// The generated items of one kind.
pub struct Folder {
    name: &'static str,
    about: &'static str,
    /// The source of each group.
    groups: BTreeMap<String, String>,
}

impl Folder {
    pub fn new(name: &'static str, about: &'static str, pieces: Vec<Piece>) -> Folder {
        let mut groups: BTreeMap<String, String> = BTreeMap::new();
        for (group, text) in pieces {
            *groups.entry(group).or_default() += &text;
        }
        Folder {
            name,
            about,
            groups,
        }
    }

    /// Returns the names of the types that this folder defines.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.groups
            .values()
            .flat_map(|text| text.lines())
            .filter_map(defined)
    }

    pub fn has_types(&self) -> bool {
        self.types().next().is_some()
    }

    /// Returns the files of the folder. `known` are the types in the root of the crate.
    pub fn files(&self, known: &BTreeSet<&str>) -> Vec<(PathBuf, String)> {
        let mut index = format!("//! {}.\n//!\n{NOTICE}", self.about);
        for group in self.groups.keys() {
            index += &format!("mod {group};\n");
        }
        index += "\n";
        if self.has_types() {
            for group in self.groups.keys() {
                index += &format!("pub use {group}::*;\n");
            }
        }
        let folder = PathBuf::from(self.name);
        let mut files = vec![(folder.join("mod.rs"), index)];
        for (group, text) in &self.groups {
            let imports = imports(text, known);
            files.push((
                folder.join(format!("{group}.rs")),
                format!(
                    "//! {}: group `{group}`.\n//!\n{NOTICE}{imports}\n{text}",
                    self.about
                ),
            ));
        }
        files
    }
}

/// Returns the name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = ["pub struct ", "pub enum ", "pub type "]
        .iter()
        .find_map(|start| line.strip_prefix(start))?;
    words(rest).next()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// Returns the imports that a source needs. It needs exact imports, since the compiler warns of
/// unused ones.
fn imports(text: &str, known: &BTreeSet<&str>) -> String {
    let code = || text.lines().filter(|line| !line.trim().starts_with("///"));
    if code().any(|line| line.contains("string_enum!")) {
        return "use crate::json::string_enum;\n".into();
    }
    let own: BTreeSet<&str> = code().filter_map(defined).collect();
    let used: BTreeSet<&str> = code().flat_map(words).collect();
    let of_crate = used.intersection(known).filter(|name| !own.contains(*name));
    let of_serde = used
        .iter()
        .filter(|name| ["Deserialize", "Serialize"].contains(name));
    let mut text = import("crate", of_crate.copied().collect());
    text += &import("serde", of_serde.copied().collect());
    if used.contains("BTreeMap") {
        text += &import("std::collections", vec!["BTreeMap"]);
    }
    text
}

fn import(path: &str, names: Vec<&str>) -> String {
    match names.as_slice() {
        [] => String::new(),
        [name] => format!("use {path}::{name};\n"),
        names => format!("use {path}::{{{}}};\n", names.join(", ")),
    }
}
