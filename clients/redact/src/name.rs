//! The names that say that a value is secret.

/// The kinds of secrets that a name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Password,
    Token,
    Key,
    /// The base64 of a user and a password.
    Auth,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Token => "token",
            Self::Key => "key",
            Self::Auth => "credentials",
        }
    }
}

/// The text between a name and its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// The place behind it.
    pub end: usize,
    /// Whether the value follows `=` without blanks, or is that of an option: `password=hunter2`.
    pub is_tight: bool,
    /// Whether it is that of a constant too: `DB_PASSWORD=hunter`.
    pub is_attached: bool,
    /// Whether blanks are around a `=`.
    pub is_spaced: bool,
    /// Whether the value is an element: `<password>hunter</password>`.
    pub is_element: bool,
    /// Whether the value must be quoted.
    pub needs_quotes: bool,
}
