//! The part of `treelined doctor` about the configuration and its programs.

use super::failure::ShellError;
use super::options::Options;
use super::screen::{Screen, Style};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::terminal;

/// The problems of the configuration.
pub(super) struct Configuration {
    /// The file that was read.
    path: Option<String>,
    problems: Vec<String>,
    /// The present form of settings with old names.
    hints: Vec<String>,
}

impl Configuration {
    pub(super) fn examine(options: &Options) -> Self {
        let settings = match options.settings() {
            Ok(settings) => settings,
            Err(error) => {
                return Self {
                    path: None,
                    problems: vec![ShellError::of(&error).message],
                    hints: Vec::new(),
                };
            }
        };
        let (path, problems) = settings.complaints();
        Self {
            path: path.map(|path| path.display().to_string()),
            problems: problems.into_iter().map(str::to_owned).collect(),
            hints: settings.hints().map(str::to_owned).collect(),
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Shows the problems and hints, if there are any.
    pub(super) fn show(&self, screen: &mut Screen) -> io::Result<()> {
        if self.is_sound() && self.hints.is_empty() {
            return Ok(());
        }
        let path = self.path.as_deref().unwrap_or("configuration");
        let shown = screen.style(Style::Bold, &terminal::line(path));
        writeln!(screen, "{shown}")?;
        for problem in &self.problems {
            let name = screen.style(Style::Red, "configuration");
            writeln!(screen, "  {name}: {}", terminal::line(problem))?;
        }
        for hint in &self.hints {
            writeln!(screen, "  hint: {}", terminal::line(hint))?;
        }
        writeln!(screen)
    }

    /// Ends a report about the configuration alone.
    pub(super) fn finish(&self, mut screen: Screen) -> anyhow::Result<ExitCode> {
        let file = match &self.path {
            Some(path) => format!(" in {}", terminal::line(path)),
            None => String::new(),
        };
        let (style, text, code) = match self.is_sound() {
            true => (Style::Green, "sound", ExitCode::SUCCESS),
            false => (Style::Red, "wrong", ExitCode::FAILURE),
        };
        let line = screen.style(style, &format!("the configuration{file} is {text}"));
        writeln!(screen, "{line}")?;
        screen.finish()?;
        Ok(code)
    }

    /// The line for `--json`; `None` if there are no problems.
    pub(super) fn line(&self) -> Option<Value> {
        (!self.is_sound())
            .then(|| json!({ "configuration": { "path": self.path, "problems": self.problems } }))
    }
}
