//! pi and oh-my-pi under measurement: their own SessionManager in a process of Node or Bun (`pi.mjs`), which
//! measures its own time, so that no pipe is included.

use crate::daemon::peak_memory;
use crate::table::Outcome;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The heap limit in MB. A million entries do not fit into the default of Node.
const HEAP_MB: u32 = 12_000;

/// An installation of pi or of oh-my-pi.
#[derive(Debug, Clone)]
pub struct Install {
    pub runtime: PathBuf,
    runtime_flags: Vec<String>,
    /// The module with the SessionManager.
    module: PathBuf,
    /// The program of pi.
    pub program: PathBuf,
}

impl Install {
    /// pi as `tests/interchange/install` has installed it.
    pub fn pi(folder: &Path) -> Option<Self> {
        let own = folder.join("node/bin/node");
        let install = Self {
            runtime: if own.exists() { own } else { "node".into() },
            runtime_flags: vec![format!("--max-old-space-size={HEAP_MB}")],
            module: folder.join("pi/dist/bundle/index.js"),
            program: folder.join("pi/dist/bundle/cli.js"),
        };
        install.module.exists().then_some(install)
    }

    /// oh-my-pi as `tests/bench/oh-my-pi` has installed it.
    pub fn oh_my_pi(folder: &Path) -> Option<Self> {
        let modules = folder.join("node_modules");
        let program = modules.join("@oh-my-pi/pi-coding-agent");
        let install = Self {
            runtime: modules.join("@oven/bun-linux-x64/bin/bun"),
            runtime_flags: Vec::new(),
            module: program.join("src/session/session-manager.ts"),
            program,
        };
        (install.runtime.exists() && install.module.exists()).then_some(install)
    }
}

/// A process that has loaded the class.
pub struct Pi {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Pi {
    fn start(install: &Install) -> Result<Self> {
        let mut child = Command::new(&install.runtime)
            .args(&install.runtime_flags)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/pi.mjs"))
            .arg(&install.module)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("start {}", install.runtime.display()))?;
        let output = child.stdout.take().context("its output")?;
        Ok(Self {
            child,
            output: BufReader::new(output),
        })
    }

    /// A request to `pi.mjs`; the answer has `seconds`.
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

    /// The time of the request by pi's own clock.
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
    /// Measures once more, in a new process. Does nothing after a failure.
    pub fn measure(
        &mut self,
        install: Option<&Install>,
        measure: impl FnOnce(&mut Pi) -> Result<f64>,
    ) -> Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        let Some(install) = install else {
            self.is_missing = true;
            return Ok(());
        };
        let mut pi = Pi::start(install)?;
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
