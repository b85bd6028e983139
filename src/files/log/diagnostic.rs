//! Damage found in a session file (session-file.md §2). Opening reports it and never repairs it.

/// The kind of damage, by its name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Damage {
    /// The file ends inside a line.
    TornTail,
    InvalidJson,
    /// The line is JSON but not an entry: it is not an object, or has no `type` or no `id`.
    NotAnObject,
    /// The entry is kept; it is read with U+FFFD in place of invalid bytes.
    InvalidUtf8,
    NulBytes,
    /// The line has several objects, and all of them are recovered.
    GluedLines,
    DuplicateId,
    OrphanParent,
    ForwardParent,
    SelfParent,
    Cycle,
    SecondHeader,
    MissingTrailingNewline,
    OversizedLine,
    /// A sync failed after the appends were answered (`interval`, session-file.md §3).
    DurabilityUnknown,
}

impl Damage {
    const ALL: [Damage; 15] = [
        Damage::TornTail,
        Damage::InvalidJson,
        Damage::NotAnObject,
        Damage::InvalidUtf8,
        Damage::NulBytes,
        Damage::GluedLines,
        Damage::DuplicateId,
        Damage::OrphanParent,
        Damage::ForwardParent,
        Damage::SelfParent,
        Damage::Cycle,
        Damage::SecondHeader,
        Damage::MissingTrailingNewline,
        Damage::OversizedLine,
        Damage::DurabilityUnknown,
    ];

    /// The kind with this number (`damage as u8`). Another order of the kinds changes the format of
    /// the side index.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Damage::TornTail => "tornTail",
            Damage::InvalidJson => "invalidJson",
            Damage::NotAnObject => "notAnObject",
            Damage::InvalidUtf8 => "invalidUtf8",
            Damage::NulBytes => "nulBytes",
            Damage::GluedLines => "gluedLines",
            Damage::DuplicateId => "duplicateId",
            Damage::OrphanParent => "orphanParent",
            Damage::ForwardParent => "forwardParent",
            Damage::SelfParent => "selfParent",
            Damage::Cycle => "cycle",
            Damage::SecondHeader => "secondHeader",
            Damage::MissingTrailingNewline => "missingTrailingNewline",
            Damage::OversizedLine => "oversizedLine",
            Damage::DurabilityUnknown => "durabilityUnknown",
        }
    }
}

/// One finding and its position in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagnostic {
    pub damage: Damage,
    /// The number of the line, counted from 1.
    pub line: u64,
    /// The offset in bytes from the start of the file.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}
