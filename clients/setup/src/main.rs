//! The program `treelined-setup`.

mod agents;
mod file;
mod json;
mod pieces;
mod plan;
mod program;
mod record;
mod refusal;
mod show;
#[cfg(test)]
mod tests;
mod toml;

use agents::{Agent, Machine, Target};
use anyhow::{Context, bail};
use clap::Parser;
use plan::{Step, What};
use program::Program;
use record::Record;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The exit code of wrong arguments.
const USAGE: u8 = 2;

/// Makes the agents of this machine keep their conversations in treelined by themselves.
///
/// It shows what it would write, asks, and writes: a hook at the end of each turn where the agent has one, else a user unit
/// for `treelined import --watch`; and the MCP server, with which the agent finds earlier conversations. Then it imports what
/// is there. Comments, order and everything else in the files stay; --remove takes out what was added.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The agents [default: those on this machine]
    #[arg(value_enum)]
    agents: Vec<Agent>,
    /// Write without asking
    #[arg(long, conflicts_with = "print")]
    yes: bool,
    /// Take out what was added
    #[arg(long)]
    remove: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    print: bool,
    /// Do not import what is there
    #[arg(long)]
    no_import: bool,
    /// Print the result as JSON; nobody is asked
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
    let program = program_of(args, &machine)?;
    let agents: Vec<Agent> = match args.agents.as_slice() {
        // What was added to an agent that is gone is taken out too.
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
        .flat_map(|agent| agent.targets(&machine, &program))
        .collect();
    let path = machine.record();
    let mut record = Record::read(&path)?;
    let mut steps = match args.remove {
        true => plan::removing(&targets, &program, &record),
        false => plan::adding(&targets, &program, &record),
    };
    if args.remove {
        // Links before the files that they name.
        steps.sort_by_key(|step| !matches!(step.what, What::Unlink(_)));
    }
    let has_changes = steps.iter().any(Step::is_change);
    if !args.json {
        preview(&steps, args.remove)?;
    }
    if args.print || (!has_changes && args.remove) {
        finish(args, &steps, &[], &Value::Null)?;
        return Ok(ExitCode::SUCCESS);
    }
    if has_changes && !args.yes && !is_agreed(args)? {
        return Ok(ExitCode::from(USAGE));
    }
    let failures = apply(&steps, &mut record, &path, args.remove)?;
    if has_changes {
        start_units(&machine, &steps);
    }
    let imported = match args.remove || args.no_import {
        true => Value::Null,
        false => import(args, &program)?,
    };
    finish(args, &steps, &failures, &imported)?;
    Ok(match failures.iter().all(Option::is_none) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The program that agents start, by an absolute path: they may have another `PATH`.
fn program_of(args: &Args, machine: &Machine) -> anyhow::Result<Program> {
    let named = match &args.program {
        Some(path) if path.components().count() > 1 => std::path::absolute(path).ok(),
        Some(name) => name.to_str().and_then(|name| machine.find(name)),
        None => machine.find("treelined"),
    };
    let named = named.context("the program `treelined` is neither named nor on the PATH")?;
    // The name on the `PATH` outlives an update.
    let on_path = machine
        .find("treelined")
        .filter(|found| is_same(found, &named));
    let session_dir = args.session_dir.as_deref().map(std::path::absolute);
    let session_dir = session_dir
        .transpose()
        .context("find the session directory")?;
    let program = Program::new(&on_path.unwrap_or(named), session_dir.as_deref());
    program.context("the path of the program, or of the session directory, is not text")
}

fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(a).is_some() && real(a) == real(b)
}

fn preview(steps: &[Step], is_removal: bool) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
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
    Ok(())
}

/// Asks. Without a terminal nobody can answer.
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

/// Does the steps; returns for each why it failed. The record is written first: it says at the worst what has not happened,
/// which changes nothing.
fn apply(
    steps: &[Step],
    record: &mut Record,
    path: &Path,
    is_removal: bool,
) -> anyhow::Result<Vec<Option<String>>> {
    if !is_removal {
        steps.iter().for_each(|step| step.note(record));
        record.write(path)?;
    }
    let mut failures = Vec::new();
    let made = record.folders.len();
    for step in steps {
        let applied = step.apply();
        match &applied {
            Ok(folders) => {
                record.folders.extend(folders.iter().cloned());
                if is_removal {
                    step.note(record);
                }
            }
            Err(refusal) => {
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
        // Those that are not empty stay.
        let folders = record.folders.drain(..).rev();
        let mut left: Vec<PathBuf> = folders
            .filter(|folder| std::fs::remove_dir(folder).is_err() && folder.is_dir())
            .collect();
        left.reverse();
        record.folders = left;
    }
    if is_removal || record.folders.len() > made {
        record.write(path)?;
    }
    Ok(failures)
}

/// Starts the units that were written, if this user's systemd runs; else they start at the next login.
fn start_units(machine: &Machine, steps: &[Step]) {
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
    let units = steps
        .iter()
        .filter(|step| step.is_change() && step.is_unit());
    let names: Vec<OsString> = units
        .filter_map(|step| Some(step.path.file_name()?.to_owned()))
        .collect();
    if names.is_empty() {
        return;
    }
    let are_gone = steps
        .iter()
        .any(|step| matches!(step.what, What::Unlink(_)));
    let verb = if are_gone { "stop" } else { "restart" };
    call(&["daemon-reload".into()]);
    let arguments: Vec<OsString> = [verb.into()].into_iter().chain(names).collect();
    call(&arguments);
}

/// Imports what is there, and shows it, or returns it for `--json`.
fn import(args: &Args, program: &Program) -> anyhow::Result<Value> {
    let mut command = Command::new(program.path());
    if let Some(folder) = &args.session_dir {
        command.arg("--session-dir").arg(folder);
    }
    command.arg("import");
    if !args.json {
        let status = command.status().context("start the import")?;
        return Ok(json!({"code": status.code()}));
    }
    let output = command
        .arg("--json")
        .stderr(Stdio::inherit())
        .output()
        .context("start the import")?;
    Ok(serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

/// Says how it ended, and what to try first.
fn finish(
    args: &Args,
    steps: &[Step],
    failures: &[Option<String>],
    imported: &Value,
) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    if args.json {
        let rows = steps.iter().enumerate().map(|(at, step)| {
            let failure = failures.get(at).and_then(Option::as_deref);
            show::json(step, failure)
        });
        let mut result =
            json!({"written": !failures.is_empty(), "steps": rows.collect::<Vec<_>>()});
        if let (Some(result), Some(totals)) = (result.as_object_mut(), imported.get("totals")) {
            result.insert("imported".to_owned(), totals.clone());
        }
        writeln!(stdout, "{result}")?;
    } else if !args.print && !args.remove {
        writeln!(stdout, "\nTry first: treelined list --all")?;
        writeln!(
            stdout,
            "Then: treelined search WORD, or ask an agent what was tried before."
        )?;
    }
    Ok(())
}
