//! The kind of a file, and how it has changed.

/// Identifies a file by device and inode, under any name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// The status of a file, checked before each use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    pub identity: Identity,
    /// Bytes.
    pub size: u64,
    /// Last modification: seconds and nanoseconds of Unix time.
    pub modified: (i64, i64),
    /// Last change of content or metadata: an edited file can be given its old modification time again, but not
    /// this one.
    pub changed: (i64, i64),
}

/// The kind of a file, as a listing gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Folder,
    /// A link, a device, a pipe or a socket.
    Other,
    /// The file system does not report it in the list.
    Unknown,
}
