//! Shows errors about wrong arguments, and the help, to a person at a shell.

use super::arguments::Arguments;
use super::failure::{ShellError, USAGE};
use super::help::fitted;
use super::import_hook::is_hook;
use super::interrupt;
use super::options::{Options, WITH_TEAM, built_without};
use super::screen::Screen;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::terminal;

/// The commands and options that need the feature `nats` or `postgres`.
const OF_TEAM: [&str; 4] = ["push", "pull", "--log", "--cluster"];

/// Reports wrong arguments, or shows the help. Control characters of the arguments are made visible.
pub(crate) fn refuse(error: clap::Error) -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if !error.use_stderr() {
        interrupt::watch();
        // If the reader of stdout is gone, it has read enough.
        let _unread = show(&error, &arguments);
        return ExitCode::SUCCESS;
    }
    let shown: Vec<_> = arguments.iter().map(|text| terminal::line(text)).collect();
    if let Some(error) = left_out(&error) {
        return of_hook(error.report());
    }
    let is_plain = shown.iter().all(|text| matches!(text, Cow::Borrowed(_)));
    let error = match is_plain {
        true => error,
        false => Arguments::try_parse_from(shown.iter().map(|text| &**text))
            .err()
            .unwrap_or(error),
    };
    let words = shown.iter().map(|text| &**text);
    of_hook(of(&error.render().to_string(), words).report())
}

/// The exit code after a failure. For a hook it is 0.
pub(super) fn of_hook(code: ExitCode) -> ExitCode {
    match is_hook(std::env::args_os()) {
        true => ExitCode::SUCCESS,
        false => code,
    }
}

/// The error for a command or option that only programs with the feature `nats` or `postgres` have; `None` for
/// others.
fn left_out(error: &clap::Error) -> Option<ShellError> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    };
    let name = named(ContextKind::InvalidSubcommand).or_else(|| named(ContextKind::InvalidArg))?;
    let is_left_out = cfg!(not(feature = "team")) && OF_TEAM.contains(&name);
    let why = || {
        let servers = "NATS JetStream or PostgreSQL";
        built_without(name, servers, "features nats and postgres")
    };
    is_left_out.then(|| ShellError::new(USAGE, why(), WITH_TEAM))
}

/// Shows the help or the version. Uses the pager if the text is longer than the terminal.
fn show(text: &clap::Error, arguments: &[String]) -> io::Result<()> {
    let options = Options {
        no_pager: arguments.iter().any(|argument| argument == "--no-pager"),
        ..Options::default()
    };
    let mut screen = Screen::paged(&options);
    let text = text.render();
    let text = match screen.has_colours() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    write!(screen, "{}", fitted(&text, screen.columns))?;
    screen.finish()
}

/// Converts a report of clap to an error. The message names the words that may have been meant. The remedy has the
/// usage, and the command that shows the help.
fn of<'w>(report: &str, mut words: impl Iterator<Item = &'w str>) -> ShellError {
    let report = report.strip_prefix("error: ").unwrap_or(report);
    let command = Arguments::command();
    let subcommand = words.find_map(|word| command.find_subcommand(word));
    let is_query = subcommand.is_some_and(|found| matches!(found.get_name(), "ask" | "search"));
    let (mut message, mut notes, mut usage) = (Vec::new(), String::new(), None);
    for part in report.split("\n\n") {
        if let Some(lines) = part.strip_prefix("Usage: ") {
            usage = lines.lines().next();
        } else if part.trim_start().starts_with("tip: ") {
            notes.extend(part.lines().filter_map(|line| note(line, is_query)));
        } else if !part.starts_with("For more information") {
            message.extend(part.lines().map(str::to_owned));
        }
    }
    if let Some(first) = message.first_mut() {
        first.push_str(&notes);
    }
    let help = match subcommand {
        Some(found) => format!("treelined {} --help", found.get_name()),
        None => "treelined --help".to_owned(),
    };
    let remedy = match usage {
        Some(usage) => format!("{usage}, or {help}"),
        None => help,
    };
    ShellError::new(USAGE, message.join("\n"), remedy)
}

/// A tip of clap in the form for the end of a message. `is_query` says whether the arguments are words to search for.
fn note(line: &str, is_query: bool) -> Option<String> {
    let tip = line.trim_start().strip_prefix("tip: ")?;
    if is_query && tip.contains("as a value") {
        return Some("; write -- before the words to leave one out: -- cache -redis".to_owned());
    }
    Some(match tip.split_once("exist") {
        // clap lists the most similar name last.
        Some((_, names)) if tip.contains("similar") => {
            let names = names.split_once(": ").map_or(names, |(_, names)| names);
            let names: Vec<&str> = names.split(", ").collect();
            let names: Vec<&str> = names.into_iter().rev().collect();
            format!("; did you mean {}?", names.join(" or "))
        }
        _ => format!("; {tip}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &[&str]) -> String {
        let arguments = ["treelined"].into_iter().chain(arguments.iter().copied());
        let error = Arguments::try_parse_from(arguments.clone()).unwrap_err();
        let error = of(&error.render().to_string(), arguments);
        assert_eq!(error.code, USAGE);
        error.to_string()
    }

    #[test]
    fn usage_errors_have_a_message_and_a_remedy() {
        for (arguments, expected) in [
            (
                &["list", "--jsn"][..],
                "unexpected argument '--jsn' found; did you mean '--json'?\n  \
                 try: treelined list --json [WORDS]..., or treelined list --help",
            ),
            (
                &["search", "cache", "-redis"],
                "unexpected argument '-r' found; write -- before the words to leave one out: -- cache -redis\n  \
                 try: treelined search [OPTIONS] <WORDS>..., or treelined search --help",
            ),
            (
                &["export", "x"],
                "the following required arguments were not provided:\n  <--html|--markdown|--jsonl|--text|--format <FORMAT>>\n  \
                 try: treelined export <--html|--markdown|--jsonl|--text|--format <FORMAT>> <SESSION>, or treelined export --help",
            ),
            (
                &["serve", "--idle-exit", "x"],
                "invalid value 'x' for '--idle-exit <TIME>': must be a number and a unit, such as 90s, 10m or 1h\n  \
                 try: treelined serve --help",
            ),
        ] {
            assert_eq!(shown(arguments), expected);
        }
        let unknown = shown(&["lst"]);
        assert!(unknown.contains("did you mean 'list'"), "{unknown}");
        assert!(unknown.ends_with("or treelined --help"), "{unknown}");
        let tool = shown(&["import", "--from", "codx"]);
        let lines: Vec<&str> = tool.lines().collect();
        assert_eq!(
            lines[0],
            "invalid value 'codx' for '--from <FROM>'; did you mean 'codex'?"
        );
        assert!(
            lines[1].starts_with("  [possible values: claude-code, "),
            "{tool}"
        );
    }
}
