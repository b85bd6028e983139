//! The terminal: it is set up at the start, and restored at the end.
//!
//! The terminal is also restored after an error, before the message of a panic is written, and after a signal, which
//! the event loop receives. No other module writes to the terminal.

use crate::theme::{Background, Theme, ThemeName};
use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use std::io::{self, BufRead, Stdout, Write, stdout};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether the terminal is set up. This makes sure that it is restored once only.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is set up.
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
}

impl Terminal {
    /// Sets up the terminal: raw mode, alternate screen, reports of mouse and paste.
    pub fn take(mouse: bool) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enter(mouse)?;
        let inner = ratatui::Terminal::new(CrosstermBackend::new(stdout()));
        if inner.is_err() {
            restore();
        }
        Ok(Self {
            inner: inner?,
            mouse,
        })
    }

    /// Returns the size in columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.inner.size()?;
        Ok((size.width, size.height))
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame)) -> io::Result<()> {
        self.inner.draw(draw).map(drop)
    }

    /// Copies `text` into the clipboard (OSC 52). The text is sent in base64, so the terminal does not obey escape
    /// sequences in it.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(stdout(), CopyToClipboard::to_clipboard_from(text))
    }

    /// Suspends the program, like Ctrl+Z in other programs. Returns when the shell continues the program.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        stop();
        enter(self.mouse)?;
        self.inner.clear()
    }
}

impl Terminal {
    /// Gives the terminal to a program until it ends. If the program fails, the user can read its last lines before the
    /// screen comes back. The error says how the program ended.
    pub fn run(&mut self, argv: &[String]) -> io::Result<Result<(), String>> {
        let Some((program, arguments)) = argv.split_first() else {
            return Ok(Ok(()));
        };
        restore();
        let ended = match Command::new(program).args(arguments).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("has ended with {status}")),
            Err(error) => Err(format!("cannot start: {error}")),
        };
        if let Err(why) = &ended {
            let program = crate::text::line(program);
            writeln!(stdout(), "\n{program} {why}.\nEnter goes back to the tree.")?;
            io::stdin().lock().read_line(&mut String::new())?;
        }
        enter(self.mouse)?;
        // The new terminal value does not know what is on the screen, so the screen is cleared. It is cleared directly,
        // because clearing through the value would request the position of the cursor, and nothing reads the answer
        // here.
        execute!(stdout(), Clear(ClearType::All))?;
        self.inner = ratatui::Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(ended)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
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
        restore();
    }
    entered
}

/// Restores the terminal. Errors are ignored, since nothing can be done about them during a panic.
fn restore() {
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

/// Returns the theme for this terminal. If the background is not configured, asks the terminal for it.
pub fn theme(name: ThemeName, background: Background) -> Theme {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var("TERM").is_ok_and(|term| term == "dumb")
    {
        return Theme::plain();
    }
    let is_light = match (name, background) {
        (ThemeName::Dark, _) | (_, Background::Dark) => false,
        (ThemeName::Light, _) | (_, Background::Light) => true,
        (ThemeName::Plain, Background::Auto) => false,
        (_, Background::Auto) => looks_light(),
    };
    let name = match name {
        ThemeName::Auto if has_few_colours() => ThemeName::Terminal,
        name => name,
    };
    Theme::named(name, is_light)
}

/// Returns whether the terminal has only the colours of its palette.
fn has_few_colours() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    let begins = ["linux", "vt", "ansi", "cons", "sun"];
    term.ends_with("-16color") || begins.iter().any(|name| term.starts_with(name))
}

fn looks_light() -> bool {
    let mut options = terminal_colorsaurus::QueryOptions::default();
    options.timeout = Duration::from_millis(200);
    match terminal_colorsaurus::theme_mode(options) {
        Ok(mode) => mode == terminal_colorsaurus::ThemeMode::Light,
        // Some terminals do not answer, but set this variable to "foreground;background".
        Err(_) => std::env::var("COLORFGBG")
            .is_ok_and(|colours| matches!(colours.rsplit(';').next(), Some("7" | "15"))),
    }
}
