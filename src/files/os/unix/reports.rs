//! Reports of changes in folders, made by any process on this machine. A report is available as soon as the change is
//! made: the kernel queues it during the call that changes the file.

use super::folder::Folder;
#[cfg(all(target_os = "linux", not(feature = "simulation")))]
use super::stat::is_of_this_machine;
use std::ffi::OsString;
use std::io;

/// The number that identifies a watched folder.
pub type WatchNumber = i32;

/// The kind of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// A name was added, removed or renamed, or its file was changed.
    File,
    /// A folder was made with this name, or was renamed to it.
    NewFolder,
    /// A folder with this name was removed or renamed, or its permissions changed.
    OldFolder,
}

/// A change of one name in a watched folder.
#[derive(Debug)]
pub struct Report {
    pub folder: WatchNumber,
    pub name: OsString,
    pub kind: ReportKind,
}

#[cfg(all(target_os = "linux", not(feature = "simulation")))]
pub use inotify::Reports;
#[cfg(any(not(target_os = "linux"), feature = "simulation"))]
pub use none::Reports;

#[cfg(all(target_os = "linux", not(feature = "simulation")))]
mod inotify {
    use super::{Folder, Report, ReportKind, WatchNumber, io, is_of_this_machine};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;

    /// The number of bytes of reports that are read at a time.
    const CHUNK: usize = 16 << 10;
    /// The most reports that one call reads. A queue holds fewer reports by default. So the call ends even if a program
    /// writes faster than its reports are read.
    const MOST_REPORTS: usize = 1 << 16;

    const CHANGES: WatchFlags = WatchFlags::MODIFY
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CREATE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MOVED_FROM)
        .union(WatchFlags::MOVED_TO)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR);

    /// The queue of reports about several folders.
    #[derive(Debug)]
    pub struct Reports(OwnedFd);

    impl Reports {
        /// Makes a queue. Fails if the user has no more queues of reports; fails with `Unsupported` on platforms
        /// without reports.
        pub fn start() -> io::Result<Self> {
            let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
            Ok(Self(inotify::init(flags)?))
        }

        /// Adds a folder: its changes are reported from this call on. Fails with `Unsupported` on a file system whose
        /// files other machines may change.
        pub fn add(&self, folder: &Folder) -> io::Result<WatchNumber> {
            let folder = folder.descriptor()?;
            if !is_of_this_machine(&*folder) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            // `path` leads to the open folder itself, even if the folder was moved and another folder has its old path.
            let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
            Ok(inotify::add_watch(&self.0, path, CHANGES)?)
        }

        /// Passes the reports since the last call to `each`. Returns false if reports were lost, or if a watched folder
        /// is gone. Then all folders must be read again, with a new queue.
        pub fn take(&mut self, mut each: impl FnMut(Report)) -> bool {
            let mut buffer = [MaybeUninit::uninit(); CHUNK];
            let mut reader = Reader::new(&self.0, &mut buffer);
            let broken = ReadFlags::QUEUE_OVERFLOW
                | ReadFlags::UNMOUNT
                | ReadFlags::IGNORED
                | ReadFlags::DELETE_SELF
                | ReadFlags::MOVE_SELF;
            for _ in 0..MOST_REPORTS {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => return true,
                    Err(Errno::INTR) => continue,
                    Err(_) => return false,
                };
                let flags = event.events();
                if flags.intersects(broken) {
                    return false;
                }
                // A report without a name says that the permissions of the folder itself changed.
                let Some(name) = event.file_name() else {
                    return false;
                };
                let is_new = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
                let kind = match flags.contains(ReadFlags::ISDIR) {
                    true if is_new => ReportKind::NewFolder,
                    true => ReportKind::OldFolder,
                    false => ReportKind::File,
                };
                each(Report {
                    folder: event.wd(),
                    name: OsStr::from_bytes(name.to_bytes()).to_owned(),
                    kind,
                });
            }
            false
        }
    }
}

#[cfg(any(not(target_os = "linux"), feature = "simulation"))]
mod none {
    use super::{Folder, Report, WatchNumber, io};

    /// On this platform changes are reported late, so this queue has no reports.
    #[derive(Debug)]
    pub struct Reports(());

    impl Reports {
        pub fn start() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn add(&self, _folder: &Folder) -> io::Result<WatchNumber> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn take(&mut self, _each: impl FnMut(Report)) -> bool {
            false
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Arc;

    fn names(reports: &mut Reports) -> Vec<(String, ReportKind)> {
        let mut names = Vec::new();
        assert!(reports.take(|report| {
            names.push((report.name.to_string_lossy().into_owned(), report.kind));
        }));
        names.dedup();
        names
    }

    #[test]
    fn a_report_is_there_with_the_change() {
        let made = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open_to_stay(made.path()).unwrap());
        let mut reports = Reports::start().unwrap();
        reports.add(&folder).unwrap();
        let file = |name: &str| (name.to_owned(), ReportKind::File);
        fs::write(made.path().join("a"), "1").unwrap();
        assert_eq!(names(&mut reports), [file("a")]);
        assert_eq!(names(&mut reports), []);
        fs::rename(made.path().join("a"), made.path().join("b")).unwrap();
        assert_eq!(names(&mut reports), [file("a"), file("b")]);
        fs::remove_file(made.path().join("b")).unwrap();
        assert_eq!(names(&mut reports), [file("b")]);
        fs::create_dir(made.path().join("c")).unwrap();
        assert_eq!(
            names(&mut reports),
            [("c".to_owned(), ReportKind::NewFolder)]
        );
        fs::remove_dir(made.path().join("c")).unwrap();
        assert_eq!(
            names(&mut reports),
            [("c".to_owned(), ReportKind::OldFolder)]
        );
        // A process has the folder open, so the system does not report its removal.
        let identity = folder.identity().unwrap();
        assert!(folder.is_still(identity));
        fs::remove_dir(made.path()).unwrap();
        assert!(!folder.is_still(identity));
    }
}
