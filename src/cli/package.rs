//! `treelined tui`, `acp`, `mcp`, `setup` and `files`: run programs of other packages, which are installed beside this
//! one.

use super::failure::{FAILED, ShellError};
use super::options::{CONFIG_VARIABLE, Options};
use anyhow::Context;
use clap::Args;
use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};
use treelined_files::os::process;

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

/// The path of a program: beside this program, or else on the `PATH`.
pub(super) fn program_beside(name: &str) -> anyhow::Result<OsString> {
    let own = std::env::current_exe().context("find this program")?;
    let beside = own.with_file_name(name);
    Ok(match beside.is_file() {
        true => beside.into_os_string(),
        false => name.into(),
    })
}

/// Replaces this process with the program `name`, which is beside this program or else on the `PATH`. The new program
/// uses this program as its daemon, with the same configuration file.
pub(super) fn run(options: &Options, name: &str, args: &PackageArgs) -> anyhow::Result<ExitCode> {
    become_program(options, name, as_typed(&args.arguments))
}

/// Replaces this process with the MCP server. If the server is not installed, the hook of an agent (`--recall`) does
/// not fail, since the agent cannot install the server.
pub(super) fn mcp(options: &Options, args: &PackageArgs) -> anyhow::Result<ExitCode> {
    match run(options, "treelined-mcp", args) {
        Err(_) if args.arguments.iter().any(|it| it == "--recall") => Ok(ExitCode::SUCCESS),
        ran => ran,
    }
}

/// Like [`run`], with the arguments `args`.
pub(super) fn become_program<A: AsRef<OsStr>>(
    options: &Options,
    name: &str,
    args: impl IntoIterator<Item = A>,
) -> anyhow::Result<ExitCode> {
    let own = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(program_beside(name)?);
    if let Some(folder) = &options.session_dir {
        command.arg("--session-dir").arg(folder);
    }
    if let Some(file) = &options.config {
        command.env(CONFIG_VARIABLE, std::path::absolute(file)?);
    }
    command.args(args).env("TREELINED_BIN", own);
    let error = process::exec(&mut command);
    let message =
        format!("cannot start {name}, neither beside this program nor on the PATH: {error}");
    let remedy = format!("install the package {name}, which is a separate package");
    Err(ShellError::new(FAILED, message, remedy).into())
}

/// The arguments as the user typed them. The parser has removed a `--` before them, which the program needs, so this
/// function adds the `--` again.
fn as_typed(arguments: &[OsString]) -> Vec<OsString> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let first = typed.len().saturating_sub(arguments.len());
    let before = first.checked_sub(1).and_then(|at| typed.get(at));
    let dashes = before.filter(|before| *before == "--").cloned();
    dashes
        .into_iter()
        .chain(arguments.iter().cloned())
        .collect()
}
