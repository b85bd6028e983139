//! Access to the operating system: files opened safely, temporary files, a bounded number of open descriptors,
//! other processes and programs.

pub(crate) mod file;
pub(crate) mod handle;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod running;
pub(crate) mod temporary;
