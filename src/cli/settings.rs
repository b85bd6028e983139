//! `treelined config`: shows the settings in force.

use super::options::Options;
use super::screen::Screen;
use clap::Args;
use std::io::Write;
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined config                  as a configuration file, with the source of each setting
  treelined config --json | jq -r '.settings[] | select(.source != \"default\") | .key'")]
pub(crate) struct ConfigArgs {
    /// Print `{"file", "settings": [{"section", "key", "value", "source", "problem"}], "problem"}`
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, arguments: &ConfigArgs) -> anyhow::Result<ExitCode> {
    let settings = options.settings()?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&settings.as_json())? + "\n",
        false => settings.describe(),
    };
    let mut screen = Screen::paged(options);
    screen.write_all(text.as_bytes())?;
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}
