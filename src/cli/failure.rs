//! Errors for a person at a shell: what happened and to what, then the remedy. This module has the exit
//! codes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::error::{Error, Kind};
use treelined_core::json;
use treelined_core::terminal;

/// The exit codes of all commands. Success is 0.
pub(super) const FAILED: u8 = 1;
pub(super) const USAGE: u8 = 2;
pub(super) const NOT_FOUND: u8 = 3;
pub(super) const INTERRUPTED: u8 = 130;

/// An error of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellError {
    /// The failure and its object. Further lines list alternatives.
    pub message: String,
    /// A sentence or a command; empty if there is none.
    pub remedy: String,
    pub code: u8,
}

/// The kind of an error of this program, or of an error response of the daemon.
pub(super) fn kind(error: &anyhow::Error) -> Option<Kind> {
    match (
        error.downcast_ref::<ErrorResponse>(),
        error.downcast_ref::<Error>(),
    ) {
        (Some(answered), _) => answered.kind().and_then(|name| known(&name)),
        (_, Some(own)) => Some(own.kind),
        _ => None,
    }
}

impl ShellError {
    pub(super) fn new(code: u8, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: remedy.into(),
            code,
        }
    }

    /// A failure with this remedy, as an `anyhow` error.
    pub(super) fn failed(message: impl Into<String>, remedy: impl Into<String>) -> anyhow::Error {
        Self::new(FAILED, message, remedy).into()
    }

    /// The error that a command reports for `error`, according to its cause.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        if let Some(own) = error.downcast_ref::<Self>() {
            return own.clone();
        }
        let message = format!("{error:#}");
        match kind(error) {
            Some(kind) => {
                let (code, remedy) = remedy(kind);
                Self::new(code, message, remedy)
            }
            None => Self::new(FAILED, message, ""),
        }
    }

    /// The remedy for one of several failures of a command.
    #[cfg(feature = "team")]
    pub(super) fn remedy_of(kind: Kind) -> &'static str {
        remedy(kind).1
    }

    /// Writes the error to stderr, and returns the exit code.
    pub(super) fn report(&self) -> ExitCode {
        let mut stderr = io::stderr().lock();
        // If stderr does not accept the message, there is nowhere else to write it.
        let _unsaid = writeln!(stderr, "error: {self}");
        ExitCode::from(self.code)
    }
}

impl std::error::Error for ShellError {}

impl fmt::Display for ShellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.message.lines().map(terminal::line).collect();
        f.write_str(&lines.join("\n"))?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "\n  try: {}", terminal::line(remedy)),
        }
    }
}

/// The error object of a response.
#[derive(Debug)]
pub(super) struct ErrorResponse(pub Box<RawValue>);

impl std::error::Error for ErrorResponse {}

impl ErrorResponse {
    /// The member `data.kind`.
    pub(super) fn kind(&self) -> Option<String> {
        let kind = json::get_path(self.0.get().as_bytes(), &["data", "kind"]);
        kind.and_then(json::string).map(Cow::into_owned)
    }

    /// The member `data.details`.
    pub(super) fn details(&self) -> Option<Value> {
        let details = json::get_path(self.0.get().as_bytes(), &["data", "details"])?;
        serde_json::from_slice(details).ok()
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[derive(Deserialize)]
        struct ErrorMembers {
            message: String,
            data: Option<Data>,
        }
        #[derive(Deserialize)]
        struct Data {
            kind: String,
        }
        match serde_json::from_str(self.0.get()) {
            Ok(ErrorMembers {
                message,
                data: Some(data),
            }) => write!(f, "{message} ({})", data.kind),
            Ok(ErrorMembers { message, .. }) => f.write_str(&message),
            Err(_) => f.write_str(self.0.get()),
        }
    }
}

/// Whether the error is a broken pipe of stdout: the reader, such as `head`, needs no more.
pub(super) fn is_unread(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Writes a warning with its remedy to stderr.
pub(super) fn warn(message: &str, remedy: &str) {
    let (message, remedy) = (terminal::line(message), terminal::line(remedy));
    let mut stderr = io::stderr().lock();
    // If stderr does not accept the message, there is nowhere else to write it.
    let _unsaid = writeln!(stderr, "warning: {message}\n  try: {remedy}");
}

fn known(name: &str) -> Option<Kind> {
    Kind::ALL.iter().copied().find(|kind| kind.name() == name)
}

macro_rules! remedies {
    ($($kind:ident $code:ident $remedy:literal;)+) => {
        /// The exit code of a kind of failure, and its remedy for a person at a shell.
        fn remedy(kind: Kind) -> (u8, &'static str) {
            match kind {
                $(Kind::$kind => ($code, $remedy),)+
            }
        }
    };
}

remedies! {
    ParseError USAGE "correct the JSON; `treelined call METHOD -` reads it from stdin";
    InvalidRequest USAGE "send one JSON-RPC request a line, `initialize` first and once";
    MethodNotFound USAGE "`treelined call rpc.discover` lists the methods; a newer one may need a newer treelined";
    InvalidParams USAGE "correct what the message names; `treelined COMMAND --help` has the options";
    InternalError FAILED "run the command again with TREELINED_LOG=debug, and report what it prints";
    ShuttingDown FAILED "run the command again: it starts another daemon";
    SessionNotFound NOT_FOUND "`treelined list --all` shows the sessions, `treelined restore` the deleted ones";
    SessionBusy FAILED "wait until the move, the compaction or the turn ends";
    SessionLocked FAILED "close the session in the other program, or run the command again in a moment";
    HeaderMissing FAILED "`treelined doctor FILE` says what the file holds";
    VersionUnsupported FAILED "update treelined: a newer program has written the file";
    ReadOnly FAILED "make the file writable, or work on a copy of it";
    SessionDeleted FAILED "`treelined restore SESSION` brings it back";
    SessionReplaced FAILED "run the command again: it reads the new file";
    SessionExists FAILED "use the existing session, or another id";
    SessionErased FAILED "start another session: an erased one cannot come back";
    CursorExpired FAILED "ask again: the daemon keeps an answer for ten minutes";
    ImportBusy FAILED "run the command again when the other import has ended";
    EntryNotFound NOT_FOUND "`treelined tree SESSION --ids` shows the ids of the entries";
    LeafMoved FAILED "look at `treelined tree SESSION`, and decide again: somebody else has written";
    EntryInvalid USAGE "correct the member that the message names";
    TreeChanged FAILED "run the command again: the session has changed meanwhile";
    NestingTooDeep FAILED "ask for the flat form, or for a part with `rootId` or `maxDepth`";
    DuplicateEntryId FAILED "choose another id; the same id with the same content is not an error";
    NotAUserMessage FAILED "name a message of the user; `treelined tree SESSION --filter user-only --ids` lists them";
    NothingToUndo FAILED "no action is needed; `treelined tree SESSION` shows the leaf";
    UnansweredToolCalls FAILED "name the results of the tools too, or send `closeToolCalls`";
    NothingToExport FAILED "`treelined tree SESSION` shows the branches, `treelined label SESSION ENTRY good` marks a good answer";
    SummarizerUnavailable FAILED "`--summarizer outline` makes summaries offline; or go without a summary";
    SummarizerFailed FAILED "run the command again, or go without a summary: nothing was changed";
    NothingToCompact FAILED "no action is needed; try again when the conversation has grown";
    ContextTooLarge FAILED "`--compact` replaces earlier turns by a summary, `--last N` leaves them out, `--limit 0` takes all";
    EventNotPending FAILED "no action is needed: the question was decided, or its time is over";
    NoUser FAILED "connect a client that shows questions, such as treelined-tui --shared";
    CommandExists FAILED "choose another name; `treelined call list_commands` lists those in use";
    CommandNotFound NOT_FOUND "`treelined call list_commands` lists the commands";
    CommandFailed FAILED "look at the output of the program that offers the command";
    StorageFull FAILED "free space on the disk, and run the command again; nothing is lost";
    StorageIo FAILED "check that the file exists and that the disk works";
    PathDenied FAILED "change the permissions of the file or its folder, or choose another one";
    DurabilityUnknown FAILED "check the disk; `treelined doctor FILE` checks the file";
    FileExists FAILED "choose another file, or replace it with `--overwrite`";
    ImportFailed FAILED "correct the cause that the message names, and import again";
    LogUnavailable FAILED "check the network, or run the command again in a moment; `treelined doctor --cluster` looks at the servers";
    LogConflict FAILED "run the command again: others write to the session at this time";
    LogForeign FAILED "find the program that writes to the session's subject, and remove its permission; nothing was changed here, and you can continue in a fork of the session";
    LogDiverged FAILED "publish what only the file has, as a branch, with `treelined push --branch`; or move the file and the `.replica` beside it to another folder, and pull the session; nothing was changed";
    LogRewound FAILED "ask who runs the servers whether they stay as they are; then `treelined push` fills the stream again from the file; nothing was changed";
    LogMisconfigured FAILED "correct what the message names; `treelined doctor --cluster` lists all of it, and `--create` makes a missing stream or missing tables";
    LogDenied FAILED "correct the password, `credentials`, `ca` or `certificate` of [team], or ask for the permission that the message names";
    PayloadTooLarge FAILED "treelined doctor --cluster --create, which makes the bucket for lines of up to 64 MiB";
    ErasureUnsupported FAILED "`treelined rm SESSION` and `treelined purge SESSION` remove it from this machine";
    BatchUnsupported USAGE "send the requests one by one";
    RequestTooLarge FAILED "send less at once, or raise --max-frame-bytes";
    ResponseTooLarge FAILED "ask for less with `limit` or `maxBytes`, or raise --max-frame-bytes";
    Overloaded FAILED "run the command again in a moment";
    MemoryExhausted FAILED "run the command again in a moment, or raise max_working_bytes of [limits]";
    Cancelled INTERRUPTED "nothing was changed; run the command again if you still want it";
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    fn answered(kind: Kind) -> ShellError {
        let object = json!({
            "code": kind.code(),
            "message": "this has happened",
            "data": { "kind": kind.name(), "retryable": kind.retryable() },
        });
        let object = serde_json::value::to_raw_value(&object).unwrap();
        ShellError::of(&ErrorResponse(object).into())
    }

    /// Errors were once shown as the bare message of the daemon, which did not say what to do.
    #[test]
    fn every_kind_is_shown_at_the_shell_with_what_to_do() {
        for kind in Kind::ALL {
            let shown = answered(*kind).to_string();
            let (event, remedy) = shown.split_once("\n  try: ").unwrap();
            assert_eq!(event, format!("this has happened ({})", kind.name()));
            assert!(remedy.len() > 10 && !remedy.contains('\n'), "{shown}");
        }
    }

    #[test]
    fn errors_of_this_program_have_the_remedy_of_their_kind_too() {
        let error = Error::new(Kind::HeaderMissing, "x.jsonl has no header");
        let shown = ShellError::of(&anyhow::Error::from(error).context("open x.jsonl"));
        assert!(shown.remedy.contains("treelined doctor"), "{shown}");
        let lost = ShellError::of(&anyhow::anyhow!("a\u{1b}[2J"));
        assert_eq!((lost.to_string().as_str(), lost.code), ("a␛[2J", FAILED));
    }

    const MARKS: [&str; 2] = ["<!-- shell -->\n", "<!-- /shell -->"];

    /// The table of `schema/errors.md`. With `TREELINED_UPDATE=1` the test writes it instead.
    #[test]
    fn the_document_of_errors_has_the_text_of_every_kind() {
        let mut table = String::from(
            "| kind | what happened | exit code | `try:` at the shell | remedy of a client |\n|---|---|---|---|---|\n",
        );
        for kind in Kind::ALL {
            let (code, shell) = remedy(*kind);
            let advice = kind.advice();
            table += &format!(
                "| `{}` | {} | {code} | {shell} | {} |\n",
                kind.name(),
                advice.happened,
                advice.remedy
            );
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/errors.md");
        let document = std::fs::read_to_string(&path).unwrap();
        let start = document.find(MARKS[0]).unwrap() + MARKS[0].len();
        let end = document.find(MARKS[1]).unwrap();
        if std::env::var_os("TREELINED_UPDATE").is_some() {
            let updated = [&document[..start], &table, &document[end..]].concat();
            std::fs::write(&path, updated).unwrap();
            return;
        }
        assert!(document[start..end] == table, "stale: cargo xtask generate");
    }
}
