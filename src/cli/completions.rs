//! Completions: `treelined completions` prints a script for a shell, which asks this program for the words that may
//! follow. They include the methods, and the names and ids of sessions.
//!
//! The programs of the other packages are completed too, by the options that their `--help` lists.

use super::bash::QuotingBash;
use super::daemon::ChildDaemon;
use super::package::program_beside;
use super::restore;
use super::screen::Screen;
use super::session_choice::{ListedRow, rows};
use super::tree::title;
use super::{Arguments, Options};
use anyhow::Context;
use clap::{Arg, Args, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Elvish, Fish, Powershell, Shells, Zsh};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, Stdio};
use treelined_core::terminal;
use treelined_service::rpc;

/// The variable with which a script asks for words; its value is the name of the shell.
const VARIABLE: &str = "TREELINED_COMPLETE";
/// The programs of the other packages.
pub(super) const COMPANIONS: [&str; 3] = ["treelined-tui", "treelined-mcp", "treelined-acp"];
/// The commands that become programs of other packages.
const PACKAGES: [(&str, &str); 2] = [("mcp", "treelined-mcp"), ("acp", "treelined-acp")];
/// The most names and ids that are offered: those of the sessions with the last activity.
const MOST_SESSIONS: usize = 200;
const SHELLS: Shells<'static> = Shells(&[&QuotingBash, &Elvish, &Fish, &Powershell, &Zsh]);
/// Characters of the name beside an id.
const HELP_CHARS: usize = 60;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined completions bash > ~/.local/share/bash-completion/completions/treelined
  treelined completions zsh > \"${fpath[1]}/_treelined\"
  treelined completions fish > ~/.config/fish/completions/treelined.fish

The script completes treelined, treelined-tui, treelined-mcp and treelined-acp.")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints the script for a shell.
pub(super) fn run(completions: &Completions) -> anyhow::Result<ExitCode> {
    let shell = completions.shell.to_string();
    let registered = SHELLS.completer(&shell).context("find the shell")?;
    let mut script = Vec::new();
    for bin in ["treelined"].into_iter().chain(COMPANIONS) {
        let name = bin.replace('-', "_");
        registered.write_registration(VARIABLE, &name, bin, "treelined", &mut script)?;
    }
    let command = Arguments::command();
    let visible = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let names: Vec<&str> = visible.map(Command::get_name).collect();
    let mut screen = Screen::new();
    if completions.shell == Shell::Zsh {
        // zsh loads a file of its folder of functions by this line.
        writeln!(screen, "#compdef treelined {}", COMPANIONS.join(" "))?;
    }
    writeln!(screen, "# Completes: {}", names.join(", "))?;
    screen.write_all(&script)?;
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the words that may follow if a script has asked. Returns whether one has.
pub(crate) fn answer() -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let here = std::env::current_dir().ok();
    let completed = CompleteEnv::with_factory(|| command(&words))
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(words.iter().cloned(), here.as_deref());
    // A shell that gets no words offers none.
    completed.unwrap_or(true)
}

/// The command that is completed: the word after `--` is its program.
fn command(words: &[OsString]) -> Command {
    let mut typed = words.iter().skip_while(|word| *word != "--").skip(1);
    let program = typed.next();
    let program = program.and_then(|word| Path::new(word).file_name()?.to_str());
    if let Some(name) = COMPANIONS.iter().find(|name| program == Some(**name)) {
        return described(name, &help_of(name).unwrap_or_default());
    }
    let package = typed.find_map(|word| PACKAGES.iter().find(|(name, _)| word == *name));
    match package {
        Some((name, program)) => with_package(name, &help_of(program).unwrap_or_default()),
        None => Arguments::command(),
    }
}

/// The command of this program, in which the command of this name has the options of a package's program.
fn with_package(name: &'static str, help: &str) -> Command {
    let command = Arguments::command();
    // Options of this program may also follow the command.
    let global = command.get_arguments().filter(|arg| arg.is_global_set());
    let global: Vec<_> = global
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .collect();
    let is_own = |line: &&str| {
        let option = line.split_whitespace().next().unwrap_or_default();
        !global.iter().any(|name| name == option)
    };
    let own: Vec<&str> = help.lines().filter(is_own).collect();
    command.mut_subcommand(name, |_| described(name, &own.join("\n")))
}

/// The command of another program, as its help lists its options.
fn described(name: &'static str, help: &str) -> Command {
    let mut command = Command::new(name);
    if help.contains("[SESSION]") {
        let session = Arg::new("SESSION").add(ArgValueCompleter::new(sessions));
        command = command.arg(session);
    }
    if help.contains("-- <AGENT>") {
        let agent = Arg::new("AGENT").num_args(1..).last(true);
        command = command.arg(agent.value_hint(ValueHint::CommandName));
    }
    for arg in help.lines().filter_map(option) {
        // A line of an explanation may begin with an option too.
        if command
            .get_arguments()
            .all(|known| known.get_id() != arg.get_id())
        {
            command = command.arg(arg);
        }
    }
    command
}

/// The output of `PROGRAM --help`; `None` if there is no such program.
pub(super) fn help_of(name: &str) -> Option<String> {
    let program = program_beside(name).ok()?;
    let asked = process::Command::new(program)
        .arg("--help")
        .env_remove(VARIABLE)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    String::from_utf8(asked.ok()?.stdout).ok()
}

/// The option that a line such as `  -l, --latest <N>  Help` describes.
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
    // clap keeps names for the whole run; this process ends after it has printed the words.
    let name: &'static str = name.to_owned().leak();
    let arg = Arg::new(name).long(name);
    let takes_value = rest.trim_start().starts_with('<');
    Some(match takes_value {
        true if name == "session" => arg.add(ArgValueCompleter::new(sessions)),
        true => arg.value_hint(ValueHint::AnyPath),
        false => arg.action(clap::ArgAction::SetTrue),
    })
}

/// The methods that begin so.
pub(super) fn methods(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let names = rpc::method_names().filter(|name| name.starts_with(&*current));
    names.map(CompletionCandidate::new).collect()
}

/// The ids and names of sessions that begin so, and session files.
pub(super) fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    let mut found = Vec::new();
    for row in &listed(rows) {
        if found.len() >= MOST_SESSIONS {
            break;
        }
        let name = row.name.as_deref().filter(|name| name.starts_with(&typed));
        // A control character would reach the terminal.
        if let Some(name) = name.filter(|name| !name.contains(char::is_control)) {
            found.push(CompletionCandidate::new(name));
        }
        found.extend(id_of(row, &typed));
    }
    let is_session =
        |path: &Path| path.is_dir() || path.extension().is_some_and(|end| end == "jsonl");
    found.extend(
        PathCompleter::any()
            .filter(is_session)
            .complete(OsStr::new(&typed)),
    );
    found
}

/// The ids of all sessions that begin so, deleted ones too.
pub(super) fn all_ids(current: &OsStr) -> Vec<CompletionCandidate> {
    ids(current, |daemon| {
        let mut all = rows(daemon)?;
        all.extend(restore::deleted(daemon)?);
        Ok(all)
    })
}

/// The addresses of `--listen` that begin so.
pub(super) fn addresses(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let forms = ["stdio", "unix", "unix:", "ws", "ws:127.0.0.1:"];
    let fitting = forms.into_iter().filter(|form| form.starts_with(&*current));
    fitting.map(CompletionCandidate::new).collect()
}

fn ids(
    current: &OsStr,
    read: impl FnOnce(&mut ChildDaemon) -> anyhow::Result<Vec<ListedRow>>,
) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    let found = listed(read);
    let fitting = found.iter().filter_map(|row| id_of(row, &typed));
    fitting.take(MOST_SESSIONS).collect()
}

/// The id of a session as a candidate, with its name, if it begins so.
fn id_of(row: &ListedRow, typed: &str) -> Option<CompletionCandidate> {
    if !row.session_id.starts_with(typed) || row.session_id.contains(char::is_control) {
        return None;
    }
    let about = title(row.name.as_deref(), &row.first_message);
    let about: String = terminal::line(about).chars().take(HELP_CHARS).collect();
    Some(CompletionCandidate::new(&row.session_id).help(Some(about.into())))
}

/// The rows that a daemon of this session directory lists; none if it fails.
fn listed(read: impl FnOnce(&mut ChildDaemon) -> anyhow::Result<Vec<ListedRow>>) -> Vec<ListedRow> {
    let options = Options {
        session_dir: directory_of(std::env::args_os()),
        ..Options::default()
    };
    let found = ChildDaemon::start_silent(&options).and_then(|mut daemon| {
        let rows = read(&mut daemon);
        daemon.end()?;
        rows
    });
    found.unwrap_or_default()
}

/// The word that a shell makes of what is typed, which may have backslashes and begin with a quote.
fn unquoted(typed: &str) -> String {
    let typed = typed.strip_prefix(['"', '\'']).unwrap_or(typed);
    let mut word = String::with_capacity(typed.len());
    let mut chars = typed.chars();
    while let Some(char) = chars.next() {
        word.extend(match char {
            '\\' => chars.next(),
            _ => Some(char),
        });
    }
    word
}

/// The value of `--session-dir` among these words.
fn directory_of(words: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let mut words = words.skip_while(|word| word != "--session-dir");
    words.nth(1).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The option `--session` of treelined-mcp had the id of the session without an option, which clap refuses.
    #[test]
    fn a_described_program_is_a_valid_command() {
        let help = "Usage: treelined-x [OPTIONS] [SESSION] [-- <AGENT>...]\n  --session <ID>\n  --all\n  --all";
        let command = described("treelined-x", help);
        let options = command.get_opts().filter_map(Arg::get_long);
        assert_eq!(options.collect::<Vec<_>>(), ["session", "all"]);
        command.debug_assert();
    }

    #[test]
    fn the_arguments_are_a_valid_command() {
        Arguments::command().debug_assert();
        let help = "Usage: treelined-acp [OPTIONS] [-- <AGENT>...]\n  --session-dir <FOLDER>\n  --state <FOLDER>";
        with_package("acp", help).debug_assert();
    }

    #[test]
    fn a_typed_word_is_read_without_its_quotes() {
        for (typed, word) in [
            ("A\\ to", "A to"),
            ("\"A to", "A to"),
            ("'A to", "A to"),
            ("it\\'s\\\\", "it's\\"),
            ("a\\", "a"),
        ] {
            assert_eq!(unquoted(typed), word, "{typed}");
        }
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
