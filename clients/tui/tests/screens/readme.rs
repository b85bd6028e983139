//! Checks that the screens, keys and configuration in the README are the same as in the program.

use std::path::Path;
use treelined_tui::keys::{Action, Context, Keymap};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    std::fs::read_to_string(here().join("README.md")).unwrap()
}

/// Compares the README with the text that it must have. `UPDATE_README=1` writes the text instead.
#[track_caller]
fn is_to_be(made: &str) {
    if std::env::var_os("UPDATE_README").is_some() {
        // Other tests read it meanwhile.
        let new = here().join("README.md.new");
        std::fs::write(&new, made).unwrap();
        std::fs::rename(new, here().join("README.md")).unwrap();
        return;
    }
    let now = readme();
    let pairs = now.lines().zip(made.lines());
    let differing = pairs.into_iter().find(|(one, other)| one != other);
    assert!(
        now == made,
        "UPDATE_README=1 makes it anew; the first difference is\n{differing:#?}"
    );
}

/// Returns the README with the screens and the table of keys of the program.
fn made_anew() -> String {
    let mut made = String::new();
    let now = readme();
    let mut shown = 0;
    for (at, block) in now.split("<!-- screen: ").enumerate() {
        if at == 0 {
            made.push_str(block);
            continue;
        }
        let (name, rest) = block.split_once(" -->\n```\n").unwrap();
        let (_, behind) = rest.split_once("```").unwrap();
        let screen = std::fs::read_to_string(here().join("tests").join(name)).unwrap();
        made.push_str(&format!(
            "<!-- screen: {name} -->\n```\n{screen}```{behind}"
        ));
        shown += 1;
    }
    assert!(shown >= 4, "{shown}");
    let (before, rest) = made.split_once("<!-- keys -->\n").unwrap();
    let (_, behind) = rest.split_once("<!-- end of keys -->").unwrap();
    format!(
        "{before}<!-- keys -->\n{}<!-- end of keys -->{behind}",
        key_table()
    )
}

fn key_table() -> String {
    let keymap = Keymap::default();
    let mut table = "| keys | name | |\n|---|---|---|\n".to_owned();
    for (action, keys) in keymap.bound(Context::Tree) {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let (keys, name, about) = (keys.join(" "), action.name(), action.about());
        table.push_str(&format!("| {keys} | `{name}` | {about} |\n"));
    }
    table
}

#[test]
fn the_screens_and_keys_are_those_of_the_program() {
    is_to_be(&made_anew());
}

#[test]
fn the_example_configuration_is_valid() {
    let readme = readme();
    let (_, rest) = readme.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let config: treelined_tui::config::Config = toml::from_str(text).unwrap();
    let keymap = config.keymap().unwrap();
    let hint = |action| keymap.hint(Context::Tree, action);
    assert_eq!(hint(Action::Undo), "ctrl+x");
    assert_eq!(hint(Action::NextFilter), "F");
    assert_eq!(hint(Action::TogglePreview), "(no key)");
}
