//! Access to the operating system: files opened safely, temporary files, a bounded number of open descriptors,
//! other processes and programs.

pub mod file;
pub mod handle;
pub mod process;
pub mod program;
pub mod temporary;
