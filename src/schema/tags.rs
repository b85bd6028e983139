//! Which methods belong together, for readers of the OpenRPC document.

/// A group of methods.
pub struct Tag {
    pub name: &'static str,
    pub description: &'static str,
    pub methods: &'static [&'static str],
}

pub const TAGS: &[Tag] = &[
    Tag {
        name: "connection",
        description: "The connection itself.",
        methods: &[
            "initialize",
            "rpc.discover",
            "shutdown",
            "$/cancel_request",
            "$/cancelRequest",
        ],
    },
    Tag {
        name: "sessions",
        description: "Sessions as a whole.",
        methods: &[
            "create_session",
            "open_session",
            "close_session",
            "list_sessions",
            "delete_session",
            "list_trash",
            "restore_session",
            "set_session_name",
            "fork_session",
            "get_fork_messages",
        ],
    },
    Tag {
        name: "append",
        description: "Adding entries.",
        methods: &[
            "append_message",
            "append_entries",
            "append_label",
            "cherry_pick",
            "merge_branch",
            "send_message",
        ],
    },
    Tag {
        name: "navigation",
        description: "Moving the leaf.",
        methods: &[
            "set_leaf",
            "branch",
            "navigate_tree",
            "abort_navigation",
            "undo_navigation",
            "redo_navigation",
            "get_navigation_log",
            "pop",
        ],
    },
    Tag {
        name: "read",
        description: "Reading the tree and its entries.",
        methods: &[
            "get_leaf",
            "get_tree",
            "list_branches",
            "get_entries",
            "get_entry",
            "get_children",
            "get_path",
            "get_label",
            "get_context",
            "get_stats",
        ],
    },
    Tag {
        name: "compaction",
        description: "Replacing the older part of the context by a summary.",
        methods: &["prepare_compaction", "compact"],
    },
    Tag {
        name: "turns",
        description: "The client's agent at work, and questions to clients.",
        methods: &["begin_turn", "end_turn", "answer_event"],
    },
];

/// The group of a method.
pub fn tag_of(method: &str) -> Option<&'static Tag> {
    TAGS.iter().find(|tag| tag.methods.contains(&method))
}
