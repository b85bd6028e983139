//! pi under measurement: its own SessionManager in a Node process (pi.mjs), which measures itself, so
//! that no pipe counts for it.

use crate::Bench;
use crate::daemon::peak_memory;
use crate::table::Outcome;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Bytes of heap it may have, in MB: with Node's own choice a million entries do not fit.
const HEAP_MB: u32 = 12_000;

/// What tests/interchange/install has put there.
#[derive(Debug, Clone)]
pub struct Install {
    pub node: PathBuf,
    /// Its library.
    bundle: PathBuf,
    /// Its program.
    pub program: PathBuf,
}

impl Install {
    pub fn find(folder: &Path) -> Option<Self> {
        let own = folder.join("node/bin/node");
        let install = Self {
            node: if own.exists() { own } else { "node".into() },
            bundle: folder.join("pi/dist/bundle/index.js"),
            program: folder.join("pi/dist/bundle/cli.js"),
        };
        (install.bundle.exists() && install.program.exists()).then_some(install)
    }
}

/// One Node process.
pub struct Pi {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Pi {
    pub fn start(bench: &Bench) -> Result<Option<Self>> {
        let Some(install) = &bench.pi else {
            return Ok(None);
        };
        let mut child = Command::new(&install.node)
            .arg(format!("--max-old-space-size={HEAP_MB}"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/pi.mjs"))
            .arg(&install.bundle)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start node")?;
        let output = child.stdout.take().context("its output")?;
        Ok(Some(Self {
            child,
            output: BufReader::new(output),
        }))
    }

    /// One request of pi.mjs; the answer has `seconds`.
    pub fn ask(&mut self, request: &Value) -> Result<Value> {
        let input = self.child.stdin.as_mut().context("its input")?;
        writeln!(input, "{request}")?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("out of memory");
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }

    /// How long the request took by pi's own clock.
    pub fn timed(&mut self, request: &Value) -> Result<f64> {
        self.ask(request)?["seconds"].as_f64().context("no seconds")
    }

    pub fn open(&mut self, path: &Path) -> Result<f64> {
        self.timed(&json!({ "op": "open", "path": path }))
    }

    pub fn peak_memory(&self) -> f64 {
        peak_memory(self.child.id())
    }
}

impl Drop for Pi {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Outcome {
    /// Measures pi once more, in a process of its own; nothing after the first failure.
    pub fn measure(
        &mut self,
        bench: &Bench,
        measure: impl FnOnce(&mut Pi) -> Result<f64>,
    ) -> Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        let Some(mut pi) = Pi::start(bench)? else {
            self.is_missing = true;
            return Ok(());
        };
        match measure(&mut pi) {
            Ok(value) => {
                self.values.push(value);
                let memory = self.memory.unwrap_or_default();
                self.memory = Some(memory.max(pi.peak_memory()));
            }
            Err(error) => self.failure = Some(format!("{error:#}").chars().take(60).collect()),
        }
        Ok(())
    }
}
