//! The flags of a node.

/// A set of properties of a node, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub(super) u16);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// The parent of the entry is unknown.
    pub const ORPHAN: Flags = Flags(1);
    /// The parent of the entry is later in the file.
    pub const FORWARD_PARENT: Flags = Flags(1 << 1);
    pub const SELF_PARENT: Flags = Flags(1 << 2);
    /// The link of the entry to its parent would have closed a cycle.
    pub const CYCLE: Flags = Flags(1 << 3);
    /// Another line has the same id and other bytes.
    pub const DUPLICATE_ID: Flags = Flags(1 << 4);
    /// The entry was read from a damaged line.
    pub const RECOVERED: Flags = Flags(1 << 5);
    pub const INVALID_UTF8: Flags = Flags(1 << 6);
    /// The entry is a custom_message with `display:false`.
    pub const HIDDEN: Flags = Flags(1 << 7);
    /// The entry is a failed tool result, assistant message or command.
    pub const ERROR: Flags = Flags(1 << 8);
    /// The entry is an assistant message without text that did not end early.
    pub const SILENT: Flags = Flags(1 << 9);
    /// Another process appended the entry after this process opened the session.
    pub const FOREIGN: Flags = Flags(1 << 10);
    /// The entry has another parent in the tree than in the file, so clients get the entry with the parent from the
    /// tree.
    pub const REPARENTED: Flags = Flags(1 << 11);
    /// The entry is a branch_summary with `merge:true`.
    pub const MERGE: Flags = Flags(1 << 12);
    /// The timestamp of the entry does not have the form that this program writes, so rows show the stored text.
    pub const ODD_TIMESTAMP: Flags = Flags(1 << 13);
    /// The entry refers to a leaf record, so clients get the entry with the reference resolved.
    pub const STALE_REFERENCE: Flags = Flags(1 << 14);
    /// The entry keeps the position where the file opens. It is a leaf record that moves nothing, or a background
    /// entry.
    pub const STAYS: Flags = Flags(1 << 15);

    /// The names that clients see (`flags` of protocol.md §6).
    const NAMES: [(Flags, &'static str); 7] = [
        (Flags::ORPHAN, "orphan"),
        (Flags::FORWARD_PARENT, "forwardParent"),
        (Flags::SELF_PARENT, "selfParent"),
        (Flags::CYCLE, "cycle"),
        (Flags::DUPLICATE_ID, "duplicateId"),
        (Flags::RECOVERED, "recovered"),
        (Flags::INVALID_UTF8, "invalidUtf8"),
    ];

    pub const fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }
    pub fn set(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }
    pub fn clear(&mut self, flag: Flags) {
        self.0 &= !flag.0;
    }
    #[must_use]
    pub const fn with(self, flag: Flags) -> Flags {
        Flags(self.0 | flag.0)
    }
    /// The names of the flags that clients see.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .iter()
            .filter(move |(flag, _)| self.has(*flag))
            .map(|(_, name)| *name)
    }
}
