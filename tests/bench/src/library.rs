//! The generated sessions on disk. They are generated once and never changed. A measurement that writes uses a copy.

use crate::generate::{self, EDITION, Facts, Text};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Entries of each session in a folder of many. 2,000 such sessions have about 490 MB.
const MANY_ENTRIES: u32 = 120;

/// Entries of each session of prose, which has about 5 MB.
const PROSE_ENTRIES: u32 = 2_400;

/// Pairs of a number of files of Claude Code and the bytes of each, 710 MB together.
const CLAUDE_CODE: [(u64, u64); 4] = [
    (300, 100_000),
    (198, 1_210_000),
    (40, 5_000_000),
    (12, 20_000_000),
];
/// The age that the files get. An import does not expect a file of this age to grow.
const OLD: Duration = Duration::from_secs(86_400);

/// The sessions in a folder of the build directory.
pub struct Library {
    folder: PathBuf,
    text: Text,
}

/// One generated session.
#[derive(Debug, Clone)]
pub struct Generated {
    pub path: PathBuf,
    pub facts: Facts,
}

/// The shape of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Conversation,
    Chain,
    Wide,
}

impl Library {
    pub fn new(folder: &Path) -> Result<Self> {
        let folder = folder.join(format!("edition-{EDITION}"));
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(Self {
            folder,
            text: Text::default(),
        })
    }

    /// The session of this shape and number of entries.
    pub fn session(&self, shape: Shape, n: u32) -> Result<Generated> {
        let name = match shape {
            Shape::Conversation => format!("conversation-{n}"),
            Shape::Chain => format!("chain-{n}"),
            Shape::Wide => format!("wide-{n}"),
        };
        self.made(&self.folder, &name, |out| match shape {
            Shape::Conversation => generate::conversation(out, &name, n, &self.text, n.into()),
            Shape::Chain => generate::chain(out, &name, n),
            Shape::Wide => generate::wide(out, &name, n),
        })
    }

    /// A folder of `n` sessions of 120 entries each.
    pub fn many(&self, n: u32) -> Result<Vec<Generated>> {
        let folder = self.folder.join("many");
        fs::create_dir_all(&folder)?;
        let made = (0..n).map(|number| {
            let name = format!("many-{number:05}");
            let seed = 0x6d61_6e79_0000 + u64::from(number);
            self.made(&folder, &name, |out| {
                generate::conversation(out, &name, MANY_ENTRIES, &self.text, seed)
            })
        });
        made.collect()
    }

    /// Sessions of prose with `bytes` bytes, or a little more.
    pub fn prose(&self, bytes: u64) -> Result<Vec<Generated>> {
        let folder = self.folder.join("prose");
        fs::create_dir_all(&folder)?;
        let text = Text::prose();
        let (mut sessions, mut sum) = (Vec::new(), 0);
        while sum < bytes {
            let name = format!("prose-{:05}", sessions.len());
            let seed = 0x7072_6f73_6500 + sessions.len() as u64;
            let made = self.made(&folder, &name, |out| {
                generate::conversation(out, &name, PROSE_ENTRIES, &text, seed)
            })?;
            sum += made.facts.bytes;
            sessions.push(made);
        }
        Ok(sessions)
    }

    /// A home of Claude Code, and the 550 files of its projects.
    pub fn claude_code(&self) -> Result<(PathBuf, Vec<Generated>)> {
        let home = self.folder.join("claude-code");
        let sizes = CLAUDE_CODE
            .iter()
            .flat_map(|(count, bytes)| (0..*count).map(|_| *bytes));
        let mut files = Vec::new();
        for (seed, bytes) in (0x636c_6175_6465_0000..).zip(sizes) {
            let project = home.join(format!("projects/-bench-{}", seed % 20));
            fs::create_dir_all(&project)?;
            let id = generate::claude_code_id(seed);
            let write =
                |out: &mut BufWriter<File>| generate::claude_code(out, seed, bytes, &self.text);
            let beside = home.join(format!("{id}.facts.json"));
            let file = Self::made_at(project.join(format!("{id}.jsonl")), &beside, write)?;
            let opened = File::options().append(true).open(&file.path)?;
            opened.set_modified(SystemTime::now() - OLD)?;
            files.push(file);
        }
        Ok((home, files))
    }

    /// Makes a session and its facts. The file gets its name when it is complete and its facts are written.
    fn made(
        &self,
        folder: &Path,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<Facts>,
    ) -> Result<Generated> {
        let path = folder.join(format!("2026-01-01T00-00-00-000Z_{name}.jsonl"));
        Self::made_at(path, &folder.join(format!("{name}.facts.json")), write)
    }

    fn made_at(
        path: PathBuf,
        beside: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<Facts>,
    ) -> Result<Generated> {
        if path.exists() {
            let facts = serde_json::from_str(&fs::read_to_string(beside)?)?;
            return Ok(Generated {
                path,
                facts: read_facts(&facts),
            });
        }
        let partial = path.with_extension("partial");
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&partial)?);
        let facts = write(&mut out)?;
        out.into_inner()?;
        fs::write(beside, written_facts(&facts).to_string())?;
        fs::rename(&partial, &path)?;
        Ok(Generated { path, facts })
    }
}

fn written_facts(facts: &Facts) -> Value {
    json!({
        "entries": facts.entries,
        "messages": facts.messages,
        "bytes": facts.bytes,
        "leaf": facts.leaf,
    })
}

fn read_facts(facts: &Value) -> Facts {
    Facts {
        entries: facts["entries"].as_u64().unwrap_or_default(),
        messages: facts["messages"].as_u64().unwrap_or_default(),
        bytes: facts["bytes"].as_u64().unwrap_or_default(),
        leaf: facts["leaf"].as_str().unwrap_or_default().to_owned(),
    }
}
