//! schema/guide.md: the blocks of commands run in their order, and print the text that the guide shows.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use regex::Regex;

use crate::harness::*;
use crate::readme::root;

/// The conversations of the examples, in the format of Claude Code.
const CONVERSATIONS: [&str; 2] = ["checkout", "test"];

/// A fenced block: its language, its text, and the range of the text in the guide, in bytes.
struct Block {
    language: String,
    text: String,
    range: std::ops::Range<usize>,
}

fn blocks(guide: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut at, mut is_open) = (0, false);
    for line in guide.split_inclusive('\n') {
        match line.strip_prefix("```") {
            Some(language) if !is_open => {
                let start = at + line.len();
                blocks.push(Block {
                    language: language.trim().to_owned(),
                    text: String::new(),
                    range: start..start,
                });
                is_open = true;
            }
            Some(_) => is_open = false,
            None if is_open => {
                let block = blocks.last_mut().unwrap();
                block.text += line;
                block.range.end += line.len();
            }
            None => {}
        }
        at += line.len();
    }
    assert!(!is_open, "a block without an end");
    blocks
}

/// A home whose Claude Code has the conversations of the examples.
fn person() -> std::sync::Arc<Home> {
    let home = Home::new();
    let (files, project) = (home.files(), home.files().join(".claude/projects/shop"));
    fs::create_dir_all(&project).unwrap();
    fs::create_dir_all(files.join("shop")).unwrap();
    for name in CONVERSATIONS {
        let text = fs::read_to_string(root(&format!("tests/data/guide/{name}.jsonl"))).unwrap();
        let path = project.join(format!("{name}.jsonl"));
        fs::write(&path, text.replace("/home/ada", files.to_str().unwrap())).unwrap();
        // An import skips a conversation until it has not changed for a while.
        let file = fs::File::options().append(true).open(&path).unwrap();
        let hour = Duration::from_secs(3600);
        file.set_modified(SystemTime::now() - hour).unwrap();
    }
    home
}

/// The output of the block, as the guide shows it.
fn printed(home: &Home, script: &str) -> String {
    let shell = home.command(&[], &[]);
    let program = Path::new(shell.get_program()).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &format!("cd; {script}")])
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.files())
        .env("TMPDIR", home.files())
        .env("XDG_RUNTIME_DIR", home.runtime_dir())
        .env("COLUMNS", "84")
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {complaints}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed = printed.replace(home.files().to_str().unwrap(), "/home/ada");
    // Editors remove trailing spaces when people edit the guide.
    printed
        .lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

/// The text without parts that change with each run: ages, and ids of new entries.
fn stable(text: &str) -> String {
    let ago = Regex::new(r"(?m)^(• |  )?([0-9a-f]{16}  )?(now|\d+[mhdwy]) +").unwrap();
    ago.replace_all(text, "${1}${2}AGO ").into_owned()
}

/// Runs all blocks in the order of the guide and in one home. The block `text` after a block must equal its output.
/// With `TREELINED_UPDATE=1` the test writes these blocks.
#[test]
fn every_block_of_the_guide_runs_and_prints_what_is_shown() {
    let path = root("schema/guide.md");
    let guide = fs::read_to_string(&path).unwrap();
    let blocks = blocks(&guide);
    let is_update = std::env::var_os("TREELINED_UPDATE").is_some();
    let (home, mut updated, mut written, mut last) = (person(), String::new(), 0, None);
    let mut runs = 0;
    for block in &blocks {
        match block.language.as_str() {
            "sh" => {
                last = Some(printed(&home, &block.text));
                runs += 1;
            }
            "text" => {
                let printed = last.take().expect("a block of commands before the text");
                if is_update {
                    updated += &guide[written..block.range.start];
                    updated += &printed;
                    written = block.range.end;
                } else {
                    assert_eq!(stable(&printed), stable(&block.text), "TREELINED_UPDATE=1");
                }
            }
            other => panic!("a block of {other:?} is not run"),
        }
    }
    assert!(runs >= 12, "{runs} blocks");
    if is_update {
        updated += &guide[written..];
        fs::write(&path, updated).unwrap();
    }
}

#[test]
fn the_guide_is_short() {
    let lines = fs::read_to_string(root("schema/guide.md"))
        .unwrap()
        .lines()
        .count();
    assert!(lines <= 300, "{lines} lines");
}
