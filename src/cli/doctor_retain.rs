//! `treelined doctor --cluster --retain`: closes and erases the team's sessions without activity (fleet.md "Retention").

use super::failure::{ShellError, USAGE};
use super::fleet::servers;
use super::options::Options;
use super::screen::{Screen, Style};
use super::words::count;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use treelined_core::error::Error;
use treelined_core::team::TeamQuery;
use treelined_core::terminal;
use treelined_fleet::engine::Engine;
use treelined_fleet::engines;
use treelined_fleet::retention::{Due, QuietSession, Retained, Round};
use treelined_fleet::team::TeamRows;

const DAY: u64 = 24 * 60 * 60;

/// The numbers of sessions of a round.
#[derive(Default)]
struct Totals {
    closed: u64,
    erased: u64,
    open: u64,
    failed: u64,
}

pub(super) fn retain(options: &Options, is_dry: bool) -> anyhow::Result<ExitCode> {
    let config = options.config()?;
    let settings = servers(&config)?;
    let Some(retention) = settings.retention() else {
        let why = "the team keeps all sessions, since `keep` is not set";
        return Err(ShellError::new(USAGE, why, "keep = \"90d\" in the section [team]").into());
    };
    let log = engines::open(&settings, None)?;
    let names = Names::of(&*log);
    let mut screen = Screen::new();
    let mut totals = Totals::default();
    let round = Round {
        retention,
        session_dir: &config.daemon.session_dir,
        author: &config.author,
        is_dry,
    };
    let ran = round.run(&*log, &mut |of, retained| {
        totals.add(of, &retained);
        show(&mut screen, &names, of, &retained)
    });
    let without = if is_dry {
        " (--dry-run: nothing was changed)"
    } else {
        ""
    };
    let of = |number| count(number, "session", "sessions");
    let (closed, erased) = (of(totals.closed), of(totals.erased));
    writeln!(screen, "closed {closed}, erased {erased}{without}")?;
    screen.flush()?;
    ran?;
    Ok(match totals.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

impl Totals {
    fn add(&mut self, of: &QuietSession, retained: &Retained) {
        let total = match (retained, of.due) {
            (Retained::Done, Due::Close) => &mut self.closed,
            (Retained::Done, Due::Erase) => &mut self.erased,
            (Retained::Open | Retained::Active, _) => &mut self.open,
            (Retained::Failed(_), _) => &mut self.failed,
        };
        *total += 1;
    }
}

fn show(
    screen: &mut Screen,
    names: &Names,
    of: &QuietSession,
    retained: &Retained,
) -> io::Result<()> {
    let name = names.name(of).unwrap_or_default();
    let done = match (retained, of.due) {
        (Retained::Done, Due::Close) => "closed".to_owned(),
        (Retained::Done, Due::Erase) => "erased".to_owned(),
        (Retained::Open, _) => "open".to_owned(),
        (Retained::Active, _) => "active".to_owned(),
        (Retained::Failed(error), _) => failed(error),
    };
    let id = screen.style(Style::Cyan, &terminal::line(&of.session));
    let name = screen.style(Style::Bold, &terminal::line(&name));
    writeln!(screen, "{done}  {id}  {name}  after {}", age(of.quiet))
}

/// The names of the team's sessions.
struct Names {
    rows: TeamRows,
}

impl Names {
    fn of(log: &dyn Engine) -> Self {
        let rows = TeamRows::of(log);
        Self { rows }
    }

    fn name(&self, of: &QuietSession) -> Option<String> {
        let query = TeamQuery {
            here: vec![of.session.clone()],
            is_of_deleted: of.due == Due::Erase,
            ..TeamQuery::default()
        };
        let list = self.rows.list(&query).ok()?;
        list.find(&of.session)?.row.as_ref()?.name.clone()
    }
}

fn failed(error: &Error) -> String {
    let message = terminal::line(&error.message);
    format!("{}: {message}", error.kind.name())
}

fn age(quiet: Duration) -> String {
    match quiet.as_secs() / DAY {
        0 => count(quiet.as_secs() / 3600, "hour", "hours"),
        days => count(days, "day", "days"),
    }
}
