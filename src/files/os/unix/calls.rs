//! The calls of the system that reach the files of a store. With the feature `simulation`, calls with the same names
//! reach a simulated disk.

#[cfg(not(feature = "simulation"))]
pub use real::*;
#[cfg(feature = "simulation")]
pub use simulated::*;

#[cfg(not(feature = "simulation"))]
mod real {
    pub(in crate::os) use rustix::fs;
    pub use std::fs::File;
    use std::io;
    pub(in crate::os) use std::os::fd::{AsFd, OwnedFd};
    pub use std::os::unix::fs::FileExt as FileAt;
    use std::path::Path;

    /// Whether there is a folder at this path.
    pub(in crate::os) fn is_folder(path: &Path) -> bool {
        path.is_dir()
    }

    /// Makes a folder (0700) and its missing parents.
    pub(in crate::os) fn make_folders(path: &Path) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(path)
    }
}

#[cfg(feature = "simulation")]
mod simulated {
    pub(in crate::os) use crate::os::simulated::calls as fs;
    pub(in crate::os) use crate::os::simulated::calls::{
        AsFd, File as OwnedFd, is_folder, make_folders,
    };
    pub use crate::os::simulated::calls::{File, FileAt};
}
