//! Writes an answer on the thread that made it, if that cannot block. A write to a pipe can.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// The most bytes per write.
pub(crate) const MAX_BYTES: usize = 4096;

/// No output can be written without blocking.
#[derive(Debug)]
pub enum Shortcut {}

impl Shortcut {
    pub fn new(_output: &Arc<File>) -> Option<Self> {
        None
    }

    pub fn write(&self, _bytes: &[u8]) -> io::Result<bool> {
        match *self {}
    }
}
