//! Colours and emphasis by meaning. Without colour, emphasis alone makes the differences visible.
//!
//! Colours come from the terminal's palette, which the user has chosen; dark and light backgrounds use
//! different ones. Faint text is dimmed instead of grey, because in some palettes grey is the background.

use crate::model::rows::RowStyle;
use ratatui::style::{Color, Modifier, Style};

/// The background of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// Ask the terminal.
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
    pub accent: Style,
    pub success: Style,
    pub warning: Style,
    pub summary: Style,
    pub compaction: Style,
    pub label: Style,
    pub active: Style,
    pub mark: Style,
    /// The text that a search matched.
    pub found: Style,
    pub selected: Style,
    pub unfocused: Style,
    pub heading: Style,
    pub code: Style,
    pub key: Style,
    pub border: Style,
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
        })
    }

    /// Uses only colours that are dark in every palette: green, cyan and yellow are too pale on white in many
    /// terminals, and the bright colours in most.
    pub fn light() -> Self {
        Self::of(Palette {
            accent: Color::Blue,
            label: Color::Red,
            summary: Color::Magenta,
            good: Color::Blue,
            error: Color::Red,
            code: Color::Blue,
        })
    }

    /// For `NO_COLOR` and for terminals without colours.
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
            accent: none.add_modifier(Modifier::ITALIC),
            success: none,
            warning: bold,
            summary: none.add_modifier(Modifier::ITALIC),
            compaction: none.add_modifier(Modifier::ITALIC),
            label: none.add_modifier(Modifier::UNDERLINED),
            active: bold,
            mark: bold,
            found: bold.add_modifier(Modifier::UNDERLINED),
            selected: none.add_modifier(Modifier::REVERSED),
            unfocused: none.add_modifier(Modifier::UNDERLINED),
            heading: bold,
            code: none,
            key: bold,
            border: dim,
        }
    }

    /// Returns the style of a custom message.
    pub fn row(&self, style: RowStyle) -> Style {
        match style {
            RowStyle::Accent => self.accent,
            RowStyle::Success => self.success,
            RowStyle::Warning => self.warning,
            RowStyle::Error => self.error,
            RowStyle::Dim => self.dim,
        }
    }

    /// Returns all styles.
    pub fn styles(&self) -> [Style; 22] {
        [
            self.text,
            self.dim,
            self.guide,
            self.user,
            self.assistant,
            self.tool,
            self.error,
            self.accent,
            self.success,
            self.warning,
            self.summary,
            self.compaction,
            self.label,
            self.active,
            self.mark,
            self.found,
            self.selected,
            self.unfocused,
            self.heading,
            self.code,
            self.key,
            self.border,
        ]
    }

    fn of(palette: Palette) -> Self {
        let plain = Self::plain();
        let none = Style::new();
        let bold = none.add_modifier(Modifier::BOLD);
        Self {
            user: bold.fg(palette.accent),
            error: none.fg(palette.error),
            accent: none.fg(palette.accent),
            success: none.fg(palette.good),
            warning: none.fg(palette.label),
            summary: none.fg(palette.summary),
            compaction: none.fg(palette.summary),
            label: none.fg(palette.label),
            active: bold.fg(palette.good),
            mark: bold.fg(palette.label),
            found: bold.fg(palette.label).add_modifier(Modifier::UNDERLINED),
            heading: bold.fg(palette.accent),
            code: none.fg(palette.code),
            key: bold.fg(palette.accent),
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
}
