//! Use of the program from shells: piped scripts without a handshake, the subcommands, and `--help`. protocol.md §1, §2.

mod archive;
mod aside;
mod call;
mod doctor;
mod entries;
mod folding;
mod help;
mod interrupt;
mod label;
mod list;
mod moved;
mod package;
mod scripts;
mod search;
mod session_dir;
mod sessions;
mod suggestions;
mod tokens;
mod tree;
mod verbs;
mod words;

use std::fs;
use std::path::PathBuf;
use treelined_redact::unseen::is_control;

use crate::harness::*;

fn step(id: u32, method: &str, params: Json) -> String {
    request(&json!(id), method, &params)
}

pub(crate) fn by_id(lines: &[Json], id: u32) -> &Json {
    let found = lines
        .iter()
        .find(|m| m["id"] == id)
        .unwrap_or_else(|| panic!("no answer to {id}"));
    found
        .get("result")
        .unwrap_or_else(|| panic!("{id} failed: {found}"))
}

fn no_controls(text: &str) -> bool {
    !text.contains(|c| is_control(c) && c != '\n')
}

fn branched(home: &Home) -> PathBuf {
    Log::new("s1")
        .user(
            "u1",
            "",
            "the first question, which goes on for quite a while and then some more",
        )
        .assistant("a1", "u1", "an answer")
        .user("u2", "a1", "go left")
        .user("u3", "a1", "go right")
        .label("l1", "u3", "u2", json!("the left one"))
        .store(home, "x_s1.jsonl")
}

#[track_caller]
fn drawn(home: &Home, args: &[&str], columns: &str) -> String {
    let args = [&["tree"], args].concat();
    let output = home.run(&args, &[("COLUMNS", columns)], "").clean();
    output.text()
}
