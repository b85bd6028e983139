//! The kind of a file, and its status, which shows whether it has changed.

/// Identifies a file by device and inode, whatever its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// The status of a file, checked before each use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    pub identity: Identity,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last modification: seconds and nanoseconds of Unix time.
    pub modified: (i64, i64),
    /// The time of the last change of content or metadata: seconds and nanoseconds of Unix time. Programs can
    /// set back the modification time of an edited file, but not this time.
    pub changed: (i64, i64),
}

/// The kind of a file, as a listing gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Folder,
    /// A link, a device, a pipe or a socket.
    Other,
    /// The listing does not report the kind.
    Unknown,
}
