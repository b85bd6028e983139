//! Colours and emphasis, by meaning. Without colour, emphasis alone carries it.
//!
//! Colours are those of the terminal's own palette, which its owner has chosen; dark and light
//! backgrounds take different ones of them.

use ratatui::style::{Color, Modifier, Style};

/// What is behind the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// The terminal is asked.
    Auto,
    Dark,
    Light,
}

/// The styles of everything that is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    pub text: Style,
    pub dim: Style,
    pub guide: Style,
    pub user: Style,
    pub assistant: Style,
    pub tool: Style,
    pub error: Style,
    pub summary: Style,
    pub compaction: Style,
    pub label: Style,
    pub active: Style,
    pub mark: Style,
    pub selected: Style,
    pub unfocused: Style,
    pub heading: Style,
    pub code: Style,
    pub key: Style,
    pub bar: Style,
    pub border: Style,
    pub good: Style,
}

impl Theme {
    pub fn dark() -> Self {
        Self::of(Palette {
            accent: Color::Cyan,
            label: Color::Yellow,
            summary: Color::Magenta,
            good: Color::Green,
            error: Color::LightRed,
            code: Color::LightBlue,
            faint: Color::DarkGray,
        })
    }

    pub fn light() -> Self {
        Self::of(Palette {
            accent: Color::Blue,
            label: Color::Red,
            summary: Color::Magenta,
            good: Color::Green,
            error: Color::Red,
            code: Color::Blue,
            faint: Color::DarkGray,
        })
    }

    /// For `NO_COLOR` and terminals without.
    pub fn plain() -> Self {
        let none = Style::new();
        let bold = none.add_modifier(Modifier::BOLD);
        let dim = none.add_modifier(Modifier::DIM);
        Self {
            text: none,
            dim,
            guide: dim,
            user: bold,
            assistant: dim,
            tool: dim,
            error: bold,
            summary: none.add_modifier(Modifier::ITALIC),
            compaction: none.add_modifier(Modifier::ITALIC),
            label: none.add_modifier(Modifier::UNDERLINED),
            active: bold,
            mark: bold,
            selected: none.add_modifier(Modifier::REVERSED),
            unfocused: none.add_modifier(Modifier::UNDERLINED),
            heading: bold,
            code: none,
            key: bold,
            bar: none.add_modifier(Modifier::REVERSED),
            border: dim,
            good: none,
        }
    }

    fn of(palette: Palette) -> Self {
        let plain = Self::plain();
        let none = Style::new();
        let bold = none.add_modifier(Modifier::BOLD);
        Self {
            guide: none.fg(palette.faint),
            user: bold.fg(palette.accent),
            tool: none.fg(palette.faint),
            error: none.fg(palette.error),
            summary: none.fg(palette.summary),
            compaction: none.fg(palette.summary),
            label: none.fg(palette.label),
            active: bold.fg(palette.good),
            mark: bold.fg(palette.label),
            heading: bold.fg(palette.accent),
            code: none.fg(palette.code),
            key: bold.fg(palette.accent),
            border: none.fg(palette.faint),
            good: none.fg(palette.good),
            ..plain
        }
    }
}

struct Palette {
    accent: Color,
    label: Color,
    summary: Color,
    good: Color,
    error: Color,
    code: Color,
    faint: Color,
}
