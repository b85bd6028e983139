//! The screens, keys and configuration in the README are those of the program.

use std::path::Path;
use treelined_tui::keys::{Action, Context, Keymap};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    std::fs::read_to_string(here().join("README.md")).unwrap()
}

#[test]
fn the_screens_are_those_of_the_tests() {
    let readme = readme();
    let mut shown = 0;
    for block in readme.split("<!-- ").skip(1) {
        let (name, rest) = block.split_once(" -->\n```\n").unwrap();
        let (screen, _) = rest.split_once("```").unwrap();
        let expected = std::fs::read_to_string(here().join("tests").join(name)).unwrap();
        assert!(screen == expected, "{name} is\n{expected}");
        shown += 1;
    }
    assert!(shown >= 4, "{shown}");
}

#[test]
fn the_keys_are_those_of_the_program() {
    let readme = readme();
    let keymap = Keymap::default();
    for (action, keys) in keymap.bound(Context::Tree) {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let (keys, name, about) = (keys.join(" "), action.name(), action.about());
        let row = format!("| {keys} | `{name}` | {about} |");
        assert!(readme.contains(&row), "the README lacks\n{row}");
    }
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
