//! The kinds of secrets, and the text between a name and its value.

/// The kinds of secrets that are recognized by the name of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Password,
    Token,
    Key,
    /// The base64 of a user name and a password.
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
    /// The position after the gap.
    pub end: usize,
    /// Whether the value follows `=` without blanks (`password=hunter2`), or follows the name after a blank, as for an
    /// option (`--password hunter2`).
    pub is_tight: bool,
    /// Whether the value follows `=` without blanks, and the name has no lower-case letter: `DB_PASSWORD=hunter`.
    pub is_attached: bool,
    /// Whether there are blanks around `=`.
    pub is_spaced: bool,
    /// Whether the value is the text of an element: `<password>hunter</password>`.
    pub is_element: bool,
    /// Whether the name follows `?`, `&` or `#`, as a parameter of a URL does.
    pub is_of_url: bool,
    /// Whether a value without quotes is ignored.
    pub needs_quotes: bool,
}
