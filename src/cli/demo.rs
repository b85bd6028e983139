//! `treelined demo`: a conversation with a branch, offline, in a temporary folder.
//!
//! Nothing is simulated: this program is a client of a daemon, and prints the messages that both send. [`story`] has
//! the texts of the conversation.

use super::daemon::{ChildDaemon, Incoming, RawJson};
use super::drawing::{Drawing, DrawnRow};
use super::failure::ErrorResponse;
use super::options::Options;
use super::scratch::Scratch;
use super::screen::{Screen, Style};
use super::story;
use crate::config::SummarizerName;
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use treelined_core::terminal;

/// Longer strings, in characters, are cut.
const LONGEST_SHOWN: usize = 32;
/// The number of characters of a cut string that are shown.
const SHOWN: usize = 8;
/// The number of characters that are shown of an id that the daemon chooses.
const ID_COLUMNS: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder for the page with the conversation [default: the folder for temporary files]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn run(options: &Options, demo: &DemoArgs) -> anyhow::Result<ExitCode> {
    let page = page_path(demo)?;
    let folder = Scratch::new("demo")?;
    // The settings and sessions of the user are not used.
    let config = folder.0.join("config.toml");
    std::fs::write(&config, "").with_context(|| format!("write {}", config.display()))?;
    let options = Options {
        config: Some(config),
        session_dir: Some(folder.0.clone()),
        summarizer: Some(SummarizerName::Outline),
        ..options.clone()
    };
    let mut tour = Tour {
        daemon: ChildDaemon::start(&options)?,
        screen: Screen::new(),
        answer: None,
        unacknowledged: None,
        page,
    };
    tour.screen.columns = tour.screen.columns.min(80);
    let shown = tour.all();
    tour.daemon.end()?;
    shown.map(|()| ExitCode::SUCCESS)
}

struct Tour {
    daemon: ChildDaemon,
    screen: Screen,
    /// The answer to send to the next question.
    answer: Option<Value>,
    /// The id of the request that sent the answer, until the daemon responds to it.
    unacknowledged: Option<u64>,
    /// The file to which the page is written.
    page: PathBuf,
}

/// A path at which there is no file, in the given folder or in the folder for temporary files.
fn page_path(demo: &DemoArgs) -> anyhow::Result<PathBuf> {
    let folder = demo.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = std::path::absolute(folder).context("find the folder")?;
    // The page is written at the end of the demo, so the folder is made now: an error at the end would come too late.
    let made = std::fs::create_dir_all(&folder);
    made.with_context(|| format!("make the folder {}", folder.display()))?;
    Ok(folder.join(format!("treelined-demo-{}.html", uuid::Uuid::new_v4())))
}

impl Tour {
    fn all(&mut self) -> anyhow::Result<()> {
        self.say("A daemon is running, offline; this program is its client, over a pipe.")?;
        self.say("→ is what the client sends, ← what comes back.")?;

        self.head("1  A conversation, so far")?;
        self.quietly("initialize", &story::handshake())?;
        self.quietly("create_session", &story::session())?;
        self.quietly("append_entries", &story::first_attempt())?;
        self.tree()?;
        self.say("COPY has failed. e4 names the other idea, so the client goes back there.")?;

        self.head("2  Back, without losing what was learned")?;
        self.answer = Some(story::answer());
        let navigated = self.call("navigate_tree", &story::back())?;
        self.say("\nNow e4 has a second child, the summary of what was left behind:\n")?;
        self.summary(&navigated)?;

        self.head("3  On, with the other idea")?;
        self.call("append_entries", &story::second_attempt())?;
        self.say("")?;
        self.tree()?;
        self.say("The tree has both attempts, and the second one has a summary of the first.")?;

        self.head("4  Was COPY that bad?")?;
        self.call("undo_navigation", &json!({}))?;
        self.say("")?;
        self.tree()?;
        self.say("A move appends one line to the session's file and rewrites none, so it can")?;
        self.say("always be taken back:\n")?;
        self.call("redo_navigation", &json!({}))?;

        self.head("5  Where to go from here")?;
        self.ways()?;

        self.head("6  The same as a page")?;
        let page = self.page.display().to_string();
        let params = json!({ "format": "html", "path": page });
        self.quietly("export_session", &params)?;
        self.say("The conversation in one file, to look at in a browser or to send:\n")?;
        let page = self.screen.style(Style::Cyan, &terminal::line(&page));
        writeln!(self.screen, "  {page}")?;
        self.screen.flush()?;
        Ok(())
    }

    fn ways(&mut self) -> anyhow::Result<()> {
        let ways = [
            ("", "be a client: README.md has a script"),
            (" call list_sessions", "one call, from a shell"),
            (" tree FILE", "draw a session"),
            (" export FILE --html", "a session as a page"),
            (" doctor FILE", "look for damage"),
            (" --help", "the rest"),
        ];
        let program = program();
        let longest = ways.iter().map(|(command, _)| command.len()).max();
        let columns = terminal::width(&program) + longest.unwrap_or_default();
        for (command, what) in ways {
            let command = format!("{program}{command}");
            let command = self
                .screen
                .style(Style::Cyan, &format!("{command:<columns$}"));
            writeln!(self.screen, "  {command}  {what}")?;
        }
        self.screen.flush()?;
        Ok(())
    }

    /// Makes a call and shows it, together with all messages until its response. If a question arrives
    /// meanwhile, answers it and waits until the daemon has acknowledged the answer.
    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<RawJson> {
        self.sent(method, params)?;
        let wanted = self.daemon.send(method, &params.to_string())?;
        let mut result = None;
        loop {
            match self.daemon.receive()? {
                Incoming::Response { id, outcome } => {
                    let response = outcome.map_err(ErrorResponse)?;
                    self.received("result", &response)?;
                    if id == wanted {
                        result = Some(response);
                    } else if self.unacknowledged == Some(id) {
                        self.unacknowledged = None;
                    }
                }
                Incoming::Notification { method, params } => self.notified(&method, &params)?,
            }
            if self.unacknowledged.is_none()
                && let Some(result) = result.take()
            {
                return Ok(result);
            }
        }
    }

    /// Makes a call without showing it.
    fn quietly(&mut self, method: &str, params: &Value) -> anyhow::Result<RawJson> {
        self.daemon.call(method, &params.to_string())
    }

    fn notified(&mut self, method: &str, params: &RawJson) -> anyhow::Result<()> {
        if method != "session_before_tree" {
            return self.received(method, params);
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct AskedQuestion {
            event_id: String,
            preparation: AskedPreparation,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct AskedPreparation {
            target_id: String,
            old_leaf_id: Option<String>,
            entries_to_summarize: Vec<AskedEntry>,
        }
        #[derive(Deserialize)]
        struct AskedEntry {
            id: String,
        }
        let question: AskedQuestion = understood(params)?;
        let leaving = question.preparation;
        let ids: Vec<&str> = leaving
            .entries_to_summarize
            .iter()
            .map(|e| e.id.as_str())
            .collect();
        let shown = format!(
            "may I go from {} to {} and summarize {}?",
            leaving.old_leaf_id.as_deref().unwrap_or("the start"),
            leaving.target_id,
            ids.join(", "),
        );
        self.arrow("←", Style::Green, method, &shown)?;
        if let Some(result) = self.answer.take() {
            let answer = json!({ "eventId": question.event_id, "result": result });
            self.sent("answer_event", &answer)?;
            let id = self.daemon.send("answer_event", &answer.to_string())?;
            self.unacknowledged = Some(id);
        }
        Ok(())
    }

    fn sent(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        self.arrow("→", Style::Cyan, method, &shortened(params).to_string())?;
        // A response may take long, so the request is shown before the response arrives.
        self.screen.flush()?;
        Ok(())
    }

    /// Shows a notification or a result, reduced to the members that matter to the reader.
    fn received(&mut self, what: &str, message: &RawJson) -> anyhow::Result<()> {
        const WORTH: [&str; 8] = [
            "accepted",
            "outcome",
            "cause",
            "oldLeafId",
            "newLeafId",
            "entryIds",
            "leafId",
            "durability",
        ];
        let message: Value = understood(message)?;
        let members = WORTH.iter().filter_map(|name| {
            let value = message.get(name)?;
            Some(match value {
                Value::String(text) => format!("{name} {text}"),
                value => format!("{name} {}", shortened(value)),
            })
        });
        let members: Vec<String> = members.collect();
        self.arrow("←", Style::Green, what, &members.join(", "))?;
        Ok(())
    }

    /// Shows a message after an arrow, on one line if it fits.
    fn arrow(&mut self, arrow: &str, style: Style, what: &str, message: &str) -> io::Result<()> {
        let arrow = self.screen.style(style, arrow);
        let what = format!("{what:<19}");
        let indent = 4 + terminal::width(&what) + 1;
        let room = self.screen.columns.saturating_sub(indent);
        let what = self.screen.style(Style::Bold, &what);
        write!(self.screen, "  {arrow} {what}")?;
        let message = terminal::line(message);
        for (number, part) in wrapped(&message, room).iter().enumerate() {
            let gap = if number == 0 { 1 } else { indent };
            writeln!(self.screen, "{:gap$}{part}", "")?;
        }
        Ok(())
    }

    fn tree(&mut self) -> anyhow::Result<()> {
        #[derive(Deserialize)]
        struct TreePage {
            nodes: Vec<DrawnRow>,
        }
        let answered = self.quietly("get_tree", &json!({ "render": "unicode" }))?;
        let page: TreePage = understood(&answered)?;
        let drawing = Drawing {
            id_columns: ID_COLUMNS,
            ..Drawing::default()
        };
        for row in &page.nodes {
            drawing.row(&mut self.screen, row)?;
        }
        writeln!(self.screen)?;
        Ok(())
    }

    /// Shows the summary that a navigation has stored.
    fn summary(&mut self, navigated: &RawJson) -> anyhow::Result<()> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NavigateAnswer {
            summary_entry: SummaryEntry,
        }
        #[derive(Deserialize)]
        struct SummaryEntry {
            summary: String,
        }
        let navigated: NavigateAnswer = understood(navigated)?;
        let room = self.screen.columns.saturating_sub(4);
        for line in navigated.summary_entry.summary.lines() {
            let line = terminal::line(line);
            let bar = self.screen.style(Style::Yellow, "│");
            for part in wrapped(&line, room) {
                let line = format!("  {bar} {part}");
                writeln!(self.screen, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }

    fn head(&mut self, text: &str) -> io::Result<()> {
        let text = self.screen.style(Style::Bold, text);
        writeln!(self.screen, "\n{text}\n")
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.screen, "{text}")
    }
}

fn understood<T: for<'a> Deserialize<'a>>(json: &RawJson) -> anyhow::Result<T> {
    serde_json::from_str(json.get()).context("read the daemon's answer")
}

/// The JSON of a message in which long strings are cut, and ids stand in place of entries.
fn shortened(message: &Value) -> Value {
    match message {
        Value::String(text) if text.chars().count() > LONGEST_SHOWN => {
            let head: String = text.chars().take(SHOWN).collect();
            Value::String(format!("{head}…"))
        }
        Value::Array(values) => values
            .iter()
            .map(|value| match value.get("id").and_then(Value::as_str) {
                Some(id) => Value::String(format!("{id}…")),
                None => shortened(value),
            })
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), shortened(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Divides a text into lines of whole words. A line is at most `columns` wide, unless a single word is
/// wider.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && terminal::width(line) + 1 + terminal::width(word) > columns {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// The command with which a person can start this program from the current folder.
fn program() -> String {
    let named = || {
        let path = std::env::current_exe().ok()?;
        let here = std::env::current_dir().ok()?;
        let path = path.strip_prefix(&here).map(Path::to_owned).ok()?;
        Some(terminal::line(&path.display().to_string()).into_owned())
    };
    named().unwrap_or_else(|| "treelined".to_owned())
}
