//! For each kind of failure: the cause, and the remedy for a client. The schema and the reference are made from this
//! table.

use super::kind::Kind;

/// The explanation of a kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The event, as a sentence.
    pub happened: &'static str,
    /// The remedy, as a sentence.
    pub remedy: &'static str,
}

macro_rules! advice {
    ($($kind:ident $happened:literal $remedy:literal;)+) => {
        impl Kind {
            /// The event and the remedy.
            pub const fn advice(self) -> Advice {
                match self {
                    $(Kind::$kind => Advice { happened: $happened, remedy: $remedy },)+
                }
            }
        }
    };
}

advice! {
    ParseError "The message is not JSON."
        "Send one JSON object per line, encoded as UTF-8, without raw line breaks inside.";
    InvalidRequest "The message is JSON, but not a JSON-RPC 2.0 request, or the request is not allowed here."
        "Send `jsonrpc`, `method` and an `id`; send `initialize` at most once, before all other requests.";
    MethodNotFound "There is no method with this name."
        "Compare the name with `methods` of this document; a newer client may need a newer daemon.";
    InvalidParams "The params do not have the shape that the method requires."
        "Correct the member that `details.field` names; `details.reason` explains the fault.";
    InternalError "The daemon failed; the request is not at fault."
        "Read the daemon's log on stderr and report it; other requests still work.";
    ShuttingDown "The daemon is shutting down and accepts no more requests."
        "Start a new daemon and send the request there.";
    SessionNotFound "No session with this id is open, or the session directory has none."
        "Open the session with `open_session`; `list_sessions` lists the existing ones.";
    SessionBusy "A turn, a compaction or a navigation is running in the session."
        "Wait until it ends, or end it: `details.by` names it, and `details.navigationId` the navigation.";
    SessionLocked "Another process is writing to the session file."
        "Try again after `retryAfterMs`.";
    HeaderMissing "The first line of the file is not the header of a session."
        "Run `treelined doctor` on the file; it says whether the file can be repaired.";
    VersionUnsupported "The daemon cannot write files of this version."
        "Update the daemon, or migrate the file with `treelined migrate`.";
    ReadOnly "The session was opened for reading only."
        "Close the session, and open it again without `mode: \"read\"`.";
    SessionDeleted "The session file has been deleted."
        "Close the session; restore the file from the trash if it is still wanted.";
    SessionReplaced "Another file has replaced the session file."
        "Close the session and open it again to read the new file.";
    SessionExists "A session with this id exists already."
        "Open the existing session, or choose another id.";
    ImportBusy "Another import is running."
        "Wait until it ends, and try again.";
    CursorExpired "The ranking of the cursor is not kept any more."
        "Ask again without a cursor.";
    SessionErased "The session was erased for the whole team, and its id is used up."
        "Close the session, and forget its id.";
    EntryNotFound "The session has no entry with this id."
        "Correct `details.entryId`; `get_tree` and `get_entries` list the entries.";
    LeafMoved "The leaf is not at `expectedLeafId`."
        "Read `details.entries` and `details.leafId`, decide again, and send the request with the new leaf.";
    EntryInvalid "An entry does not have the members that its type or role requires."
        "Correct the member `details.field` of the entry `details.index`; the message lists the accepted values.";
    TreeChanged "The tree has changed since the page that returned the cursor, or the order of the entries has."
        "Start again with the first page.";
    NestingTooDeep "The nested form of the tree would be too deep."
        "Request the flat form, or fewer entries with `maxDepth` or `rootId`.";
    DuplicateEntryId "Another entry has this id."
        "Choose another id. The same id with the same content is a retry and no error.";
    NotAUserMessage "The entry is not a user message, or no user message precedes the leaf."
        "Name a user message; `get_fork_messages` lists them.";
    NothingToUndo "There is no move to undo or redo."
        "No action is needed; `get_navigation_log` lists the moves.";
    UnansweredToolCalls "The copy would have tool calls without their results."
        "Copy the results too, or let the method close the calls if it has an option for that.";
    NothingToExport "The part of the session has nothing that the format can hold."
        "Export another part; the message says what is missing.";
    SummarizerUnavailable "The request needs a summary, but no summarizer is configured and no client gave a summary."
        "Configure a summarizer, answer the event with a summary, or leave `summarize` out.";
    SummarizerFailed "The summarizer failed; nothing was changed."
        "Try again, or do it without a summary.";
    NothingToCompact "The context has no part to summarize."
        "No action is needed; try again when the conversation has grown.";
    ContextTooLarge "The conversation has more tokens than `limit`."
        "Send `compact: true`, `last`, or a larger `limit`; 0 takes any number.";
    EventNotPending "The question is closed, or never existed."
        "No action is needed: another answer decided it, or its time ran out.";
    NoUser "No connection can ask a person in this way."
        "Go on without the answer, or connect a client that declares `capabilities.ui`.";
    CommandExists "Another connection, or the client itself, has a command of this name."
        "Choose another name; `list_commands` lists those of connections.";
    CommandNotFound "No connection offers a command of this name."
        "Correct the name; `list_commands` lists the commands.";
    CommandFailed "The command failed."
        "Look at `details.reason` and `details.message`; the command may have done a part of its work.";
    StorageFull "The disk or the quota is full."
        "Free space and send the request again; `details.writtenIds` lists the entries that were written.";
    StorageIo "The operating system failed to read or write the file."
        "Check the disk and the file; `details.writtenIds` lists the entries that were written.";
    PathDenied "The operating system denies access to the file or its directory."
        "Change the permissions of the file or the directory, or choose another session directory.";
    DurabilityUnknown "The data is written, but the operating system could not confirm that it is on the disk, or the team's stream did not answer in time."
        "Check the disk; send the same entries with the same ids again to learn whether they are safe.";
    FileExists "A file with this path exists already."
        "Choose another path, or send `overwrite: true` to replace the file.";
    ImportFailed "A conversation of another tool could not be imported."
        "Correct the cause that the message names, and import again; the rest is imported.";
    LogUnavailable "The team's stream cannot be reached, or does not answer in time."
        "Try again after `retryAfterMs`; reads of local files work meanwhile.";
    LogConflict "Others wrote to the session in the team's stream in each of several attempts."
        "Send the request again.";
    LogForeign "The team's stream has a message that is not of this program, or that does not begin a session."
        "Find the program that writes to the session's subject; nothing was changed here.";
    LogDiverged "The file and the team's stream differ on the session, and neither is the beginning of the other; or the file is a replica of another stream."
        "Publish what only the file has, as a branch, with `treelined push --branch`; or fork the session from the file, and read the stream into a new file. Nothing was changed.";
    LogRewound "The team's stream has lost messages that the file has: it was restored from a backup, or made anew."
        "Keep the file, and ask who runs the servers; then `treelined push` fills the stream again from the file. Nothing was changed.";
    LogMisconfigured "The stream is missing, full, or drops messages."
        "Correct the stream as the message says.";
    LogDenied "The servers refuse the credentials or a permission, or their certificate is not trusted."
        "Correct the credentials, the certificates or the permissions.";
    PayloadTooLarge "Lines are larger than the team's stream takes: more than 64 MiB, or more than a message while the stream has no bucket for them."
        "Make the bucket with `treelined doctor --cluster --create` if the message says that it is missing; else write less at once.";
    ErasureUnsupported "This daemon cannot erase sessions: it has no team, or the team's streams of NATS keep all messages."
        "Use `delete_session`; an administrator of NATS can remove the team's stream as a whole.";
    BatchUnsupported "The message is a batch."
        "Send the requests one by one; you need not wait for the answers.";
    RequestTooLarge "The message is larger than `limits.maxFrameBytes`."
        "Send less at once, for instance fewer entries.";
    ResponseTooLarge "The answer would be larger than the limit of the client or the daemon."
        "Request less at once: with `limit` or `maxBytes`, or single entries.";
    Overloaded "Too many requests wait in the daemon, or too many messages wait for the client to read them."
        "Read the daemon's messages, or end the turn; then send the request again.";
    MemoryExhausted "The daemon has no memory left for this request while others use it; nothing was done."
        "Send the request again in a moment; ask for less at once, or raise `max_working_bytes` of `[limits]`, if it stays.";
    Cancelled "The request was cancelled; nothing was changed."
        "No action is needed; send the request again if you still want it.";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients once got a failure without its remedy. Each kind has both, in whole sentences.
    #[test]
    fn every_kind_says_what_happened_and_what_to_do() {
        for kind in Kind::ALL {
            let Advice { happened, remedy } = kind.advice();
            for text in [happened, remedy] {
                assert!(text.ends_with('.') && text.len() > 15, "{kind:?}: {text}");
            }
        }
    }
}
