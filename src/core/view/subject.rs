//! The facts of an entry before its body is read.

use crate::entry::{Kind, Role};
use crate::tree::Flags;

/// The facts of an entry that are known before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub kind: Kind,
    pub role: Role,
    pub flags: Flags,
    /// Whether to read the calls of an assistant message, for the rows of their results.
    pub calls: bool,
}

impl Subject {
    /// Whether the entry is a message. Its members are in `message`.
    pub fn is_message(self) -> bool {
        self.kind == Kind::Message
    }

    /// Whether the entry has a custom type.
    pub fn is_custom(self) -> bool {
        match self.kind {
            Kind::Custom | Kind::CustomMessage => true,
            Kind::Message => self.role == Role::Custom,
            _ => false,
        }
    }

    /// Whether the entry is a custom message that is shown to the user.
    pub fn is_displayed_custom_message(self) -> bool {
        self.is_custom() && self.kind != Kind::Custom && !self.flags.has(Flags::HIDDEN)
    }
}
