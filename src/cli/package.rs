//! `treelined acp` and `treelined mcp`: programs of packages of their own, installed beside this one.

use super::Options;
use crate::os::process;
use anyhow::Context;
use clap::Args;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct PackageArgs {
    /// The arguments of the program; --help shows them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    arguments: Vec<OsString>,
}

/// Becomes the program of this name: the one beside this program, else the one on the `PATH`. It uses this program
/// as its daemon.
pub(super) fn run(options: &Options, name: &str, args: &PackageArgs) -> anyhow::Result<ExitCode> {
    let own = std::env::current_exe().context("find this program")?;
    let beside = own.with_file_name(name);
    let program = match beside.is_file() {
        true => beside.into_os_string(),
        false => name.into(),
    };
    let mut command = Command::new(&program);
    if let Some(folder) = &options.session_dir {
        command.arg("--session-dir").arg(folder);
    }
    command.args(&args.arguments).env("TREELINED_BIN", own);
    Err(process::exec(&mut command)).with_context(|| {
        format!("start {name}, which is a package of its own and neither beside this program nor on the PATH")
    })
}
