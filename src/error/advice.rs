//! What each kind of failure means and what a client does about it: for the schema, and for every
//! reference that is made from it.

use super::Kind;

/// A kind of failure, explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// What happened.
    pub happened: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

macro_rules! advice {
    ($($kind:ident $happened:literal $remedy:literal;)+) => {
        impl Kind {
            /// What happened, and what to do.
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
    InvalidRequest "The message is JSON, but no request of JSON-RPC 2.0, or it is not allowed here."
        "Send `jsonrpc`, `method` and an `id`; send `initialize` once, before everything else, or never.";
    MethodNotFound "There is no method of that name."
        "Compare the name with `methods` of this document; a newer client may need a newer daemon.";
    InvalidParams "The params do not have the shape that the method asks for."
        "Correct the member that `details.field` names; `details.reason` says what is wrong with it.";
    InternalError "The daemon has failed at something that is no fault of the request."
        "Read the daemon's log on stderr and report it; other requests still work.";
    ShuttingDown "The daemon is ending and takes no more work."
        "Start a new daemon and send the request there.";
    SessionNotFound "No session of that id is open, or the session directory has none."
        "Open the session with `open_session`; `list_sessions` names those that exist.";
    SessionBusy "A turn, a compaction or a navigation is running in the session."
        "Wait until it ends, or end it: `details.by` says what it is, `details.navigationId` which navigation.";
    SessionLocked "Another process is writing to the session file."
        "Try again after `retryAfterMs`.";
    HeaderMissing "The first line of the file is not the header of a session."
        "Run `treelined doctor` on the file; it says whether the file can be repaired.";
    VersionUnsupported "The file has a version that this daemon does not write."
        "Update the daemon, or migrate the file with `treelined migrate`.";
    ReadOnly "The session was opened for reading only."
        "Open the session again with another `mode`.";
    SessionDeleted "The session file has been deleted."
        "Close the session; restore the file from the trash if it is still wanted.";
    SessionReplaced "Another file stands in the place of the session file."
        "Close the session and open it again to read what is there now.";
    SessionExists "There is a session of that id already."
        "Open the existing session, or choose another id.";
    EntryNotFound "The session has no entry of that id."
        "Correct `details.entryId`; `get_tree` and `get_entries` name the entries.";
    LeafMoved "The leaf is not where `expectedLeafId` says."
        "Look at `details.entries` and `details.leafId`, decide anew, and send the request with the new leaf.";
    EntryInvalid "An entry does not have the members that its type or role asks for."
        "Correct the member `details.field` of the entry `details.index`; the message lists what is accepted.";
    TreeChanged "The tree has changed since the page that the cursor is of."
        "Begin again with the first page.";
    NestingTooDeep "The nested form of the tree would be too deep."
        "Ask for the flat form, or for less with `maxDepth` or `rootId`.";
    DuplicateEntryId "Another entry has that id."
        "Choose another id. The same id with the same content is no error: that is a retry.";
    NotAUserMessage "The entry is not a user message, or there is none to go back to."
        "Name a user message; `get_fork_messages` lists them.";
    NothingToUndo "There is no move to take back."
        "Nothing has to be done; `get_navigation_log` lists the moves.";
    UnansweredToolCalls "The copy would end with tool calls whose results are not part of it."
        "Take the results along, or have the calls closed where the method offers it.";
    SummarizerUnavailable "A summary is wanted, but no summarizer is configured and no client gave one."
        "Configure a summarizer, answer the event with a summary, or leave `summarize` out.";
    SummarizerFailed "The summarizer has failed; nothing was changed."
        "Try again, or go without a summary.";
    NothingToCompact "The context has no part that could be summarized."
        "Nothing has to be done; try again when the conversation has grown.";
    EventNotPending "The question is over or never was open."
        "Nothing has to be done: somebody else has answered, or the time is up.";
    StorageFull "The disk or the quota is full."
        "Make room and send the request again; `details.writtenIds` names what was written.";
    StorageIo "The system failed to read or write the file."
        "Check the disk and the file; `details.writtenIds` names what was written.";
    PathDenied "The system denies access to the file or its directory."
        "Change the rights of the file or the directory, or choose another session directory.";
    DurabilityUnknown "The data is written, but the system could not say that it is on the disk."
        "Check the disk; sending the same entry ids again tells whether they are safe now.";
    BatchUnsupported "The message is a batch."
        "Send the requests one by one; they may be sent without waiting for the answers.";
    RequestTooLarge "The message is larger than `limits.maxFrameBytes`."
        "Send less at once, such as fewer entries.";
    ResponseTooLarge "The answer would be larger than the client or the daemon takes."
        "Ask for less at once: with `limit`, `maxBytes`, or for single entries.";
    Overloaded "Too much is waiting to be done or to be read by the client."
        "Read what the daemon has sent, and try again after `retryAfterMs`.";
    Cancelled "The request was cancelled; nothing was changed."
        "Nothing has to be done; send it again if it is wanted after all.";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients could tell what had failed, but not what to do about it. Each kind says both, in whole
    /// sentences.
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
