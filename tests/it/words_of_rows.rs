//! The words before the text of rows are those of protocol.md §6.9 in all clients.

use crate::readme::root;
use std::fs;

/// The roles and types with another word than their own name, each with the word.
fn table() -> Vec<(String, String)> {
    let contract = fs::read_to_string(root("schema/protocol.md")).unwrap();
    let (_, section) = contract.split_once("### 6.9 ").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let word = cells[2].to_owned();
        let names = cells[1].split(", ").map(|name| name.trim_matches('`'));
        let names: Vec<String> = names.map(str::to_owned).collect();
        names.into_iter().map(move |name| (name, word.clone()))
    });
    cells.filter(|(name, word)| name != word).collect()
}

/// The terminal client once wrote `[branch summary]` and `▪` where the other clients wrote a word.
#[test]
fn every_client_has_the_words_of_the_contract() {
    let table = table();
    assert!(table.len() >= 11, "{table:?}");
    type Written = fn(&str, &str) -> String;
    let clients: [(&str, Written); 4] = [
        ("clients/nvim/lua/treelined/draw.lua", |name, word| {
            format!("  {name} = '{word}',")
        }),
        ("clients/emacs/treelined-row.el", |name, word| {
            format!("(\"{name}\" . \"{word}\")")
        }),
        ("clients/web/src/view/words.ts", |name, word| {
            format!("['{name}', '{word}']")
        }),
        ("clients/vscode/src/core/look.ts", |name, word| {
            format!("  {name}: '{word}',")
        }),
    ];
    for (path, written) in clients {
        let source = fs::read_to_string(root(path)).unwrap();
        for (name, word) in &table {
            let wanted = written(name, word);
            assert!(source.contains(&wanted), "{path} has no {wanted}");
        }
    }
    // The terminal client has its own test, with its kinds of rows.
    let source = fs::read_to_string(root("src/cli/drawing.rs")).unwrap();
    for (name, word) in &table {
        let (name, word) = (format!("\"{name}\""), format!("=> \"{word}\","));
        let mut arms = source.lines().filter(|line| line.contains(&name));
        assert!(arms.any(|arm| arm.ends_with(&word)), "{name} {word}");
    }
}
