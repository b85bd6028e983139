//! `treelined continue`: continues a conversation in another agent.

use super::branch_choice::BranchChoice;
use super::daemon::ChildDaemon;
use super::entry_choice;
use super::failure::{FAILED, ShellError, warn};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::session_choice::SessionQuery;
use super::tool_names;
use super::words::count;
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use treelined_core::terminal;
use treelined_files::os::process;

/// This argument is replaced with the id that the previous step prints.
const NATIVE_ID: &str = "{nativeId}";
/// The word for an agent that has no name in this program: the conversation is printed as text.
const TEXT: &str = "text";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined continue --in claude-code                 the newest session of this directory, in Claude Code
  treelined continue \"A tour\" q2 --in codex           from the entry q2, in Codex
  treelined continue \"A tour\" q2 --in codex --learned   the same, with a summary of the other branch
  treelined continue \"A tour\" --in opencode --print   shows what would be done and lost, and writes nothing
  treelined continue \"A tour\" --in text | claude -p   as a text, for any agent")]
pub(crate) struct ContinueArgs {
    #[command(flatten)]
    branch: BranchChoice,
    /// The agent that continues; `text` prints the conversation for any other agent
    #[arg(long = "in", value_parser = tool_names::agent_or(TEXT), value_name = "AGENT")]
    tool: String,
    /// The working directory of the new session [default: the directory of the old session]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Begin with a summary of the branch that is left
    #[arg(long)]
    learned: bool,
    /// Replace turns that do not fit the limit by a summary
    #[arg(long)]
    compact: bool,
    /// Give the agent only the last N turns
    #[arg(long, value_name = "N")]
    last: Option<u32>,
    /// The most tokens, estimated; 0 for no limit [default: 150000]
    #[arg(long, value_name = "TOKENS")]
    limit: Option<u64>,
    /// Whether the agent gets the thinking of the model
    #[arg(long, value_enum, default_value_t = Thinking::Drop)]
    thinking: Thinking,
    /// Write nothing; show the files, the steps and what is lost
    #[arg(long)]
    print: bool,
    /// Make the new session, and print the commands that continue it
    #[arg(long, conflicts_with = "print")]
    no_run: bool,
    /// Print the result as JSON, and do not start the agent
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Thinking {
    /// It does not
    Drop,
    /// It gets the thinking as text
    Text,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    continuation_id: Option<String>,
    files: Vec<AnsweredFile>,
    steps: Vec<Vec<String>>,
    cwd: String,
    text: Option<String>,
    messages: u64,
    tokens: u64,
    losses: Vec<AnsweredLoss>,
    tested: Option<String>,
}

#[derive(Deserialize)]
struct AnsweredFile {
    path: String,
}

#[derive(Deserialize)]
struct AnsweredLoss {
    text: String,
}

impl ContinueArgs {
    fn is_read_only(&self) -> bool {
        self.print || self.tool == TEXT
    }
}

pub(super) fn run(options: &Options, args: &ContinueArgs) -> anyhow::Result<ExitCode> {
    let (session, entry) = args.branch.wanted("continue")?;
    let mut daemon = ChildDaemon::start(options)?;
    let continued = hand_over(&mut daemon, args, &session, entry);
    let agent = continued.and_then(|answer| match answer {
        Some(answer) => steps(&mut daemon, args, &answer),
        None => Ok(None),
    });
    daemon.end()?;
    match agent? {
        Some(agent) => agent.become_it(),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Requests the continuation, and reports what is lost. Returns `None` if there is nothing to run.
fn hand_over(
    daemon: &mut ChildDaemon,
    args: &ContinueArgs,
    session: &SessionQuery,
    entry: Option<&str>,
) -> anyhow::Result<Option<Answer>> {
    let used = match args.is_read_only() {
        true => SessionUse::Read,
        false => SessionUse::Write,
    };
    let session = open(daemon, session, used)?;
    let entry = entry.map(|entry| entry_choice::find(daemon, &session, entry));
    let entry = entry.transpose()?;
    let cwd = args.cwd.as_ref().map(std::path::absolute).transpose();
    let cwd = cwd.context("find the path of --cwd")?;
    let name = |value: clap::builder::PossibleValue| value.get_name().to_owned();
    let params = json!({
        "entryId": entry,
        "tool": args.tool,
        "cwd": cwd.map(|cwd| cwd.display().to_string()),
        "learned": args.learned,
        "compact": args.compact,
        "last": args.last,
        "limit": args.limit,
        "thinking": args.thinking.to_possible_value().map(name),
        "dryRun": args.print,
    });
    let answered = daemon.call("continue_session", &params.to_string())?;
    if args.json {
        writeln!(io::stdout(), "{}", terminal::json(answered.get()))?;
        return Ok(None);
    }
    let answer: Answer =
        serde_json::from_str(answered.get()).context("read the answer to continue_session")?;
    say(&answer)?;
    if !args.is_read_only() {
        let back = format!("treelined import --from {}", args.tool);
        writeln!(
            io::stderr(),
            "afterwards: {back} brings the answers into this tree"
        )?;
    }
    if let Some(text) = &answer.text {
        let text = match io::stdout().is_terminal() {
            true => Cow::Owned(clean(text)),
            false => Cow::Borrowed(text.as_str()),
        };
        io::stdout().write_all(text.as_bytes())?;
        return Ok(None);
    }
    Ok(Some(answer))
}

/// A text that a terminal shows without obeying control characters in it.
fn clean(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(terminal::line).collect();
    lines.join("\n")
}

/// Reports what is handed over, and what is lost.
fn say(answer: &Answer) -> io::Result<()> {
    let mut out = io::stderr().lock();
    let messages = count(answer.messages, "message", "messages");
    writeln!(out, "{messages}, about {} tokens", answer.tokens)?;
    for loss in &answer.losses {
        writeln!(out, "lost: {}", terminal::line(&loss.text))?;
    }
    Ok(())
}

/// An agent that is started after the daemon has ended.
struct Agent {
    argv: Vec<String>,
    cwd: String,
}

/// Runs the steps that come before the agent. Returns the command line of the agent, with the id that the steps print.
/// `None` if there is nothing to run.
fn steps(
    daemon: &mut ChildDaemon,
    args: &ContinueArgs,
    answer: &Answer,
) -> anyhow::Result<Option<Agent>> {
    if args.print || args.no_run || !io::stdin().is_terminal() {
        let mut out = io::stdout().lock();
        for file in &answer.files {
            writeln!(out, "{}", terminal::line(&file.path))?;
        }
        for step in &answer.steps {
            writeln!(out, "cd {} && {}", quoted(&answer.cwd), command_line(step))?;
        }
        return Ok(None);
    }
    let Some((agent, before)) = answer.steps.split_last() else {
        return Ok(None);
    };
    check_version(agent, answer);
    let mut native_id = None;
    for step in before {
        native_id = id_in(&output_of(step, &answer.cwd)?).or(native_id);
    }
    if let (Some(continuation), Some(native)) = (&answer.continuation_id, &native_id) {
        let params = json!({ "continuationId": continuation, "nativeId": native });
        daemon.call("continuation_started", &params.to_string())?;
    }
    let argument = |argument: &String| match (&native_id, argument == NATIVE_ID) {
        (Some(id), true) => Ok(id.clone()),
        (None, true) => {
            let message = "the agent has printed no id of the new session";
            let remedy = format!("{} shows it", command_line(before.last().unwrap_or(agent)));
            Err(ShellError::new(FAILED, message, remedy))
        }
        _ => Ok(argument.clone()),
    };
    Ok(Some(Agent {
        argv: agent.iter().map(argument).collect::<Result<_, _>>()?,
        cwd: answer.cwd.clone(),
    }))
}

/// Runs a program until it exits, and returns its stdout.
fn output_of(argv: &[String], cwd: &str) -> anyhow::Result<String> {
    let line = command_line(argv);
    let Some((program, arguments)) = argv.split_first() else {
        return Ok(String::new());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(cwd)
        .stdin(Stdio::null());
    let done = command.stderr(Stdio::inherit()).output();
    let failed = |why: String| {
        let message = format!("{line}: {why}");
        ShellError::new(FAILED, message, "run it yourself: the file for it is made")
    };
    let done = done.map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    match done.status.success() {
        true => Ok(text),
        false => Err(failed(done.status.to_string()).into()),
    }
}

/// The first word of `output` that looks like the id of a session: the word has a digit, and consists of letters,
/// digits, `_` and `-`.
fn id_in(output: &str) -> Option<String> {
    let is_id = |word: &&str| {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        word.len() >= 8
            && word.chars().all(is_allowed)
            && word.contains(|char: char| char.is_ascii_digit())
    };
    let mut words = output
        .split(|char: char| char.is_whitespace() || matches!(char, '(' | ')' | '"' | '\'' | ':'));
    words.find(is_id).map(str::to_owned)
}

/// Whether a text has this version as a whole word: "1.18.33" is in "v1.18.33 (x)", but not in "1.18.330".
fn has_word(text: &str, version: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '+');
    let words = text.split(|char| !is_part(char));
    words
        .map(|word| word.strip_prefix('v').unwrap_or(word).trim_end_matches('.'))
        .any(|word| word == version)
}

/// Warns if the version of the agent is not the version that was tested.
fn check_version(agent: &[String], answer: &Answer) {
    let (Some(program), Some(tested)) = (agent.first(), &answer.tested) else {
        return;
    };
    let mut command = Command::new(program);
    let found = command.arg("--version").stdin(Stdio::null()).output();
    let Ok(found) = found else { return };
    let text = String::from_utf8_lossy(&found.stdout);
    if !has_word(&text, tested) {
        let first = text.lines().next().unwrap_or_default();
        let message = format!(
            "{program} says {:?}; {tested} was tested",
            terminal::line(first)
        );
        warn(
            &message,
            "if it does not go on, --in text hands the conversation over as a text",
        );
    }
}

impl Agent {
    /// Replaces this process with the agent, in its working directory.
    fn become_it(self) -> anyhow::Result<ExitCode> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Ok(ExitCode::SUCCESS);
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.cwd);
        let error = process::exec(&mut command);
        let message = format!("cannot start {program}: {error}");
        let remedy = format!("cd {} && {}", quoted(&self.cwd), command_line(&self.argv));
        Err(ShellError::new(FAILED, message, remedy).into())
    }
}

/// The arguments as a shell reads them. Control characters are written as escapes that bash, zsh and ksh read.
fn command_line(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A word in the form in which a shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |char: char| {
        char.is_ascii_alphanumeric()
            || matches!(char, '_' | '-' | '.' | '/' | ':' | '=' | ',' | '@' | '+')
    };
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false if word.contains(terminal::is_control) => escaped(word),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A word as `$'…'`. Each byte of a control character is written as three octal digits, so a digit after the escape
/// does not become a part of the escape.
fn escaped(word: &str) -> String {
    let mut out = String::from("$'");
    for char in word.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\'' | '\\' => out.extend(['\\', char]),
            char if terminal::is_control(char) => {
                for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    let _written = write!(out, "\\{byte:03o}");
                }
            }
            char => out.push(char),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_thinking_are_those_of_the_protocol() {
        crate::cli::options::assert_values::<Thinking>("HandedThoughts");
    }

    /// goose prints the title of the session after its id, and a title can have words that look like ids.
    #[test]
    fn the_id_is_found_in_what_agents_print() {
        let goose =
            "Detected format: Pi\nSession imported:\n20261124_1 - Look at build_2026-11-24 ...\n";
        let opencode = "Imported session: ses_df217bb7affeXaUtjlJV6FxxAG\n";
        let found = [goose, opencode, "Session imported\n"].map(id_in);
        let expected = [
            Some("20261124_1"),
            Some("ses_df217bb7affeXaUtjlJV6FxxAG"),
            None,
        ];
        assert_eq!(found, expected.map(|id| id.map(str::to_owned)));
    }

    #[test]
    fn a_command_line_is_as_a_shell_reads_it() {
        let argv = ["codex", "resume", "a-1", "it's; rm *", ""].map(str::to_owned);
        assert_eq!(command_line(&argv), r"codex resume a-1 'it'\''s; rm *' ''");
    }

    /// A line break was once printed as its picture within quotes, so the agent got another prompt.
    #[test]
    fn a_prompt_with_controls_is_the_same_in_a_shell() {
        let prompt = "it's\n\tone \\ \u{1b}[31m2 \u{202e}ä\u{85}3$(x) `y`";
        let line = command_line(&["printf", "%s", prompt].map(str::to_owned));
        assert!(!line.contains(terminal::is_control), "{line}");
        let said = Command::new("bash").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), prompt, "{line}");
    }

    #[test]
    fn a_text_for_a_terminal_has_no_controls_but_line_breaks() {
        let text = "one\n\u{1b}]0;title\u{7}\n";
        assert_eq!(clean(text), "one\n␛]0;title␇\n");
    }

    /// 1.18.330 was once taken for 1.18.33.
    #[test]
    fn a_version_is_a_whole_word() {
        for same in ["1.18.33", "v1.18.33\n", "codex 1.18.33.", "x/1.18.33 (y)"] {
            assert!(has_word(same, "1.18.33"), "{same}");
        }
        for other in ["1.18.330", "11.18.33", "1.18.33-beta", "1.18.33.1", ""] {
            assert!(!has_word(other, "1.18.33"), "{other}");
        }
    }
}
