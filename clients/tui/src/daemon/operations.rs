//! Runs the operations of this program, and lists the items that they can be about.

use super::failure::{failure, refused};
use super::{Daemon, LONG, aside, branches, figures, handoff, sorting};
use crate::message::{self, CommandOutput, Target};
use crate::model::picker::{PickerItem, PickerKind};
use crate::operation::{self, ImportSource, Operation};
use crate::{text, time};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use treelined_client::{
    CancelReason, Client, Error, ExportFormat, FirstWrite, ImportFrom, ImportSessionsResult,
    Navigation, NavigationReason, ReviewedSecret, SecretValue, SecretValues,
};
use treelined_redact::{ValueHash, secret_variables};

/// The most moves that are listed.
const MOVES: u64 = 200;

/// The most failed files that are listed after an import.
const FAILED: usize = 20;

impl Daemon {
    pub(super) async fn operate(
        &self,
        client: &Client,
        operation: Operation,
    ) -> Result<CommandOutput, Error> {
        let output = match operation {
            Operation::Create { name } => return self.create(client, name).await,
            Operation::Fork { entry } => return self.fork(client, entry).await,
            Operation::Compact { focus } => compact(client, focus).await?,
            Operation::CherryPick { entries } => {
                let picked = client.cherry_pick(entries).await?.entry_ids.len();
                format!("Copied {picked} {}.", text::plural(picked, "message"))
            }
            Operation::Merge { tip, focus } => merge(client, tip, focus).await?,
            Operation::Root => {
                client.set_leaf(None).await?;
                "The leaf is before the first message. Undo takes you back.".to_owned()
            }
            Operation::NameBranch { .. }
            | Operation::Archive { .. }
            | Operation::Unarchive { .. } => return branches::change(client, operation).await,
            Operation::Tag { session_id, tags } => self.tag(client, &session_id, &tags).await?,
            Operation::Pin { session_id } => sorting::pin(client, &session_id).await?,
            Operation::ArchiveSession { session_id } => {
                sorting::archive(client, &session_id).await?
            }
            Operation::Choose { tip, reason } => sorting::choose(client, tip, reason).await?,
            Operation::Aside { question } => aside::ask(client, question).await?,
            Operation::Keep { entry } => aside::keep(client, entry).await?,
            Operation::Name { name } => {
                client.set_session_name(name).await?;
                "Named.".to_owned()
            }
            Operation::Export {
                format,
                path,
                keep,
                replace,
            } => export(client, format, path, (keep, replace)).await?,
            Operation::Import(source) => self.import(client, source).await?,
            Operation::ImportReport => reports(client).await?,
            Operation::Restore {
                session_id,
                trashed,
            } => {
                let call = client.restore_session(session_id).trashed_path(trashed);
                format!("Restored to {}", text::line(&call.await?.path))
            }
            Operation::Stats => figures::stats(client).await?,
            Operation::Usage { by } => figures::usage(client, by).await?,
            Operation::Context => figures::context(client).await?,
            Operation::Moves => moves(client).await?,
            Operation::Web => {
                let web = client.open_web().await?;
                format!("The page is at\n{}", text::line(&web.address))
            }
        };
        Ok(CommandOutput {
            output: Some(output),
            ..CommandOutput::default()
        })
    }

    async fn create(&self, client: &Client, name: String) -> Result<CommandOutput, Error> {
        let mut call = client
            .create_session()
            .cwd(&self.cwd)
            .write(FirstWrite::Now);
        if !name.is_empty() {
            call = call.name(name);
        }
        let id = call.await?.session.session_id;
        self.open_created(client, &id).await?;
        Ok(CommandOutput {
            output: Some("This is the new session.".to_owned()),
            ..CommandOutput::default()
        })
    }

    /// Forks the open session at an entry, and opens the fork. If the entry is a user message, its text becomes
    /// the draft.
    async fn fork(&self, client: &Client, entry: String) -> Result<CommandOutput, Error> {
        let forked = client.fork_session().entry_id(entry).await?;
        let Some(session) = forked.session else {
            return Ok(CommandOutput {
                output: Some(refused(
                    "fork",
                    forked.reason == Some(CancelReason::HookFailed),
                    forked.by,
                    forked.message,
                )),
                ..CommandOutput::default()
            });
        };
        self.open_created(client, &session.session_id).await?;
        Ok(CommandOutput {
            output: Some("This is the fork.".to_owned()),
            prompt: forked.editor_text,
            ..CommandOutput::default()
        })
    }

    /// Shows a session that a request has created and opened.
    async fn open_created(&self, client: &Client, id: &str) -> Result<(), Error> {
        let opened = self.open(Target::Id(id.to_owned())).await;
        // The request that created the session has also opened it.
        client.with_session(id).close_session().await?;
        self.say(message::Daemon::Opened(opened.map_err(failure)));
        Ok(())
    }

    async fn import(&self, client: &Client, source: ImportSource) -> Result<String, Error> {
        let call = client.import_sessions().timeout(LONG);
        let call = match source {
            ImportSource::All => call,
            ImportSource::Here => call.cwd(&self.cwd),
            ImportSource::Tool(tool) => call.from(ImportFrom::from(&*tool)),
            ImportSource::Path(path) => {
                let path = absolute(&path);
                call.paths([path.to_string_lossy().into_owned()])
            }
            ImportSource::Large(path) => {
                let path = absolute(&path);
                let call = call.paths([path.to_string_lossy().into_owned()]);
                call.large(true)
            }
        };
        Ok(imported(&call.await?))
    }

    /// Lists the items of a picker.
    pub(super) async fn list_items(
        &self,
        client: &Client,
        kind: PickerKind,
    ) -> Result<Vec<PickerItem>, Error> {
        Ok(match kind {
            PickerKind::Fork | PickerKind::Pop => {
                let listed = client.get_fork_messages().await?.messages;
                let shown = listed
                    .into_iter()
                    .filter(|message| kind == PickerKind::Fork || message.on_active_path);
                let items = shown.map(|message| PickerItem {
                    text: text::line(&message.text),
                    is_active: message.on_active_path,
                    id: message.entry_id,
                    ..PickerItem::default()
                });
                let mut items: Vec<PickerItem> = items.collect();
                // The newest item is chosen most often, so it comes first.
                items.reverse();
                items
            }
            PickerKind::Branches { archived } => {
                let listed = client.list_branches().archived(archived).await?;
                let listed = listed.branches.into_iter();
                let items = listed.map(|branch| {
                    let count = branch.message_count as usize;
                    let when = time::since(&branch.last_activity);
                    let away = match branch.archived {
                        Some(true) => "archived · ",
                        _ => "",
                    };
                    PickerItem {
                        text: text::line(&branch.name),
                        note: format!("{away}{count} {} · {when}", text::plural(count, "message")),
                        is_active: branch.is_active,
                        id: branch.tip_id,
                        ..PickerItem::default()
                    }
                });
                items.collect()
            }
            PickerKind::Trash => {
                let listed = client.list_trash().await?.sessions.into_iter();
                let items = listed.map(|row| {
                    let title = row.name.filter(|name| !name.is_empty());
                    let title = title.unwrap_or(row.first_message);
                    PickerItem {
                        text: text::line(if title.is_empty() { "(empty)" } else { &title }),
                        note: time::since(&row.deleted_at),
                        id: row.session_id,
                        path: row.trashed_path,
                        ..PickerItem::default()
                    }
                });
                items.collect()
            }
            PickerKind::Family => {
                let open = self.state().session.clone();
                sorting::family(client, &open.unwrap_or_default()).await?
            }
            PickerKind::Candidates => sorting::candidates(client).await?,
            PickerKind::Continue => handoff::agents(),
            PickerKind::Review { format } => review(client, format).await?,
            PickerKind::Import | PickerKind::Export => Vec::new(),
        })
    }
}

/// Makes a path absolute: a path that begins with `~/` starts at the home directory, a relative path at the
/// working directory.
fn absolute(path: &str) -> PathBuf {
    let rest = path.strip_prefix("~/");
    let path = match (rest, etcetera::home_dir()) {
        (Some(rest), Ok(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    std::path::absolute(&path).unwrap_or(path)
}

async fn compact(client: &Client, focus: String) -> Result<String, Error> {
    let mut call = client.compact();
    if !focus.is_empty() {
        call = call.custom_instructions(focus);
    }
    let ended = call.await?;
    Ok(match ended.cancelled {
        true => {
            let failed = ended.reason == Some(CancelReason::HookFailed);
            refused("compaction", failed, ended.by, ended.message)
        }
        false => "Compacted.".to_owned(),
    })
}

async fn merge(client: &Client, tip: String, focus: String) -> Result<String, Error> {
    let mut call = client.merge_branch().tip_id(tip);
    if !focus.is_empty() {
        call = call.custom_instructions(focus);
    }
    let ended: Navigation = call.await?;
    Ok(match (ended.cancelled, &ended.summary_entry) {
        (true, _) => {
            let failed = ended.reason == Some(NavigationReason::HookFailed);
            refused("merge", failed, ended.by, ended.message)
        }
        (false, None) => "There was nothing to summarize.".to_owned(),
        (false, Some(_)) => "Merged. A summary of the branch is at the leaf.".to_owned(),
    })
}

async fn export(
    client: &Client,
    format: operation::ExportFormat,
    path: String,
    (keep, replace): (Vec<String>, Vec<String>),
) -> Result<String, Error> {
    let format = ExportFormat::from(format.name());
    let path = absolute(&path).to_string_lossy().into_owned();
    let call = client.export_session(format).path(&path).timeout(LONG);
    let mut call = call.values(secret_values());
    if !keep.is_empty() {
        call = call.keep(keep);
    }
    if !replace.is_empty() {
        call = call.replace(replace);
    }
    let written = call.await?;
    let hidden: usize = written.redactions.iter().map(|it| it.count as usize).sum();
    let hidden = match hidden {
        0 => String::new(),
        count => format!("; {count} {} replaced", text::plural(count, "secret")),
    };
    let bytes = time::bytes(usize::try_from(written.bytes).unwrap_or(usize::MAX));
    Ok(format!("Wrote {bytes} to {}{hidden}", text::line(&path)))
}

/// Lists the secrets that an export would replace, and the texts that look like secrets and stay.
async fn review(
    client: &Client,
    format: operation::ExportFormat,
) -> Result<Vec<PickerItem>, Error> {
    let format = ExportFormat::from(format.name());
    let call = client.export_session(format).review(true).timeout(LONG);
    let answered = call.values(secret_values()).await?;
    let secrets = answered.review.unwrap_or_default().into_iter();
    let item = |secret: ReviewedSecret| {
        let places: Vec<String> = secret.entry_ids.iter().take(3).cloned().collect();
        let more = if secret.entry_ids.len() > 3 {
            ", …"
        } else {
            ""
        };
        PickerItem {
            text: text::line(&format!(
                "{} {} ({} characters)",
                secret.kind, secret.shown, secret.length
            )),
            note: text::line(&format!("{}× {}{more}", secret.count, places.join(", "))),
            id: secret.id,
            is_active: secret.replaced,
            replaced: Some(secret.replaced),
            ..PickerItem::default()
        }
    };
    Ok(secrets.map(item).collect())
}

/// The hashes of the values of environment variables whose names suggest secrets. This program sends them, because a
/// shared daemon has other environment variables.
fn secret_values() -> SecretValues {
    let random = || RandomState::new().build_hasher().finish();
    let salt = format!("{:016x}{:016x}", random(), random());
    let values = secret_variables(std::env::vars_os(), &[]);
    let hashes = values
        .iter()
        .filter_map(|value| ValueHash::of(salt.as_bytes(), value))
        .map(|hash| SecretValue {
            length: hash.length as u64,
            check: u64::from(hash.check),
            sha256: hash.digits(),
        });
    SecretValues {
        hashes: hashes.collect(),
        salt,
    }
}

/// Describes the result of an import: in one line if all went well, and otherwise with the files that were not
/// imported.
fn imported(result: &ImportSessionsResult) -> String {
    let totals = &result.totals;
    let of = |count: u64, noun: &str| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        format!("{count} {}", text::plural(count, noun))
    };
    let failed: Vec<_> = result
        .files
        .iter()
        .filter_map(|file| Some((&file.path, file.error.as_ref()?)))
        .collect();
    if totals.files == 0 && failed.is_empty() {
        return nothing_found(result);
    }
    let mut lines = vec![format!(
        "Imported {}: {} new, {} added.",
        of(totals.sessions, "session"),
        totals.created,
        of(totals.entries_added, "entry").replace("entrys", "entries"),
    )];
    if let Some(until) = &totals.held_until {
        let held = of(totals.held, "entry").replace("entrys", "entries");
        lines.push(format!("Held back, since they may still grow: {held}."));
        lines.push(format!(
            "  What the tool writes next brings them, an import after {}, or treelined import --final.",
            time::local_short(until)
        ));
    }
    if !failed.is_empty() {
        lines.push(format!("{} not imported:", of(failed.len() as u64, "file")));
    }
    for (path, error) in failed.iter().take(FAILED) {
        lines.push(text::line(&format!("  {path}: {}", error.message)));
    }
    if failed.len() > FAILED {
        lines.push(format!("  … and {} more", failed.len() - FAILED));
    }
    lines.join("\n")
}

/// Says in which folders the import searched, and which environment variables name these folders.
fn nothing_found(result: &ImportSessionsResult) -> String {
    let mut lines = vec![
        "No conversation of another tool was found. :import PATH names a file or a folder."
            .to_owned(),
    ];
    for place in result.places.iter().flatten() {
        let state = match place.exists {
            true => "has none",
            false => "is not there",
        };
        let variables = place.variables.join(", ");
        let line = format!("  {}: {} {state} ({variables})", place.tool, place.path);
        lines.push(text::line(&line));
    }
    lines.join("\n")
}

async fn reports(client: &Client) -> Result<String, Error> {
    let reports = client.import_report().await?;
    if reports.imports.is_empty() {
        return Ok("No import has changed this session.".to_owned());
    }
    let value = serde_json::to_value(&reports).unwrap_or_default();
    let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
    let lines: Vec<String> = text::lines(&pretty).collect();
    Ok(lines.join("\n"))
}

async fn moves(client: &Client) -> Result<String, Error> {
    let moves = client.get_navigation_log().limit(MOVES).await?.moves;
    if moves.is_empty() {
        return Ok("The leaf has not moved.".to_owned());
    }
    let place = |id: &Option<String>| id.clone().unwrap_or_else(|| "the beginning".to_owned());
    let lines = moves.iter().map(|it| {
        let (at, cause) = (time::local(&it.at), it.cause.as_str());
        let way = format!("{} → {}", place(&it.from), place(&it.to));
        text::line(&format!("{at}  {cause:<14} {way}"))
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
