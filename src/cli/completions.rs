//! Completions: `treelined completions` prints a script for a shell. The script asks this program for the words
//! that may follow, such as methods, and names and ids of sessions.
//!
//! The programs of other packages are completed too, with the options and commands that their `--help` lists.

use super::bash::QuotingBash;
use super::candidates::sessions;
use super::entry_candidates::entries;
use super::package::program_beside;
use super::screen::Screen;
use anyhow::Context;
use clap::{Arg, Args, Command, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::{CompleteEnv, Elvish, Fish, Powershell, Shells, Zsh};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{self, ExitCode, Stdio};

/// The environment variable with which a script asks for words. Its value is the name of the shell.
const VARIABLE: &str = "TREELINED_COMPLETE";
/// The programs of the other packages.
pub(super) const COMPANIONS: [&str; 5] = [
    "treelined-tui",
    "treelined-mcp",
    "treelined-acp",
    "treelined-setup",
    "treelined-files",
];
/// The commands that run programs of other packages.
const PACKAGES: [(&str, &str); 5] = [
    ("tui", "treelined-tui"),
    ("mcp", "treelined-mcp"),
    ("acp", "treelined-acp"),
    ("setup", "treelined-setup"),
    ("files", "treelined-files"),
];
const SHELLS: Shells<'static> = Shells(&[&QuotingBash, &Elvish, &Fish, &Powershell, &Zsh]);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined completions bash > ~/.local/share/bash-completion/completions/treelined
  treelined completions zsh > \"${fpath[1]}/_treelined\"
  treelined completions fish > ~/.config/fish/completions/treelined.fish

The script completes treelined, treelined-tui, treelined-mcp, treelined-acp, treelined-setup and treelined-files.")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints the script for a shell. `program` is the command line of this program, which is completed.
pub(super) fn run(completions: &Completions, program: &Command) -> anyhow::Result<ExitCode> {
    let shell = completions.shell.to_string();
    let registered = SHELLS.completer(&shell).context("find the shell")?;
    let mut script = Vec::new();
    for bin in ["treelined"].into_iter().chain(COMPANIONS) {
        let name = bin.replace('-', "_");
        registered.write_registration(VARIABLE, &name, bin, "treelined", &mut script)?;
    }
    let visible = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let names: Vec<&str> = visible.map(Command::get_name).collect();
    let mut screen = Screen::new();
    if completions.shell == Shell::Zsh {
        // zsh recognizes a completion file by this line.
        writeln!(screen, "#compdef treelined {}", COMPANIONS.join(" "))?;
    }
    writeln!(screen, "# Completes: {}", names.join(", "))?;
    screen.write_all(&script)?;
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// If a script has asked for the words that may follow, prints them. Returns whether a script has asked. `program`
/// makes the command line of this program.
pub(crate) fn answer(program: fn() -> Command) -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let here = std::env::current_dir().ok();
    let completed = CompleteEnv::with_factory(|| command(&words, program))
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(words.iter().cloned(), here.as_deref());
    // After a failure no words are printed, so the shell offers none.
    completed.unwrap_or(true)
}

/// The command line to complete. The word after `--` names its program.
fn command(words: &[OsString], of_program: fn() -> Command) -> Command {
    let mut typed = words.iter().skip_while(|word| *word != "--").skip(1);
    let program = typed.next();
    let program = program.and_then(|word| Path::new(word).file_name()?.to_str());
    // The help of a command is needed only if the command was typed.
    let help = |program: &str, command: Option<&str>| {
        let is_typed = command.is_none_or(|command| words.iter().any(|word| word == command));
        let help = is_typed.then(|| help_of(program, command)).flatten();
        help.unwrap_or_default()
    };
    if let Some(name) = COMPANIONS.iter().find(|name| program == Some(**name)) {
        return described(name, &|command| help(name, command));
    }
    let package = typed.find_map(|word| PACKAGES.iter().find(|(name, _)| word == *name));
    match package {
        Some((name, program)) => {
            with_package(of_program(), name, &|command| help(program, command))
        }
        None => of_program(),
    }
}

/// The help of a program, or of one of its commands.
type HelpOf<'a> = &'a dyn Fn(Option<&str>) -> String;

/// The command line of this program, where the command `name` has the options and commands of another program.
fn with_package(command: Command, name: &'static str, help: HelpOf<'_>) -> Command {
    // Options of this program that may follow every command need not be added again.
    let global = command.get_arguments().filter(|arg| arg.is_global_set());
    let global: Vec<_> = global
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .collect();
    let is_own = |line: &&str| {
        let option = line.split_whitespace().next().unwrap_or_default();
        !global.iter().any(|name| name == option)
    };
    let own = |command: Option<&str>| {
        let help = help(command);
        let lines: Vec<&str> = help.lines().filter(is_own).collect();
        lines.join("\n")
    };
    command.mut_subcommand(name, |_| described(name, &own))
}

/// The command line of another program, with the options and commands that its help lists.
fn described(name: &'static str, help_of: HelpOf<'_>) -> Command {
    let help = help_of(None);
    commands(&help).fold(with_arguments(name, &help), |described, name| {
        // clap needs names that live as long as the process, and this process ends after it has printed the words.
        let help = help_of(Some(name));
        described.subcommand(with_arguments(name.to_owned().leak(), &help))
    })
}

/// The names of the commands in a help, which has them in lines such as `  open     Help`.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !matches!(*name, "" | "help"))
}

/// A command with the arguments and options that its help lists.
fn with_arguments(name: &'static str, help: &str) -> Command {
    let mut command = Command::new(name);
    if help.contains("[ENTRY]") {
        command = command.arg(Arg::new("ENTRY").add(ArgValueCompleter::new(entries)));
    }
    if help.contains("[SESSION]") {
        let session = Arg::new("SESSION").add(ArgValueCompleter::new(sessions));
        command = command.arg(session);
    }
    if help.contains("-- <AGENT>") {
        let agent = Arg::new("AGENT").num_args(1..).last(true);
        command = command.arg(agent.value_hint(ValueHint::CommandName));
    }
    for arg in help.lines().filter_map(option) {
        // A line of an explanation may also begin with an option, so an option may occur twice.
        if command
            .get_arguments()
            .all(|known| known.get_id() != arg.get_id())
        {
            command = command.arg(arg);
        }
    }
    command
}

/// The output of `PROGRAM [COMMAND] --help`; `None` if there is no such program.
pub(super) fn help_of(name: &str, command: Option<&str>) -> Option<String> {
    let program = program_beside(name).ok()?;
    let asked = process::Command::new(program)
        .args(command)
        .arg("--help")
        .env_remove(VARIABLE)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    String::from_utf8(asked.ok()?.stdout).ok()
}

/// The option in a line of help such as `  -l, --latest <N>  Help`.
fn option(line: &str) -> Option<Arg> {
    let words = line.trim_start();
    let rest = match words.strip_prefix("--") {
        Some(rest) => rest,
        None => words.strip_prefix('-')?.split_once(", --")?.1,
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(end)?;
    if name.is_empty() || matches!(name, "help" | "version") {
        return None;
    }
    // clap needs names that live as long as the process, and this process ends after it has printed the words.
    let name: &'static str = name.to_owned().leak();
    let arg = Arg::new(name).long(name);
    let takes_value = rest.trim_start().starts_with('<');
    Some(match takes_value {
        true if name == "session" => arg.add(ArgValueCompleter::new(sessions)),
        true => arg.value_hint(ValueHint::AnyPath),
        false => arg.action(clap::ArgAction::SetTrue),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Arguments;
    use clap::CommandFactory;

    /// The option `--session` of treelined-mcp once got the same id as the argument `[SESSION]`, which clap refuses.
    #[test]
    fn a_described_program_is_a_valid_command() {
        let help = "Usage: treelined-x [OPTIONS] [SESSION] [-- <AGENT>...]\n  --session <ID>\n  --all\n  --all";
        let command = described("treelined-x", &|_| help.to_owned());
        let options = command.get_opts().filter_map(Arg::get_long);
        assert_eq!(options.collect::<Vec<_>>(), ["session", "all"]);
        command.debug_assert();
    }

    #[test]
    fn the_arguments_are_a_valid_command() {
        Arguments::command().debug_assert();
        let help = "Usage: treelined-acp [OPTIONS] [-- <AGENT>...]\n  --session-dir <FOLDER>\n  --state <FOLDER>";
        with_package(Arguments::command(), "acp", &|_| help.to_owned()).debug_assert();
    }

    /// `treelined files` once offered neither its commands nor entries.
    #[test]
    fn the_commands_of_a_program_are_described_too() {
        let help = |command: Option<&str>| match command {
            None => {
                "Usage: treelined-x <COMMAND>\n\nCommands:\n  open    Write\n            it\n  help    This\n\nOptions:\n  --state <FOLDER>"
            }
            Some("open") => {
                "Usage: treelined-x open [OPTIONS] [ENTRY]\n\nOptions:\n  --into <DIR>\n  --json"
            }
            Some(other) => panic!("{other} is not a command"),
        };
        let help = |command: Option<&str>| help(command).to_owned();
        let command = described("treelined-x", &help);
        let names = command.get_subcommands().map(Command::get_name);
        assert_eq!(names.collect::<Vec<_>>(), ["open"]);
        let open = command.find_subcommand("open").unwrap();
        let arguments = open.get_arguments().map(|arg| arg.get_id().as_str());
        assert_eq!(arguments.collect::<Vec<_>>(), ["ENTRY", "into", "json"]);
        with_package(Arguments::command(), "files", &help).debug_assert();
    }

    #[test]
    fn options_are_read_from_help() {
        for (line, name, takes_value) in [
            ("      --latest          Open the latest", "latest", false),
            ("      --session-dir <DIR>", "session-dir", true),
            ("  -o, --output <FILE>  Where", "output", true),
        ] {
            let arg = option(line).unwrap();
            assert_eq!(arg.get_long(), Some(name));
            assert_eq!(arg.get_action().takes_values(), takes_value, "{line}");
        }
        for line in ["  -h, --help", "Usage: x [OPTIONS]", "", "  -", "  --"] {
            assert!(option(line).is_none(), "{line}");
        }
    }
}
