//! The terminal: taken over, and given back whatever happens.
//!
//! Given back at the end, on every error, on a panic (before its message is written) and on signals, which
//! the loop hears. Nothing else of the program writes to it.

use crate::theme::{Background, Theme};
use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether the terminal is ours, so that it is given back once.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
}

impl Terminal {
    /// Takes it over.
    pub fn take(mouse: bool) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        enter(mouse)?;
        let inner = ratatui::Terminal::new(CrosstermBackend::new(stdout()));
        if inner.is_err() {
            give_back();
        }
        Ok(Self {
            inner: inner?,
            mouse,
        })
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.inner.size()?;
        Ok((size.width, size.height))
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame)) -> io::Result<()> {
        self.inner.draw(draw).map(drop)
    }

    /// Puts `text` into the clipboard (OSC 52), base64, so nothing of it is obeyed.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(stdout(), CopyToClipboard::to_clipboard_from(text))
    }

    /// Stops the program as Ctrl+Z does elsewhere; comes back when the shell lets it.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        stop();
        enter(self.mouse)?;
        self.inner.clear()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    let entered = (|| {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        if mouse {
            execute!(stdout(), EnableMouseCapture)?;
        }
        Ok(())
    })();
    if entered.is_err() {
        give_back();
    }
    entered
}

/// Undoes everything. On its way out of a panic nothing can be done about errors.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _screen = execute!(
        stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        crossterm::cursor::Show
    );
    let _mode = disable_raw_mode();
    let _flushed = stdout().flush();
}

fn stop() {
    let _sent = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}

/// The theme for this terminal. It is asked for its background only where nobody says it.
pub fn theme(background: Background) -> Theme {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var("TERM").is_ok_and(|term| term == "dumb")
    {
        return Theme::plain();
    }
    let is_light = match background {
        Background::Dark => false,
        Background::Light => true,
        Background::Auto => looks_light(),
    };
    if is_light {
        Theme::light()
    } else {
        Theme::dark()
    }
}

fn looks_light() -> bool {
    let mut options = terminal_colorsaurus::QueryOptions::default();
    options.timeout = Duration::from_millis(200);
    match terminal_colorsaurus::theme_mode(options) {
        Ok(mode) => mode == terminal_colorsaurus::ThemeMode::Light,
        // Some that do not answer say it in the environment: "foreground;background".
        Err(_) => std::env::var("COLORFGBG")
            .is_ok_and(|colours| matches!(colours.rsplit(';').next(), Some("7" | "15"))),
    }
}
