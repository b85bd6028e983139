//! The daemon for tests with the real program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns `TREELINED_BIN`, else the daemon in the target directory, built if it is missing.
pub fn daemon() -> PathBuf {
    if let Some(program) = std::env::var_os("TREELINED_BIN") {
        return program.into();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_treelined-tui")).with_file_name("treelined");
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", "treelined", "--bin", "treelined"]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().unwrap().success(), "the daemon can be built");
    }
    program
}
