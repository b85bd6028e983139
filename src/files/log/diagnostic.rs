//! Damage found in a session file (session-file.md §2). Opening reports it and never repairs it.

/// The kind of damage, by its name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Damage {
    /// The file ends inside a line.
    TornTail,
    InvalidJson,
    /// JSON, but no entry: not an object, or without a `type` or an `id`.
    NotAnObject,
    /// The entry is kept and read with U+FFFD.
    InvalidUtf8,
    NulBytes,
    /// Several objects on one line; all are recovered.
    GluedLines,
    DuplicateId,
    OrphanParent,
    ForwardParent,
    SelfParent,
    Cycle,
    SecondHeader,
    MissingTrailingNewline,
    OversizedLine,
    /// A sync failed after its appends were answered (`interval`, session-file.md §3).
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

    /// The kind with this number (`as u8`). Reordering the kinds changes the format of the side index.
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
    /// From 1.
    pub line: u64,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}
