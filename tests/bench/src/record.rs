//! The measured rows in README.md and tests/bench/README.md, with the commit and the machine. `tests/bench/rows`
//! checks them.

use crate::table::Table;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::Command;

const MARKS: [&str; 2] = ["<!-- speed -->\n", "<!-- /speed -->"];
/// The beginnings of the rows in README.md.
const CHOSEN: [&str; 5] = [
    "start → first answer",
    "trivial call, one after another, one core",
    "open 100k",
    "get_tree first page of 200, 100k ",
    "fork_session, 100k",
];

/// The commit, the machine and its load, for one measurement.
pub struct Record {
    commit: String,
    machine: String,
    load_before: String,
}

impl Record {
    /// Call this before the measurement. It fails if the work tree has changes, since the rows would then not belong to
    /// a commit.
    pub fn begin() -> Result<Self> {
        let changes = run("git", &["status", "--porcelain"])?;
        ensure!(changes.is_empty(), "commit these changes first:\n{changes}");
        let commit = run("git", &["rev-parse", "--short=12", "HEAD"])?;
        let day = run("git", &["show", "--no-patch", "--format=%cs", "HEAD"])?;
        let compiler = run("rustc", &["--version"])?;
        let compiler = compiler.split(" (").next().unwrap_or_default();
        Ok(Self {
            commit: format!("`{commit}` ({day})"),
            machine: format!("{}; {compiler}", machine()?),
            load_before: load()?,
        })
    }

    /// Writes the rows into both files.
    pub fn write(&self, table: &Table) -> Result<()> {
        let head = format!(
            "Measured at commit {} on {}. Processors that other work kept busy (load): {} before, {} after.\n\n",
            self.commit,
            self.machine,
            self.load_before,
            load()?
        );
        replace(
            "tests/bench/README.md",
            &format!("{head}{}\n", table.markdown()),
        )?;
        let rows = table.chosen(&CHOSEN)?;
        replace("README.md", &format!("{head}{rows}"))
    }
}

/// Replaces what a file has between the marks.
fn replace(path: &str, new: &str) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let marks = || format!("{path} has no marks for the rows");
    let (before, rest) = text.split_once(MARKS[0]).with_context(marks)?;
    let (_, after) = rest.split_once(MARKS[1]).with_context(marks)?;
    Ok(fs::write(
        path,
        [before, MARKS[0], new, MARKS[1], after].concat(),
    )?)
}

fn machine() -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let field = |line: &str| {
        let value = line.strip_prefix("model name")?.split(": ").nth(1)?;
        Some(value.to_owned())
    };
    let model = processors.lines().find_map(field);
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kilobytes = memory.split_whitespace().nth(1).context("MemTotal")?;
    let gigabytes = kilobytes.parse::<f64>()? / 1e6;
    let osrelease = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!(
        "{} processors ({}), {gigabytes:.0} GB, Linux {}",
        std::thread::available_parallelism()?,
        model.as_deref().unwrap_or("of an unknown model"),
        // The other parts of the version name a build for one machine.
        osrelease.split('.').take(2).collect::<Vec<_>>().join("."),
    ))
}

/// The processes that ran or waited for a processor, on average of the last minute.
fn load() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("run {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{program} {arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
