//! The causes of failures: the only table that maps kinds to JSON-RPC codes (protocol.md §8).

macro_rules! kinds {
    ($($variant:ident $name:literal $code:literal $retryable:literal),+ $(,)?) => {
        /// The cause of a failure. `name()` is the contract with clients (`data.kind`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $($variant),+ }

        impl Kind {
            /// Every kind, in the order of protocol.md §8.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),+];

            /// `data.kind` on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),+ }
            }

            /// The JSON-RPC error number.
            pub const fn code(self) -> i32 {
                match self { $(Kind::$variant => $code),+ }
            }

            /// Whether the same request may succeed later, unchanged.
            pub const fn retryable(self) -> bool {
                match self { $(Kind::$variant => $retryable),+ }
            }
        }
    };
}

kinds! {
    ParseError "parseError" -32700 false,
    InvalidRequest "invalidRequest" -32600 false,
    MethodNotFound "methodNotFound" -32601 false,
    InvalidParams "invalidParams" -32602 false,
    InternalError "internalError" -32603 false,
    ShuttingDown "shuttingDown" 1004 false,
    SessionNotFound "sessionNotFound" 1100 false,
    SessionBusy "sessionBusy" 1101 true,
    SessionLocked "sessionLocked" 1102 true,
    HeaderMissing "headerMissing" 1104 false,
    VersionUnsupported "versionUnsupported" 1105 false,
    ReadOnly "readOnly" 1106 false,
    SessionDeleted "sessionDeleted" 1107 false,
    SessionReplaced "sessionReplaced" 1108 false,
    SessionExists "sessionExists" 1109 false,
    ImportBusy "importBusy" 1110 true,
    CursorExpired "cursorExpired" 1111 false,
    SessionErased "sessionErased" 1112 false,
    EntryNotFound "entryNotFound" 1200 false,
    LeafMoved "leafMoved" 1201 false,
    EntryInvalid "entryInvalid" 1202 false,
    TreeChanged "treeChanged" 1203 false,
    NestingTooDeep "nestingTooDeep" 1204 false,
    DuplicateEntryId "duplicateEntryId" 1205 false,
    NotAUserMessage "notAUserMessage" 1206 false,
    NothingToUndo "nothingToUndo" 1207 false,
    UnansweredToolCalls "unansweredToolCalls" 1208 false,
    NothingToExport "nothingToExport" 1209 false,
    SummarizerUnavailable "summarizerUnavailable" 1300 false,
    SummarizerFailed "summarizerFailed" 1301 true,
    NothingToCompact "nothingToCompact" 1302 false,
    ContextTooLarge "contextTooLarge" 1303 false,
    EventNotPending "eventNotPending" 1400 false,
    NoUser "noUser" 1401 false,
    CommandExists "commandExists" 1410 false,
    CommandNotFound "commandNotFound" 1411 false,
    CommandFailed "commandFailed" 1412 false,
    StorageFull "storageFull" 1600 true,
    StorageIo "storageIo" 1601 false,
    PathDenied "pathDenied" 1602 false,
    DurabilityUnknown "durabilityUnknown" 1603 false,
    FileExists "fileExists" 1604 false,
    ImportFailed "importFailed" 1606 false,
    LogUnavailable "logUnavailable" 1700 true,
    LogConflict "logConflict" 1701 true,
    LogForeign "logForeign" 1702 false,
    LogDiverged "logDiverged" 1703 false,
    LogRewound "logRewound" 1704 false,
    LogMisconfigured "logMisconfigured" 1705 false,
    LogDenied "logDenied" 1706 false,
    PayloadTooLarge "payloadTooLarge" 1707 false,
    ErasureUnsupported "erasureUnsupported" 1708 false,
    BatchUnsupported "batchUnsupported" -32005 false,
    RequestTooLarge "requestTooLarge" -32007 false,
    ResponseTooLarge "responseTooLarge" -32008 false,
    Overloaded "overloaded" -32009 true,
    MemoryExhausted "memoryExhausted" -32010 true,
    Cancelled "cancelled" -32800 false,
}
