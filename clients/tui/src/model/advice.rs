//! Advice for each kind of error, in the terms of this program. The remedies of the daemon are for authors
//! of programs (schema/reference.md, "Errors").

use super::dialog::FailureDialog;

impl FailureDialog {
    /// Returns the advice for the kind of this error.
    pub fn advice(&self, summarizer: Option<&str>) -> &'static str {
        of(&self.failure.kind, summarizer)
    }
}

/// Returns the advice for a kind of error (protocol.md §8.2). It may depend on the daemon's summarizer.
pub fn of(kind: &str, summarizer: Option<&str>) -> &'static str {
    of_summaries(kind, summarizer)
        .or_else(|| of_sessions(kind))
        .or_else(|| of_logs(kind))
        .or_else(|| of_entries(kind))
        .or_else(|| of_storage(kind))
        .or_else(|| of_requests(kind))
        .unwrap_or("Nothing was changed.")
}

fn of_summaries(kind: &str, summarizer: Option<&str>) -> Option<&'static str> {
    Some(match (kind, summarizer) {
        ("summarizerUnavailable", _) => {
            "No summarizer is configured. Start with --summarizer outline (offline), or set one up under [summarizer] in treelined's config.toml. Or go without a summary."
        }
        ("summarizerFailed", Some("command")) => {
            "Nothing has moved. The program is `argv` under [summarizer.command] in treelined's config.toml. Run it by hand to see what it writes to stderr, which is not kept here; or go without a summary."
        }
        ("summarizerFailed", Some("outline")) => {
            "Nothing has moved. Try again, or go without a summary."
        }
        ("summarizerFailed", _) => {
            "Nothing has moved. Try again, go without a summary, or look at [summarizer] in treelined's config.toml: key, model and address."
        }
        ("nothingToCompact", _) => {
            "The context has no older part. Compact again when the conversation has grown."
        }
        ("nothingToExport", _) => {
            "Export another part of the session. For pairs, label the better answer `good` first."
        }
        ("contextTooLarge", _) => {
            "The conversation is larger than the limit. Have earlier turns summarized, take the last ones only, or go on without a limit."
        }
        _ => return None,
    })
}

fn of_sessions(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "sessionBusy" => {
            "Another operation is running in this session. Try again when it has ended."
        }
        "sessionLocked" => "Another program is writing to the session. Try again.",
        "sessionNotFound" | "sessionReplaced" => {
            "The file was deleted or replaced. The list of sessions shows what is there."
        }
        "sessionDeleted" => "The file was deleted. If it is in the trash, :trash restores it.",
        "sessionExists" => "A session with this id is there already. Open it from the list.",
        "readOnly" => "The session is open for reading only, and cannot be changed from here.",
        "versionUnsupported" => {
            "The file has another version. Update treelined, or run `treelined migrate FILE`."
        }
        "headerMissing" => "The file is not a session. `treelined doctor FILE` says what is in it.",
        "sessionErased" => "The session was erased for the team. Start another one.",
        "cursorExpired" => "The answer is not kept any more. Ask again.",
        "importBusy" => "Another import is running. Try again when it has ended.",
        "importFailed" => {
            "Correct the cause that the message names, and import again; the rest is imported."
        }
        _ => return None,
    })
}

fn of_logs(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "logUnavailable" => "The team's stream does not answer. Try again in a moment.",
        "logConflict" => "Others write to the session at this time. Try again.",
        "logForeign" => {
            "Another program writes to this session in the team's stream. `treelined doctor --cluster` says more."
        }
        "logDiverged" => {
            "The file and the team's stream differ. Fork the session, then `treelined pull` reads the stream."
        }
        "logRewound" => {
            "The team's stream has lost messages that the file has. Keep the file, and ask who runs the servers; `treelined push` fills the stream again."
        }
        "logMisconfigured" => {
            "The team's stream is missing, full, or drops messages. `treelined doctor --cluster` says more."
        }
        "logDenied" => {
            "The servers of the team refuse the credentials or a permission. Correct [team]."
        }
        "erasureUnsupported" => "Only a team on PostgreSQL can erase. Delete the session instead.",
        "payloadTooLarge" => {
            "The team's stream takes entries of up to 64 MiB, if it has a bucket for them: `treelined doctor --cluster --create` makes it."
        }
        _ => return None,
    })
}

fn of_entries(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "leafMoved" => "The leaf has moved meanwhile. Look at the tree and try again.",
        "entryNotFound" => "The entry is no longer in the file. The tree has been read again.",
        "entryInvalid" => {
            "The entry lacks what its type requires; the message says what. Nothing was written."
        }
        "duplicateEntryId" => {
            "Another entry has this id. Try again: the next attempt has another id."
        }
        "treeChanged" => "The tree has changed while it was read. Try again.",
        "nestingTooDeep" => "The tree is too deep for this form. `treelined show` prints it.",
        "notAUserMessage" => {
            "You can only go back to a user message. :pop lists the user messages of this branch."
        }
        "nothingToUndo" => "The leaf has not moved.",
        "unansweredToolCalls" => {
            "The entries have tool calls whose results are not among them. Mark the results too."
        }
        _ => return None,
    })
}

fn of_storage(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "storageFull" => {
            "There is no space on the disk. Nothing was lost; try again when there is."
        }
        "storageIo" => "Look at the disk and the file; `treelined doctor` checks it.",
        "pathDenied" => {
            "Look at the owner and the permissions of the file and its folder, or choose another path."
        }
        "durabilityUnknown" => {
            "The data is written, but may not be on the disk yet. Look at the disk."
        }
        "fileExists" => "A file is there already. Choose another path: :export FORMAT PATH.",
        _ => return None,
    })
}

fn of_requests(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "commandNotFound" => "The client that has offered it is gone. `:` lists the commands.",
        "commandExists" => "Another client offers a command of this name. Use another name.",
        "commandFailed" => {
            "The client that offers the command has failed, has ended, or has not answered in time."
        }
        "eventNotPending" => "The question is closed already. No action is needed.",
        "noUser" => "No client can ask a person in this way.",
        "cancelled" => "It was cancelled, and nothing was changed. Run it again if you want it.",
        "timeout" => "The daemon has not answered in time. It may still do it.",
        "overloaded" => "The daemon has too much to do at once. Try again.",
        "memoryExhausted" => "Others use the daemon's memory. Try again in a moment.",
        "shuttingDown" => "The daemon is ending. R starts another one when it has ended.",
        "requestTooLarge" => "The text is too long to be sent at once. Send less.",
        "responseTooLarge" => "There is too much to show at once. Filter or search first.",
        "invalidParams" => "Correct what the message names, and try again.",
        "methodNotFound" => {
            "The daemon is older than this program. Update treelined, or name another with --daemon."
        }
        "parseError" | "invalidRequest" | "batchUnsupported" | "internalError" => {
            "This is a fault of treelined, not yours: please report it with the message. Other requests still work."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Failure;

    /// The kinds are read from the daemon's table.
    #[test]
    fn every_kind_of_error_has_advice_of_its_own() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/reference.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, table) = text.split_once("\n## Errors\n").unwrap();
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
        let kinds: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        assert!(kinds.len() > 40, "{kinds:?}");
        for kind in kinds.into_iter().chain(["timeout"]) {
            let dialog = FailureDialog {
                what: String::new(),
                failure: Failure {
                    kind: kind.to_owned(),
                    message: String::new(),
                },
                top: 0,
            };
            let advice = dialog.advice(None);
            assert_ne!(advice, "Nothing was changed.", "{kind}");
            assert!(advice.ends_with('.'), "{advice}");
        }
    }
}
