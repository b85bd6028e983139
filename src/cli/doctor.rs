//! `treelined doctor`: reports the content and the damage of a session file (session-file.md §2).
//!
//! The command only reads, unless it is asked to repair.

use super::doctor_config::Configuration;
use super::doctor_file::{meaning, open};
use super::doctor_import;
use super::doctor_json;
use super::doctor_origin;
use super::doctor_repair;
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::{SessionQuery, existing_file};
use super::words::count;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use treelined_core::entry::{Kind, Role};
use treelined_core::terminal;
use treelined_core::tree::Tree;
use treelined_core::tree::branches;
use treelined_files::log::OpenedLog;
use treelined_files::log::diagnostic::Diagnostic;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::store::listing;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined doctor                             the configuration
  treelined doctor --latest                    the newest session of this directory too
  treelined doctor *.jsonl                     all files of a folder
  treelined doctor FILE --repair --dry-run     what a repair would do

Exit codes: 0 all is well, 1 damage, a file that cannot be read or a wrong configuration, 3 no such session.")]
pub(crate) struct Doctor {
    /// Sessions: files, ids, names, or beginnings of ids (4 characters or more) [default: only the configuration]
    #[arg(value_name = "SESSION", group = "files",
          add = ArgValueCompleter::new(super::candidates::sessions))]
    sessions: Vec<String>,
    /// The session of this directory with the last activity
    #[arg(long, conflicts_with = "sessions", group = "files")]
    latest: bool,
    /// Print a line of JSON for each file, and one for a wrong configuration
    #[arg(long, conflicts_with_all = ["repair", "origin"])]
    json: bool,
    /// Move damaged lines out of the files, into a folder beside each file
    #[arg(long, group = "change", requires = "files")]
    repair: bool,
    /// Say what would be done, and write nothing
    #[arg(long, requires = "change")]
    dry_run: bool,
    /// Check the kept sources of imported sessions too
    #[arg(long, requires = "files")]
    origin: bool,
    /// Check the servers of [team], not files
    #[cfg(feature = "team")]
    #[arg(long, conflicts_with_all = ["sessions", "latest", "json", "repair", "origin"])]
    cluster: bool,
    /// Make the stream, or the tables, if they do not exist
    #[cfg(feature = "team")]
    #[arg(long, requires = "cluster")]
    create: bool,
    /// Close and erase sessions without activity, by keep of [team]
    #[cfg(feature = "team")]
    #[arg(
        long,
        requires = "cluster",
        conflicts_with = "create",
        group = "change"
    )]
    retain: bool,
}

/// The result for one file.
enum Finding {
    Sound,
    Damaged(u64),
    /// The file cannot be opened.
    Unreadable,
}

pub(super) fn run(options: &Options, doctor: &Doctor) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "team")]
    if doctor.cluster {
        return match doctor.retain {
            true => super::doctor_retain::retain(options, doctor.dry_run),
            false => super::doctor_cluster::doctor(options, doctor.create),
        };
    }
    if doctor.repair {
        super::runtime::small_runtime()?
            .block_on(async { treelined_files::os::signal::outlive_the_size_limit() })?;
    }
    let files = files(options, doctor)?;
    let configuration = Configuration::examine(options);
    if doctor.json {
        return doctor_json::run(&files, &configuration);
    }
    let mut screen = Screen::paged(options);
    let (mut sound, mut damaged, mut unreadable, mut diagnostics) = (0, 0, 0, 0);
    for path in &files {
        let mut finding = examine(&mut screen, path)?;
        if doctor.repair
            && (matches!(finding, Finding::Damaged(_)) || doctor_repair::is_replica(path))
            && doctor_repair::mend(options, &mut screen, path, doctor.dry_run)?
        {
            // A repair does not change links between entries, so findings about links may remain.
            finding = match open(path).map(|(opened, _)| opened.diagnostics.len() as u64) {
                Ok(0) => Finding::Sound,
                Ok(left) => Finding::Damaged(left),
                Err(_) => Finding::Unreadable,
            };
        }
        if doctor.origin && !matches!(finding, Finding::Unreadable) {
            let problems = doctor_origin::examine(&mut screen, path)?;
            finding = match finding {
                Finding::Sound if problems > 0 => Finding::Damaged(problems),
                Finding::Damaged(found) => Finding::Damaged(found + problems),
                other => other,
            };
        }
        match finding {
            Finding::Sound => sound += 1,
            Finding::Damaged(found) => {
                damaged += 1;
                diagnostics += found;
            }
            Finding::Unreadable => unreadable += 1,
        }
        writeln!(screen)?;
    }
    configuration.show(&mut screen)?;
    if files.is_empty() {
        return configuration.finish(screen);
    }
    let well = damaged + unreadable == 0 && configuration.is_sound();
    let mut summary = vec![format!("{sound} sound")];
    if damaged > 0 {
        let found = count(diagnostics, "diagnostic", "diagnostics");
        summary.push(format!("{damaged} with {found}"));
    }
    if unreadable > 0 {
        summary.push(format!("{unreadable} not readable"));
    }
    if !configuration.is_sound() {
        summary.push("a wrong configuration".to_owned());
    }
    let files = count(sound + damaged + unreadable, "file", "files");
    let style = if well { Style::Green } else { Style::Red };
    let summary = screen.style(style, &format!("{files}: {}", summary.join(", ")));
    writeln!(screen, "{summary}")?;
    screen.finish()?;
    Ok(match well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The paths of the files to examine.
fn files(options: &Options, doctor: &Doctor) -> anyhow::Result<Vec<PathBuf>> {
    if doctor.latest {
        return Ok(vec![SessionQuery::Latest.find_alone(options)?]);
    }
    let find = |text: &String| match existing_file(text)? {
        // The path is shown in the form in which it was given.
        Some(_) => Ok(PathBuf::from(text)),
        None => SessionQuery::Named(text.clone()).find_alone(options),
    };
    doctor.sessions.iter().map(find).collect()
}

fn examine(screen: &mut Screen, path: &Path) -> io::Result<Finding> {
    let shown = path.display().to_string();
    let shown = screen.style(Style::Bold, &terminal::line(&shown));
    writeln!(screen, "{shown}")?;
    match open(path) {
        Ok((opened, size)) => {
            facts(screen, &opened, size)?;
            doctor_import::show(screen, &opened)?;
            diagnostics(screen, &opened.diagnostics)?;
            Ok(match opened.diagnostics.len() as u64 {
                0 => Finding::Sound,
                found => Finding::Damaged(found),
            })
        }
        Err(error) => {
            let kind = screen.style(Style::Red, error.kind.name());
            writeln!(screen, "  {kind}: {}", terminal::line(&error.message))?;
            Ok(Finding::Unreadable)
        }
    }
}

fn facts(screen: &mut Screen, opened: &OpenedLog, size: u64) -> io::Result<()> {
    let OpenedLog { log, tree, .. } = opened;
    let mut fact = |name: &str, value: &str| {
        let name = screen.style(Style::Dim, &format!("{name:<9}"));
        writeln!(screen, "  {name}{}", terminal::line(value))
    };
    if let Some(header) = log.header() {
        fact("session", &header.id)?;
        match tree.name() {
            Some(name) => fact("name", name)?,
            // A file that cannot be read is reported below.
            None => fact(
                "begins",
                &listing::first_message_of(opened).unwrap_or_default(),
            )?,
        }
        let meaning = match log.version() {
            CURRENT_VERSION => "",
            older if older < CURRENT_VERSION => {
                " (read as 3; treelined migrate or the first write rewrites the file)"
            }
            _ => " (newer than this program: read-only)",
        };
        let version = log.stated_version();
        let version = version.map_or("not a whole number".to_owned(), |version| {
            version.to_string()
        });
        fact("version", &format!("{version}{meaning}"))?;
        fact("created", header.timestamp.as_deref().unwrap_or("unknown"))?;
        fact("folder", &header.cwd)?;
        if let Some(parent) = &header.parent_session {
            fact("parent", parent)?;
        }
    }
    fact("size", &count(size, "byte", "bytes"))?;
    fact("entries", &entries(tree))?;
    let branches = branches::list(tree);
    fact("branches", &branches.len().to_string())?;
    match tree.leaf() {
        Some(leaf) => fact("leaf", tree.id(leaf)),
        None => fact("leaf", "before the first entry"),
    }
}

/// The numbers of entries, such as `5: 4 message (2 user, 2 assistant), 1 label`.
fn entries(tree: &Tree) -> String {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut roles: BTreeMap<&str, u64> = BTreeMap::new();
    for node in tree.entries() {
        let kind = tree.kind(node);
        *kinds
            .entry(kind.name().unwrap_or("of unknown types"))
            .or_default() += 1;
        if kind == Kind::Message {
            let role = match tree.role(node) {
                Role::None => "without a role",
                role => role.name().unwrap_or("of unknown roles"),
            };
            *roles.entry(role).or_default() += 1;
        }
    }
    let total = tree.entry_count();
    let kinds = most_first(&kinds).map(|(kind, number)| {
        let mut shown = format!("{number} {kind}");
        if kind == "message" {
            let roles = most_first(&roles).map(|(role, number)| format!("{number} {role}"));
            let roles: Vec<String> = roles.collect();
            shown.push_str(&format!(" ({})", roles.join(", ")));
        }
        shown
    });
    let kinds: Vec<String> = kinds.collect();
    match kinds.is_empty() {
        true => total.to_string(),
        false => format!("{total}: {}", kinds.join(", ")),
    }
}

fn most_first<'a>(counts: &BTreeMap<&'a str, u64>) -> impl Iterator<Item = (&'a str, u64)> {
    let mut counts: Vec<(&str, u64)> = counts.iter().map(|(name, count)| (*name, *count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter()
}

fn diagnostics(screen: &mut Screen, found: &[Diagnostic]) -> io::Result<()> {
    if !found.is_empty() {
        writeln!(screen)?;
    }
    for diagnostic in found {
        let Diagnostic {
            damage,
            line,
            offset,
            length,
        } = diagnostic;
        let kind = screen.style(Style::Red, damage.name());
        let length = count(*length, "byte", "bytes");
        writeln!(screen, "  {kind}: line {line}, offset {offset}, {length}")?;
        writeln!(screen, "    {}", meaning(*damage))?;
    }
    Ok(())
}
