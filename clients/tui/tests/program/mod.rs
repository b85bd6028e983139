//! The daemon that tests of the real thing run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `TREELINED_BIN`, else what cargo has built beside the program, built now if it is not there.
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
