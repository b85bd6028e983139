//! `treelined doctor --cluster` with PostgreSQL: examines the database, and says which failures an acknowledged line
//! survives (fleet.md).

use super::doctor_servers::{end, exposed, fact};
use super::failure::ShellError;
use super::options::Options;
use super::screen::Screen;
use super::words::count;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::durability::Durability;
use treelined_fleet::postgres::facts::{self, Described};
use treelined_fleet::postgres::probe::probe;
use treelined_fleet::postgres::schema;
use treelined_fleet::settings::PostgresSettings;

/// Shows the database, and which failures an acknowledged line survives.
pub(super) fn doctor(
    options: &Options,
    settings: &PostgresSettings,
    create: bool,
) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::new();
    let probed = probe(settings)?;
    let shown = probed.iter().map(ToString::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    // The servers are shown first, since a server that answers late delays the rest of the report.
    writeln!(screen, "{}", fact(&screen, "servers", &shown))?;
    screen.flush()?;
    let silent = probed.iter().filter(|server| !server.answers);
    let mut problems: Vec<String> = silent.map(ToString::to_string).collect();
    if problems.len() == probed.len() {
        return Err(ShellError::failed(
            "no server answers (logUnavailable)".to_owned(),
            "start the server, or correct `url` of [team]",
        ));
    }
    if create {
        let made = schema::create(settings)?;
        match made.before {
            None => writeln!(screen, "created the tables of version {}", made.version)?,
            Some(before) if before < made.version => {
                writeln!(
                    screen,
                    "brought the tables from version {before} to {}",
                    made.version
                )?;
            }
            Some(_) => {}
        }
        problems.extend(
            made.without
                .map(|why| format!("the roles are not made or complete: {why}")),
        );
    }
    let described = facts::describe(settings)?;
    for (name, value) in facts(&described) {
        writeln!(screen, "{}", fact(&screen, name, &value))?;
    }
    problems.extend(described.facts.faults());
    problems.extend(
        described
            .team
            .check()
            .err()
            .map(|error| error.message.into_owned()),
    );
    problems.extend(self::problems(&described));
    let given = options.settings()?;
    let passwords = given.file().filter(|_| settings.url.contains('@'));
    let key = settings.certificate.as_ref().map(|(_, key)| key.as_path());
    problems.extend(exposed(&[
        ("the password in", passwords),
        ("the key in", key),
    ]));
    end(screen, &problems)
}

fn facts(described: &Described) -> Vec<(&'static str, String)> {
    let Described { facts, team, .. } = described;
    let holds = [
        count(described.sessions, "session", "sessions"),
        count(described.lines, "line", "lines"),
        count(described.bytes, "byte", "bytes"),
    ];
    let role = match (described.may_append, described.may_remove) {
        (_, true) => "administrator: it may remove lines; daemons need a member",
        (true, false) => "member: it appends and reads",
        (false, false) => "reader: appends are refused",
    };
    let ack = match facts.durability() {
        Durability::Replicated => {
            "replicated: a line is on the disk of the server and of its standbys"
        }
        Durability::Always => {
            "always: a line is on the disk of one server, and lost with that disk"
        }
        _ => "os: a line may be lost with the machine of the server",
    };
    let standbys = match facts.standbys.trim() {
        "" => "none is waited for",
        names => names,
    };
    let writers = &described.writers;
    let named = format!(
        "of the last lines of sessions, {} name their account, {} another user, {} nobody",
        writers.same, writers.other, writers.none
    );
    let of = format!("PostgreSQL {}, database {}", facts.version, facts.database);
    let tables = format!("version {}, created {}", team.version, team.created);
    vec![
        ("server", of),
        ("tables", tables),
        ("holds", holds.join(", ")),
        ("user", format!("{}, {role}", facts.user)),
        ("writers", named),
        ("standbys", standbys.to_owned()),
        ("commit", format!("synchronous_commit is {}", facts.commits)),
        ("ack", ack.to_owned()),
    ]
}

fn problems(described: &Described) -> Vec<String> {
    let facts = &described.facts;
    let mut problems = Vec::new();
    if facts.is_standby {
        problems
            .push("the database is a standby, which takes no appends: name its primary".to_owned());
    }
    if !described.may_append {
        let (user, database) = (&facts.user, &facts.database);
        problems.push(format!(
            "{user} may not append: `GRANT {database}_member TO {user}` as an administrator"
        ));
    }
    let is_given = |given: &&String| **given != facts.user;
    if let Some(given) = described.given_user.as_ref().filter(is_given) {
        problems.push(format!(
            "the server knows {given} as {}: a pooler that logs in as one user makes all authors equal",
            facts.user
        ));
    }
    let is_near = |host: &String| {
        host.starts_with("127.") || host.starts_with("localhost:") || host.starts_with("::1")
    };
    if described.may_be_plain && !described.hosts.iter().all(is_near) {
        problems.push(
            "connections may be made without TLS: add ?sslmode=require to the address".to_owned(),
        );
    }
    if !facts.standbys.trim().is_empty() && facts.durability() == Durability::Always {
        problems.push(format!(
            "synchronous_commit is {}, so that no standby is waited for: set it to on",
            facts.commits
        ));
    }
    problems
}
