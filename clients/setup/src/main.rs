//! The program `treelined-setup`.

mod agent;
mod file;
mod json;
mod pieces;
mod plan;
mod program;
mod record;
mod refusal;
mod show;
mod targets;
#[cfg(test)]
mod tests;
mod toml;

use agent::Agent;
use anyhow::{Context, bail};
use clap::Parser;
use plan::Step;
use program::Program;
use record::Record;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use targets::{Machine, Target};

/// The exit code of wrong arguments.
const USAGE: u8 = 2;

/// The command that reads all sessions once, for the hooks that recall.
const READ_AHEAD: [&str; 3] = ["mcp", "--recall", "--index"];

/// Makes the agents of this machine keep their conversations in treelined by themselves.
///
/// It shows what it would write, and asks. Then it writes a hook for the end of each turn; for an agent without hooks,
/// a user unit for `treelined import --watch`. It also adds the MCP server, with which the agent finds earlier
/// conversations. Then it imports what is there. It keeps the comments, the order and everything else in the files;
/// --remove removes what was added.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The agents [default: those on this machine]
    #[arg(value_enum)]
    agents: Vec<Agent>,
    /// Write without asking
    #[arg(long, conflicts_with = "print")]
    yes: bool,
    /// Remove what was added
    #[arg(long)]
    remove: bool,
    /// Also add hooks that recall earlier conversations of the directory when a session begins and after a command that
    /// failed: Claude Code, Codex, Gemini CLI, opencode and pi
    #[arg(long, conflicts_with = "remove")]
    recall: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    print: bool,
    /// Do not import what is there
    #[arg(long)]
    no_import: bool,
    /// Print the result as JSON, and ask nothing
    #[arg(long)]
    json: bool,
    /// The session directory
    #[arg(long, env = "TREELINED_SESSION_DIR", value_name = "FOLDER")]
    session_dir: Option<PathBuf>,
    /// The program that agents start
    #[arg(long = "daemon", env = "TREELINED_BIN", value_name = "PROGRAM")]
    program: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            // If stderr is closed too, the exit code still reports the failure.
            let _written = writeln!(io::stderr(), "treelined-setup: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let machine = Machine::this().context("HOME is not set")?;
    let program = match program_of(args, &machine) {
        // To remove a piece the program need not exist: the form of a piece identifies it.
        Err(_) if args.remove => Program::new(Path::new("treelined"), None, Vec::new())
            .context("name the program with --daemon")?,
        program => program?,
    };
    let agents: Vec<Agent> = match args.agents.as_slice() {
        // Without names, pieces are also removed for agents that are no longer installed.
        [] if args.remove => Agent::ALL.to_vec(),
        [] => Agent::ALL
            .into_iter()
            .filter(|agent| agent.is_here(&machine))
            .collect(),
        named => named.to_vec(),
    };
    if agents.is_empty() {
        bail!("no agent was found on this machine; name one, such as `treelined setup codex`");
    }
    let targets: Vec<Target> = agents
        .iter()
        .flat_map(|agent| agent.targets(&machine, &program, args.recall || args.remove))
        .collect();
    let path = machine.record();
    let mut record = Record::read(&path)?;
    let steps = match args.remove {
        true => plan::removing(&targets, &program, &record),
        false => plan::adding(&targets, &program, &record),
    };
    let imports = match args.remove || args.no_import {
        true => Vec::new(),
        false => imports(args),
    };
    let has_changes = steps.iter().any(Step::is_change);
    if !args.json {
        preview(&steps, &imports, args)?;
    }
    let is_agreed = args.print || !has_changes || args.yes || is_agreed(args)?;
    if args.print || !is_agreed {
        finish(args, &steps, None, None)?;
        return Ok(match is_agreed {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(USAGE),
        });
    }
    let failures = apply(&steps, &mut record, &path, args.remove)?;
    start_units(&machine, &steps, &failures, args.remove);
    let imported = import(args, &program, &imports)?;
    if reads_ahead(args) {
        read_ahead(args, &program)?;
    }
    finish(args, &steps, Some(&failures), imported.totals.as_ref())?;
    Ok(
        match imported.is_whole && failures.iter().all(Option::is_none) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        },
    )
}

/// The absolute path of the program that agents start. An agent may have another `PATH`, so a name is not enough.
fn program_of(args: &Args, machine: &Machine) -> anyhow::Result<Program> {
    let named = match &args.program {
        Some(path) if path.components().count() > 1 => std::path::absolute(path).ok(),
        Some(name) => name.to_str().and_then(|name| machine.find(name)),
        None => machine.find("treelined"),
    };
    let named = named.context("the program `treelined` is neither named nor on the PATH")?;
    // The path on the `PATH` stays the same after an update.
    let on_path = machine
        .find("treelined")
        .filter(|found| is_same(found, &named));
    let session_dir = args.session_dir.as_deref().map(std::path::absolute);
    let session_dir = session_dir
        .transpose()
        .context("find the session directory")?;
    let path = on_path.unwrap_or(named);
    let program = Program::new(&path, session_dir.as_deref(), machine.environment());
    program.context(
        "the path of the program or of the session directory, or a variable such as XDG_DATA_HOME, is not UTF-8 or has a \
         control character",
    )
}

fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(a).is_some() && real(a) == real(b)
}

fn preview(steps: &[Step], imports: &[Vec<&str>], args: &Args) -> io::Result<()> {
    let (mut stdout, is_removal) = (io::stdout().lock(), args.remove);
    let mut agent = None;
    for step in steps {
        let text = show::text(step, is_removal);
        if text.is_empty() {
            continue;
        }
        if agent.replace(step.agent) != Some(step.agent) {
            writeln!(stdout, "# {}", step.agent.name())?;
        }
        writeln!(stdout, "{text}")?;
    }
    if !steps.iter().any(Step::is_change) {
        writeln!(stdout, "There is nothing to change.")?;
    }
    for import in imports {
        let command = import.join(" ");
        writeln!(stdout, "Then `treelined {command}` imports what is there.")?;
    }
    if reads_ahead(args) {
        let command = READ_AHEAD.join(" ");
        writeln!(
            stdout,
            "Then `treelined {command}` reads all sessions in the background, so that the hooks answer at once."
        )?;
    }
    Ok(())
}

/// Asks the user for consent. Fails without a terminal, since no one can answer.
fn is_agreed(args: &Args) -> anyhow::Result<bool> {
    if args.json || !io::stdin().is_terminal() {
        writeln!(
            io::stderr(),
            "treelined-setup: nothing was written; --yes writes without asking"
        )?;
        return Ok(false);
    }
    let mut stdout = io::stdout().lock();
    write!(stdout, "Write this? [y/N] ")?;
    stdout.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let is_agreed = ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
    if !is_agreed {
        writeln!(stdout, "Nothing was written.")?;
    }
    Ok(is_agreed)
}

/// Runs the steps. Returns for each step why it failed, or `None`. The record is written before the steps. If a step
/// then fails, the record has a change that was not made, which is harmless.
fn apply(
    steps: &[Step],
    record: &mut Record,
    path: &Path,
    is_removal: bool,
) -> anyhow::Result<Vec<Option<String>>> {
    let earlier = record.files.clone();
    if !is_removal {
        steps.iter().for_each(|step| step.note(record));
        record.write(path)?;
    }
    let mut failures = Vec::new();
    let made = record.folders.len();
    for step in steps {
        let applied = step.apply(&mut record.folders);
        match &applied {
            Ok(()) if is_removal => step.note_removed(record),
            Ok(()) => {}
            Err(refusal) => {
                // The file still has the content that an earlier setup wrote.
                match earlier.get(&step.path) {
                    Some(change) => record.files.insert(step.path.clone(), change.clone()),
                    None => record.files.remove(&step.path),
                };
                let path = show::safe(&step.path.display().to_string());
                writeln!(
                    io::stderr(),
                    "treelined-setup: {path}: {}",
                    show::safe(&refusal.0)
                )?;
            }
        }
        failures.push(applied.err().map(|refusal| refusal.0));
    }
    if is_removal {
        // Folders that are not empty stay.
        let folders = record.folders.drain(..).rev();
        let mut left: Vec<PathBuf> = folders
            .filter(|folder| std::fs::remove_dir(folder).is_err() && folder.is_dir())
            .collect();
        left.reverse();
        record.folders = left;
    }
    let has_failed = failures.iter().any(Option::is_some);
    if is_removal || has_failed || record.folders.len() > made {
        record.write(path)?;
    }
    Ok(failures)
}

/// Starts the units that were written, or stops the units that were removed, if the systemd of this user runs.
/// Otherwise units start at the next login.
fn start_units(machine: &Machine, steps: &[Step], failures: &[Option<String>], is_removal: bool) {
    let Some(systemctl) = machine.find("systemctl") else {
        return;
    };
    let call = |arguments: &[OsString]| {
        let mut command = Command::new(&systemctl);
        command.arg("--user").args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let _not_running = command.status();
    };
    let done = steps.iter().zip(failures);
    let units = done.filter(|(step, failure)| step.is_unit() && failure.is_none());
    let names: Vec<OsString> = units
        .filter_map(|(step, _)| Some(step.path.file_name()?.to_owned()))
        .collect();
    if names.is_empty() {
        return;
    }
    let reload = ["daemon-reload".into()];
    let with_names =
        |verb: &str| -> Vec<OsString> { [verb.into()].into_iter().chain(names).collect() };
    match is_removal {
        // systemd also knows a running unit whose file was removed.
        true => {
            call(&with_names("stop"));
            call(&reload);
        }
        false => {
            call(&reload);
            call(&with_names("restart"));
        }
    }
}

/// The arguments of the imports: one import for each agent that is named, or one for all agents.
fn imports(args: &Args) -> Vec<Vec<&'static str>> {
    match args.agents.as_slice() {
        [] => vec![vec!["import"]],
        named => {
            let one = |agent: &Agent| vec!["import", "--from", agent.name()];
            named.iter().map(one).collect()
        }
    }
}

/// The results of the imports.
struct Imported {
    /// The sums of their totals, for `--json`.
    totals: Option<Value>,
    /// Whether all imports succeeded.
    is_whole: bool,
}

/// Imports existing conversations. Shows the progress, except with `--json`.
fn import(args: &Args, program: &Program, imports: &[Vec<&str>]) -> anyhow::Result<Imported> {
    let mut imported = Imported {
        totals: None,
        is_whole: true,
    };
    for import in imports {
        let mut command = Command::new(program.path());
        if let Some(folder) = &args.session_dir {
            command.arg("--session-dir").arg(folder);
        }
        command.args(import).stderr(Stdio::inherit());
        let output = match args.json {
            true => command.arg("--json").output(),
            false => command.stdout(Stdio::inherit()).output(),
        };
        let why = match output {
            Ok(output) => {
                let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
                let totals = result.get("totals").and_then(Value::as_object);
                totals
                    .into_iter()
                    .for_each(|totals| add_totals(&mut imported, totals));
                (!output.status.success()).then(|| output.status.to_string())
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            imported.is_whole = false;
            let command = import.join(" ");
            writeln!(
                io::stderr(),
                "treelined-setup: `treelined {command}` failed: {why}"
            )?;
        }
    }
    Ok(imported)
}

/// Whether the sessions are read before the first hook recalls something.
fn reads_ahead(args: &Args) -> bool {
    args.recall && !args.no_import
}

/// Starts the process that reads the sessions. If it fails, the setup has not failed: a hook starts it again.
fn read_ahead(args: &Args, program: &Program) -> io::Result<()> {
    let mut command = Command::new(program.path());
    if let Some(folder) = &args.session_dir {
        command.arg("--session-dir").arg(folder);
    }
    command.args(READ_AHEAD).stdin(Stdio::null());
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = silent.process_group(0).spawn() {
        let command = READ_AHEAD.join(" ");
        writeln!(
            io::stderr(),
            "treelined-setup: `treelined {command}` did not start: {error}"
        )?;
    }
    Ok(())
}

fn add_totals(imported: &mut Imported, totals: &Map<String, Value>) {
    let sum = imported.totals.get_or_insert_with(|| json!({}));
    for (name, value) in totals {
        let Some(sum) = sum.as_object_mut() else {
            return;
        };
        let earlier = sum.get(name).and_then(Value::as_u64).unwrap_or(0);
        let value = match value.as_u64() {
            Some(value) => json!(earlier.saturating_add(value)),
            None => value.clone(),
        };
        sum.insert(name.clone(), value);
    }
}

/// Reports the result and what to try first. `failures` has for each step why it failed; `None` if the steps were not
/// run.
fn finish(
    args: &Args,
    steps: &[Step],
    failures: Option<&[Option<String>]>,
    totals: Option<&Value>,
) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    if args.json {
        let of_step = |at: usize| failures.and_then(|all| all.get(at)?.as_deref());
        let rows = steps.iter().enumerate();
        let rows: Vec<Value> = rows
            .map(|(at, step)| show::json(step, of_step(at)))
            .collect();
        let is_done = |(at, step): (usize, &Step)| step.is_change() && of_step(at).is_none();
        let written = failures.is_some() && steps.iter().enumerate().any(is_done);
        let mut result = json!({"written": written, "steps": rows});
        if let (Some(result), Some(totals)) = (result.as_object_mut(), totals) {
            result.insert("imported".to_owned(), totals.clone());
        }
        writeln!(stdout, "{result}")?;
    } else if failures.is_some() && !args.remove {
        writeln!(stdout, "\nTry first: treelined list --all")?;
        writeln!(
            stdout,
            "Then: treelined search WORD, or ask an agent what was tried before."
        )?;
    }
    Ok(())
}
