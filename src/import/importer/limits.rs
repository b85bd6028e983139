//! The limits on one source (protocol.md §3.17).

/// The kind of the failure of a source that exceeds a limit.
pub(crate) const TOO_LARGE: &str = "importTooLarge";

/// The limits on one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes to which a compressed file may be decompressed, or to which a session of a database or folder
    /// may be extracted. A source may always have this many.
    pub bytes: u64,
    /// A source may also have this many bytes for each of its bytes on the disk, if that is more than `bytes`.
    pub times: u64,
    /// The most records, counted together with places that are not records.
    pub records: u64,
    pub entries: u64,
    pub sessions: u64,
    /// The most bytes of one value of a database, or of one file in a folder.
    pub value: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            times: 100,
            records: 500_000,
            entries: 250_000,
            sessions: 10_000,
            value: 64 << 20,
        }
    }
}

impl Limits {
    /// No source exceeds these limits.
    pub const NONE: Self = Self {
        bytes: u64::MAX,
        times: u64::MAX,
        records: u64::MAX,
        entries: u64::MAX,
        sessions: u64::MAX,
        value: u64::MAX,
    };

    /// The limit that a scan exceeds; `None` if it exceeds none. The source has `made` decompressed or extracted
    /// bytes, `size` bytes on the disk, and `records` records.
    pub(crate) fn exceeded_by_scan(&self, made: u64, size: u64, records: u64) -> Option<String> {
        let most = self.bytes.max(self.times.saturating_mul(size));
        if made > most {
            return Some(format!("it unpacks to more than {most} bytes of {size}"));
        }
        (records > self.records).then(|| format!("it has more than {} records", self.records))
    }

    /// The limit that the conversations of a source exceed; `None` if they exceed none.
    pub(crate) fn exceeded_by_members(&self, entries: u64, sessions: u64) -> Option<String> {
        if entries > self.entries {
            return Some(format!("it unpacks to more than {} entries", self.entries));
        }
        (sessions > self.sessions)
            .then(|| format!("it unpacks to more than {} sessions", self.sessions))
    }
}

/// The message of the failure for a source that exceeds a limit.
pub(crate) fn too_large(limit: &str) -> String {
    format!(
        "{limit}, and nothing of it is imported; if you trust it: treelined import --large PATH"
    )
}
