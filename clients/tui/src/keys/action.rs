//! The actions of keys. Each has one name, which the configuration file, the help and schema/keys.tsv use.

macro_rules! actions {
    ($($variant:ident $name:literal $about:literal,)+) => {
        /// An action that a key can have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action { $(#[doc = $about] $variant,)+ }

        impl Action {
            /// All actions, in the order of the help.
            pub const ALL: &[Action] = &[$(Action::$variant,)+];

            /// Returns the name in the configuration file.
            pub const fn name(self) -> &'static str {
                match self { $(Action::$variant => $name,)+ }
            }

            /// Returns a line for the help.
            pub const fn about(self) -> &'static str {
                match self { $(Action::$variant => $about,)+ }
            }
        }
    };
}

actions! {
    Up "up" "up",
    Down "down" "down",
    PageUp "page-up" "a page up",
    PageDown "page-down" "a page down",
    First "first" "to the start",
    Last "last" "to the end",
    Accept "accept" "go here, open, choose",
    Back "back" "clear the search, then go back",
    Search "search" "search",
    FoldOrUp "fold-or-up" "close the branch, or go to its start",
    UnfoldOrDown "unfold-or-down" "open the branch, or go to the next one",
    ToggleFold "toggle-fold" "open or close a folded row or a branch",
    OpenAll "open-all" "open or close all branches",
    PreviousPrompt "previous-prompt" "to the previous user message",
    NextPrompt "next-prompt" "to the next user message",
    ToActive "to-active" "to the leaf",
    ToNews "to-news" "to the leaf of other programs",
    NextHit "next-hit" "the next hit",
    PreviousHit "previous-hit" "the previous hit",
    FilterDefault "filter-default" "show the conversation",
    FilterNoTools "filter-no-tools" "hide tool results",
    FilterUserOnly "filter-user-only" "only user messages",
    FilterLabeled "filter-labeled-only" "only labelled entries",
    FilterAll "filter-all" "show every entry",
    NextFilter "next-filter" "the next filter",
    Label "label" "label the entry",
    LabelTimes "label-times" "show when labels were set",
    Undo "undo" "undo the last move",
    Redo "redo" "redo the move",
    Copy "copy" "copy the text",
    Compose "compose" "write a message here",
    Rewind "rewind" "edit a user message again",
    Fork "fork" "fork at a user message",
    CherryPick "cherry-pick" "copy the marked entries to the leaf",
    Merge "merge" "append a summary of this branch at the leaf",
    Compact "compact" "summarize the older part of the context",
    Branches "branches" "list the branches",
    NameBranch "name-branch" "name this branch",
    Archive "archive" "archive this branch, or bring it back",
    ShowArchived "show-archived" "show or hide archived branches",
    Candidates "candidates" "choose between the answers to one question",
    Aside "aside" "ask a side question, on its own branch",
    KeepAside "keep-aside" "copy a side question to the leaf",
    Continue "continue-elsewhere" "continue in another tool",
    Export "export" "write the session into a file",
    Mark "mark" "mark the entry for comparing",
    Compare "compare" "compare the marked entries",
    Columns "columns" "time and tokens of each entry",
    ToggleTools "toggle-tools" "open or close all tool calls",
    ToggleThinking "toggle-thinking" "open or close all thinking",
    TogglePreview "toggle-preview" "preview: half or full screen",
    LargerPreview "larger-preview" "a larger preview",
    SmallerPreview "smaller-preview" "a smaller preview",
    FocusPreview "focus-preview" "to the preview and back",
    Sessions "sessions" "the list of sessions",
    Family "family" "sessions related to this one",
    Tags "tags" "change the tags of the session",
    Pin "pin" "pin the session, or unpin it",
    ArchiveSession "archive-session" "archive the session, or bring it back",
    ArchivedSessions "archived-sessions" "show or hide archived sessions",
    SearchAll "search-all" "search the text of all sessions",
    Scope "scope" "sessions of this directory, or all",
    NextMode "next-mode" "switch: question, words, text, pattern",
    NextSort "next-sort" "the next order",
    NamedOnly "named-only" "only sessions with a name",
    FilterTool "filter-tool" "only sessions of the next tool",
    FilterProject "filter-project" "only sessions of this project",
    FilterDate "filter-date" "only the last day, week, month",
    NextGroup "next-group" "group by project, tool, date",
    Rename "rename" "rename",
    Trash "trash" "move to the trash",
    Create "new" "create a session",
    Import "import" "import from other tools",
    Restore "restore" "restore a deleted session",
    Send "send" "send as the new user message",
    Newline "newline" "a new line",
    Command "command" "run a command",
    Answer "answer" "open the waiting question",
    Reconnect "reconnect" "start the daemon again",
    Help "help" "all keys",
    Suspend "suspend" "to the shell and back",
    Quit "quit" "quit",
}
