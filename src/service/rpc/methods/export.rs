//! `export_session` (protocol.md §16).

use super::export_secrets::{check_review, choices, known_values};
use crate::daemon::reading::INLINE_ENTRIES;
use crate::rpc::session_read::{Read, ReadAnswer, Work};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Result};
use treelined_files::lock::lock;
use treelined_files::os::file::Location;
use treelined_pages::export::{
    self, DataFormat, ExportOptions, ExportSource, Format, Part, Redaction, ReviewSource, Target,
};
use treelined_redact::secret_variables;
use treelined_wire::{self as wire, ExportFormat, ExportScope, ExportSessionParams, HomePaths};

/// The pause between two notifications of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);
/// The bytes that an export makes in memory for each byte of the session: the entries as text, and the page around
/// them.
const MADE_OF_STORED: u64 = 2;

pub(in crate::rpc) fn export_session(
    params: ExportSessionParams,
) -> Result<impl Fn(&Read<'_>) -> Result<ReadAnswer<wire::ExportSessionResult>> + Send + Sync> {
    let options = options(&params)?;
    if params.scope == Some(ExportScope::Subtree) && params.entry_id.is_none() {
        let reason = "is required with scope \"subtree\"";
        return Err(Error::invalid_params("entryId", reason));
    }
    let scope = params.scope.unwrap_or(match params.format {
        ExportFormat::Html | ExportFormat::Jsonl | ExportFormat::Dpo | ExportFormat::Verifiers => {
            ExportScope::Tree
        }
        ExportFormat::Markdown
        | ExportFormat::Text
        | ExportFormat::Sft
        | ExportFormat::Atif
        | ExportFormat::Trace => ExportScope::Branch,
    });
    if scope != ExportScope::Branch && params.format == ExportFormat::Trace {
        let reason = "a trace is one branch: take \"branch\", once for each of them";
        return Err(Error::invalid_params("scope", reason));
    }
    if scope == ExportScope::Branch && params.format == ExportFormat::Dpo {
        let reason = "one branch has no pairs: take \"tree\" or \"subtree\"";
        return Err(Error::invalid_params("scope", reason));
    }
    if scope == ExportScope::Tree && params.entry_id.is_some() {
        let reason = "goes with scope \"branch\" or \"subtree\" only";
        return Err(Error::invalid_params("entryId", reason));
    }
    Ok(move |read: &Read<'_>| write_export(read, &params, scope, &options))
}

fn write_export(
    read: &Read<'_>,
    params: &ExportSessionParams,
    scope: ExportScope,
    options: &ExportOptions,
) -> Result<ReadAnswer<wire::ExportSessionResult>> {
    if !read.may_block() && read.tree.node_count() > INLINE_ENTRIES {
        return Ok(ReadAnswer::OnBlockingThread);
    }
    let entry = params.entry_id.as_deref().map(|id| read.find(id));
    let entry = entry.transpose()?;
    let part = match (scope, entry) {
        (ExportScope::Subtree, Some(top)) => Part::Subtree(top),
        (ExportScope::Branch, entry) => Part::Branch(entry.or_else(|| read.leaf())),
        (ExportScope::Tree | ExportScope::Subtree, _) => Part::Tree,
    };
    let daemon = &read.call.daemon;
    if let Some(path) = params
        .path
        .as_deref()
        .filter(|_| params.overwrite == Some(true))
    {
        refuse_session_file(read, Path::new(path))?;
    }
    let options = with_secrets(read, params, options);
    if params.review == Some(true) {
        let source = export::review(read, part, &options, &*daemon.source)?;
        return Ok(review(read, source));
    }
    let source = ExportSource::take(
        read,
        part,
        &options,
        daemon.offers.renderers(),
        &*daemon.source,
    )?;
    let target = match &params.path {
        Some(path) => Target::File {
            path: PathBuf::from(path),
            overwrite: params.overwrite.unwrap_or_default(),
        },
        None => Target::Content {
            limit: read.frame_bytes(),
        },
    };
    let call = Arc::clone(read.call);
    let path = params.path.clone();
    // The work writes a file, or may take long, so it always runs on a blocking thread.
    Ok(ReadAnswer::working(work(read), move || {
        let last = Mutex::new(Instant::now());
        let progress = |done, total| {
            if let Some(token) = call.id.as_ref().filter(|_| is_due(&last)) {
                call.connection.progress_toward(token, done, Some(total));
            }
        };
        let sessions = || call.daemon.files.store.list();
        let exported = source.write(
            &target,
            &sessions,
            call.daemon.parts.prices(),
            &call.cancel,
            &progress,
        )?;
        Ok(wire::ExportSessionResult {
            path,
            content: exported.content,
            bytes: exported.bytes,
            items: exported.items,
            redactions: exported.redactions.into_iter().map(redaction).collect(),
            review: None,
        })
    }))
}

/// The work of an export, which may read many bytes.
fn work(read: &Read<'_>) -> Work {
    let stored = read.stored_bytes(read.tree.entries());
    Work {
        reads: u64::MAX,
        makes: stored.saturating_mul(MADE_OF_STORED),
    }
}

/// The options, with the values and words that count as secrets, and with the salt of the ids of a review.
fn with_secrets(
    read: &Read<'_>,
    params: &ExportSessionParams,
    options: &ExportOptions,
) -> ExportOptions {
    let mut options = options.clone();
    if options.redacts {
        let own = &read.call.daemon.settings.redact;
        let variables = secret_variables(std::env::vars_os(), &own.variables);
        options.values.add_values(variables);
        let words = params.words.iter().flatten().chain(&own.words);
        options
            .values
            .set_words(&words.cloned().collect::<Vec<_>>());
    }
    let id = read.log.header().map(|header| header.id.clone());
    options.choices.salt = id.unwrap_or_default().into_bytes();
    options
}

/// Lists the secrets of an export, without writing the export.
fn review(read: &Read<'_>, source: ReviewSource) -> ReadAnswer<wire::ExportSessionResult> {
    let call = Arc::clone(read.call);
    ReadAnswer::working(work(read), move || {
        let last = Mutex::new(Instant::now());
        let progress = |done, total| {
            if let Some(token) = call.id.as_ref().filter(|_| is_due(&last)) {
                call.connection.progress_toward(token, done, Some(total));
            }
        };
        let secrets = source.read(&call.cancel, &progress)?;
        let secrets = secrets.into_iter().map(|secret| wire::ReviewedSecret {
            id: secret.id,
            kind: secret.kind.to_owned(),
            replaced: secret.replaced,
            shown: secret.shown,
            length: secret.length,
            count: secret.count,
            entry_ids: secret.entry_ids,
        });
        Ok(wire::ExportSessionResult {
            path: None,
            content: None,
            bytes: 0,
            items: None,
            redactions: Vec::new(),
            review: Some(secrets.collect()),
        })
    })
}

/// Fails if an export to this path would replace a session file: the file of an open session, or one in the session
/// directory.
fn refuse_session_file(read: &Read<'_>, path: &Path) -> Result<()> {
    let daemon = &read.call.daemon;
    let identity = |path: &Path| Some(Location::of_path(path).ok()?.status().ok()?.identity);
    let Some(target) = identity(path) else {
        return Ok(());
    };
    let is_target = |file: &Path| identity(file) == Some(target);
    let mut open = daemon.registry.all().into_iter();
    let is_open = open.any(|open| open.session.path.as_deref().is_some_and(is_target));
    let is_below = |path: &Path, folder: &Path| {
        std::fs::canonicalize(folder).is_ok_and(|folder| path.starts_with(folder))
    };
    let is_listed = path.extension().is_some_and(|ending| ending == "jsonl")
        && std::fs::canonicalize(path).is_ok_and(|path| is_below(&path, daemon.files.store.path()));
    if is_listed || is_open {
        let reason = "is the file of a session, which an export does not replace";
        return Err(Error::invalid_params("path", reason));
    }
    Ok(())
}

fn options(params: &ExportSessionParams) -> Result<ExportOptions> {
    let format = match params.format {
        ExportFormat::Html => Format::Html,
        ExportFormat::Markdown => Format::Markdown,
        ExportFormat::Jsonl => Format::Jsonl,
        ExportFormat::Text => Format::Text,
        ExportFormat::Sft => Format::Data(DataFormat::Sft),
        ExportFormat::Dpo => Format::Data(DataFormat::Dpo),
        ExportFormat::Trace => Format::Data(DataFormat::Trace),
        ExportFormat::Atif => Format::Data(DataFormat::Atif),
        ExportFormat::Verifiers => Format::Data(DataFormat::Verifiers),
    };
    check_review(params, format == Format::Jsonl)?;
    let shortens = params.home == Some(HomePaths::Shorten);
    let is_jsonl = format == Format::Jsonl;
    let why = "a session file has the bytes of the session";
    if is_jsonl && params.redact == Some(true) {
        return Err(Error::invalid_params("redact", why));
    }
    if is_jsonl && shortens {
        return Err(Error::invalid_params("home", why));
    }
    let home = std::env::home_dir().filter(|_| shortens);
    Ok(ExportOptions {
        format,
        redacts: !is_jsonl && params.redact.unwrap_or(true),
        values: known_values(params.values.as_ref())?,
        choices: choices(params)?,
        home: home.map(|home| home.display().to_string()),
    })
}

/// Whether enough time has passed since the last report of progress.
fn is_due(last: &Mutex<Instant>) -> bool {
    let mut last = lock(last);
    let is_due = last.elapsed() >= PROGRESS_PAUSE;
    if is_due {
        *last = Instant::now();
    }
    is_due
}

fn redaction(redaction: Redaction) -> wire::Redaction {
    wire::Redaction {
        kind: redaction.kind.to_owned(),
        count: redaction.count,
        entry_ids: redaction.entry_ids,
    }
}
