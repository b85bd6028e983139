//! Runs the fuzz targets (`tests/fuzz`) for a few seconds each. A generator with a seed joins pieces of the format and
//! the protocol at random and damages the result.

use crate::harness::{Random, seeded_random};
use std::time::{Duration, Instant};

#[path = "../fuzz/targets.rs"]
mod targets;

/// The pieces from which inputs are made.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    "\r\n",
    "\0",
    " ",
    "null",
    "true",
    "1e999",
    "-0",
    "1.0",
    "9007199254740993",
    "\\u0000",
    "\\ud800",
    "\\u202e",
    "é",
    "\u{202e}",
    "\u{1b}[2J",
    "\u{9b}",
    "\u{feff}",
    "\"type\":\"message\"",
    "\"type\":\"session\"",
    "\"type\":\"label\"",
    "\"type\":\"compaction\"",
    "\"type\":\"custom\",\"customType\":\"treelined.leaf\"",
    "\"id\":\"a\"",
    "\"id\":\"b\"",
    "\"id\":1",
    "\"parentId\":\"a\"",
    "\"parentId\":\"b\"",
    "\"parentId\":null",
    "\"timestamp\":\"2025-01-01T00:00:00.000Z\"",
    "\"message\":{\"role\":\"user\",\"content\":\"x\"}",
    "\"targetId\":\"a\",\"label\":\"l\"",
    "\"data\":{\"from\":\"a\"}",
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n",
    "{\"type\":\"session\",\"version\":1,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n",
    "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n",
    "{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"timestamp\":\"t\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n",
    "{\"type\":\"custom\",\"customType\":\"treelined.leaf\",\"id\":\"r\",\"parentId\":\"a\",\"timestamp\":\"t\",\"data\":{\"from\":\"b\",\"cause\":\"undo\"}}\n",
    "{\"type\":\"title\",\"title\":\"t\"}\n",
    "{\"type\":\"session\",\"version\":2,\"id\":\"s\",\"title\":\"t\"}",
    "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"hookMessage\"}}",
    "{\"type\":\"compaction\",\"timestamp\":\"t\",\"firstKeptEntryIndex\":1}",
    "{\"type\":\"message\",\"id\":\"c\",\"parentId\":\"a\",\"timestamp\":\"t\"",
    "\r",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"create_session\",\"params\":{\"ephemeral\":true,\"sessionId\":\"s\"}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"append_message\",\"params\":{\"message\":{\"role\":\"user\",\"content\":\"x\"}}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"get_tree\",\"params\":{\"limit\":2,\"query\":\"x\"}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"get_entries\"}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"initialize\",\"params\":{}}\n",
    "\"jsonrpc\":\"2.0\"",
    "\"method\":\"get_leaf\"",
    "\"params\":{}",
    "\"params\":[]",
    "Content-Length: 10\r\n\r\n",
    "..",
    "/",
    "\\",
    "~",
    "con",
    ".jsonl",
    "x",
];

fn input(random: &mut Random, bytes: &mut Vec<u8>) {
    bytes.clear();
    for _ in 0..random.below(24) {
        let piece = random.pick(PIECES);
        bytes.extend_from_slice(piece.as_bytes());
    }
    for _ in 0..random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes.truncate(at),
            _ => {
                bytes.remove(at);
            }
        }
    }
}

/// Calls `target` for two seconds, or for a minute in the long run. Prints an input that fails.
fn fuzz(seed: u64, mut target: impl FnMut(&[u8])) {
    let mut random = seeded_random(seed);
    let (began, mut bytes, mut count) = (Instant::now(), Vec::new(), 0);
    let long = if crate::harness::is_long_run() { 60 } else { 2 };
    while began.elapsed() < Duration::from_secs(long) {
        input(&mut random, &mut bytes);
        let run = std::panic::AssertUnwindSafe(|| target(&bytes));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("input: {:?}", String::from_utf8_lossy(&bytes));
            std::panic::resume_unwind(panic);
        }
        count += 1;
    }
    println!("fuzz: {count} inputs");
    assert!(count > 0, "no input was tried");
}

fn folder() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("treelined-fuzz-")
        .tempdir_in(place)
        .unwrap()
}

/// `tests/fuzz/seeds` has inputs that once failed, in a folder for each target, and rows from the databases of agents.
/// The fuzzer begins with them.
#[test]
fn every_seed_passes_its_target() {
    let folder = folder();
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
    let mut count = 0;
    for of_target in std::fs::read_dir(seeds).unwrap() {
        let of_target = of_target.unwrap();
        for seed in std::fs::read_dir(of_target.path()).unwrap() {
            let path = seed.unwrap().path();
            println!("{}", path.display());
            let bytes = std::fs::read(&path).unwrap();
            match &*of_target.file_name().to_string_lossy() {
                "line" => targets::line(&bytes),
                "file" => targets::file(&bytes, folder.path()),
                "frame" => targets::frame(&bytes, folder.path()),
                "path" => targets::path(&bytes, folder.path()),
                "records" => targets::records(&bytes),
                "sanitizer" => targets::sanitizer(&bytes),
                tool @ ("claude-code" | "codex" | "opencode" | "gemini" | "goose" | "pi"
                | "qwen-code" | "cline" | "copilot-cli" | "vscode-chat" | "chatgpt"
                | "claude-ai") => {
                    targets::import(tool, &bytes);
                }
                other => panic!("no target is called {other}"),
            }
            count += 1;
        }
    }
    assert!(count > 0, "there are seeds");
}

#[test]
fn random_lines_pass() {
    fuzz(1, targets::line);
}

#[test]
fn random_files_pass() {
    let folder = folder();
    fuzz(2, |bytes| targets::file(bytes, folder.path()));
}

#[test]
fn random_frames_pass() {
    let folder = folder();
    fuzz(3, |bytes| targets::frame(bytes, folder.path()));
}

#[test]
fn random_paths_pass() {
    let folder = folder();
    fuzz(4, |bytes| targets::path(bytes, folder.path()));
}

#[test]
fn random_texts_for_a_terminal_pass() {
    fuzz(5, targets::sanitizer);
}

#[test]
fn random_sources_of_other_tools_pass() {
    fuzz(6, targets::records);
}

/// The files of an agent in the test data, and the seeds of its target.
fn sources(tool: &str) -> Vec<Vec<u8>> {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut waiting = vec![
        tests.join("data/import").join(tool),
        tests.join("fuzz/seeds").join(tool),
    ];
    let mut sources = Vec::new();
    while let Some(path) = waiting.pop() {
        let is_text = |path: &std::path::Path| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            matches!(ending, None | Some("json" | "jsonl"))
        };
        match std::fs::read_dir(&path) {
            Ok(inside) => waiting.extend(inside.map(|entry| entry.unwrap().path())),
            Err(_) if is_text(&path) => sources.extend(std::fs::read(&path)),
            Err(_) => {}
        }
    }
    sources
}

/// Lines of an agent's sources in another order. Some lines are damaged, or have a value of another line.
fn shuffled(random: &mut Random, lines: &[&[u8]]) -> Vec<u8> {
    let mut source = Vec::new();
    for _ in 0..1 + random.below(12) {
        let mut line = random.pick(lines).to_vec();
        for _ in 0..random.below(3) {
            if line.is_empty() {
                break;
            }
            let (at, other) = (random.below(line.len()), random.pick(lines));
            match random.below(5) {
                0 => line[at] = random.below(256) as u8,
                1 => line.truncate(at),
                2 => {
                    line.remove(at);
                }
                3 => line.extend_from_slice(&other[random.below(other.len())..]),
                _ => {
                    let piece = random.pick(PIECES).bytes();
                    line.splice(at..at, piece).for_each(drop);
                }
            }
        }
        source.extend_from_slice(&line);
        if random.below(8) > 0 {
            source.push(b'\n');
        }
    }
    source
}

#[test]
fn random_sources_of_every_agent_are_imported() {
    for tool in [
        "claude-code",
        "codex",
        "opencode",
        "gemini",
        "goose",
        "pi",
        "qwen-code",
        "cline",
        "copilot-cli",
        "vscode-chat",
        "chatgpt",
        "claude-ai",
    ] {
        let sources = sources(tool);
        let lines = sources
            .iter()
            .flat_map(|source| source.split(|byte| *byte == b'\n'));
        let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
        assert!(lines.len() > 10, "{tool}");
        let mut random = seeded_random(7);
        let (began, mut count) = (Instant::now(), 0);
        let long = if crate::harness::is_long_run() {
            60_000
        } else {
            1_000
        };
        while began.elapsed() < Duration::from_millis(long) {
            let source = shuffled(&mut random, &lines);
            let run = std::panic::AssertUnwindSafe(|| targets::import(tool, &source));
            if let Err(panic) = std::panic::catch_unwind(run) {
                eprintln!("{tool}: {:?}", String::from_utf8_lossy(&source));
                std::panic::resume_unwind(panic);
            }
            count += 1;
        }
        println!("fuzz: {count} sources of {tool}");
        assert!(count > 0, "no source was tried");
    }
}
