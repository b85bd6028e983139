//! Colours and emphasis, by their meaning. Without colours, the emphasis alone makes the differences visible.
//!
//! The themes with 256 colours use only the colours that are the same in every terminal. So the contrast of every text
//! is known, and a test computes it. Terminals with fewer colours get the colours of their palette, which the user has
//! chosen.

use crate::markdown::Emphasis;
use crate::message::RowStyle;
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

/// The theme; the background decides about its dark or light form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ThemeName {
    /// 256 colours, or those of the palette if the terminal has fewer.
    #[default]
    Auto,
    /// 256 colours on a dark background.
    Dark,
    /// 256 colours on a light background.
    Light,
    /// A contrast of at least 7:1.
    HighContrast,
    /// 24-bit colours.
    TrueColor,
    /// The 16 colours of the terminal's palette.
    Terminal,
    /// Bold, dim, underlined and reversed text, without colours.
    Plain,
}

/// The styles of everything that is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    pub text: Style,
    pub dim: Style,
    pub guide: Style,
    /// The word before a user message.
    pub user: Style,
    /// The mark before a custom message.
    pub plugin: Style,
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

/// The colours of a theme; `None` stands for the terminal's own colour.
struct Palette {
    assistant: Option<Color>,
    tool: Option<Color>,
    dim: Option<Color>,
    guide: Option<Color>,
    accent: Color,
    label: Color,
    summary: Color,
    good: Color,
    error: Color,
    code: Color,
    /// Text and background of the selected row.
    selected: Option<(Color, Color)>,
}

impl Theme {
    /// Returns a theme, in its form for the background.
    pub fn named(name: ThemeName, is_light: bool) -> Self {
        match name {
            ThemeName::Dark => Self::of(&indexed(false)),
            ThemeName::Light => Self::of(&indexed(true)),
            ThemeName::Auto => Self::of(&indexed(is_light)),
            ThemeName::HighContrast => Self::of(&high_contrast(is_light)),
            ThemeName::TrueColor => Self::of(&true_color(is_light)),
            ThemeName::Terminal => Self::of(&terminal(is_light)),
            ThemeName::Plain => Self::plain(),
        }
    }

    pub fn dark() -> Self {
        Self::named(ThemeName::Dark, false)
    }

    pub fn light() -> Self {
        Self::named(ThemeName::Light, true)
    }

    /// Returns the theme for `NO_COLOR`, and for terminals without colours.
    pub fn plain() -> Self {
        let none = Style::new();
        let bold = none.add_modifier(Modifier::BOLD);
        let dim = none.add_modifier(Modifier::DIM);
        Self {
            text: none,
            dim,
            guide: dim,
            user: bold,
            plugin: bold,
            assistant: none,
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

    /// Returns the style of a part of Markdown whose text has the style `base`.
    pub fn emphasis(&self, base: Style, emphasis: Emphasis) -> Style {
        let mut style = base;
        if emphasis.code {
            style = style.patch(self.code);
        }
        if emphasis.link {
            style = style.patch(self.accent).add_modifier(Modifier::UNDERLINED);
        }
        for (is, modifier) in [
            (emphasis.strong, Modifier::BOLD),
            (emphasis.slanted, Modifier::ITALIC),
            (emphasis.struck, Modifier::CROSSED_OUT),
        ] {
            if is {
                style = style.add_modifier(modifier);
            }
        }
        style
    }

    /// Returns the style of a part of the selected row. The shades of text become one shade, since they would be
    /// too dim on the selection. Colours with a meaning stay, if the theme has a background for them.
    pub fn on_selection(&self, style: Style, selection: Style) -> Style {
        let kept = Style::new()
            .add_modifier(style.add_modifier)
            .remove_modifier(Modifier::DIM)
            .patch(selection);
        let shades = [self.text, self.assistant, self.tool, self.dim, self.guide];
        let is_shade = shades.iter().any(|shade| shade.fg == style.fg);
        match style.fg {
            Some(colour) if selection.bg.is_some() && !is_shade => kept.fg(colour),
            _ => kept,
        }
    }

    /// Returns the styles of all texts. The styles of lines and of the selected row are not included.
    pub fn texts(&self) -> [Style; 19] {
        [
            self.text,
            self.dim,
            self.user,
            self.plugin,
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
            self.heading,
            self.code,
            self.key,
        ]
    }

    fn of(palette: &Palette) -> Self {
        let plain = Self::plain();
        let none = Style::new();
        let bold = none.add_modifier(Modifier::BOLD);
        let shade = |colour: Option<Color>, style: Style| match colour {
            Some(colour) => none.fg(colour),
            None => style,
        };
        let guide = shade(palette.guide, plain.guide);
        let selected = match palette.selected {
            Some((text, background)) => none.fg(text).bg(background),
            None => plain.selected,
        };
        Self {
            dim: shade(palette.dim, plain.dim),
            guide,
            border: guide,
            user: bold.fg(palette.accent),
            plugin: bold.fg(palette.summary),
            assistant: shade(palette.assistant, plain.assistant),
            tool: shade(palette.tool, plain.tool),
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
            selected,
            heading: bold.fg(palette.accent),
            code: none.fg(palette.code),
            key: bold.fg(palette.accent),
            ..plain
        }
    }
}

/// The colours of a theme from the fixed part of the 256 colours.
fn indexed(is_light: bool) -> Palette {
    let pick = |dark, light| Color::Indexed(if is_light { light } else { dark });
    Palette {
        assistant: Some(pick(250, 239)),
        tool: Some(pick(246, 242)),
        dim: Some(pick(246, 242)),
        guide: Some(pick(241, 249)),
        accent: pick(81, 25),
        label: pick(221, 58),
        summary: pick(183, 90),
        good: pick(114, 22),
        error: pick(217, 124),
        code: pick(180, 24),
        selected: Some((pick(255, 232), pick(237, 254))),
    }
}

fn high_contrast(is_light: bool) -> Palette {
    let pick = |dark, light| Color::Indexed(if is_light { light } else { dark });
    Palette {
        assistant: Some(pick(253, 235)),
        tool: Some(pick(250, 237)),
        dim: Some(pick(250, 237)),
        guide: Some(pick(246, 242)),
        accent: pick(123, 18),
        label: pick(228, 52),
        summary: pick(225, 53),
        good: pick(120, 22),
        error: pick(224, 88),
        code: pick(223, 17),
        selected: Some((pick(231, 16), pick(18, 195))),
    }
}

fn true_color(is_light: bool) -> Palette {
    let pick = |dark: u32, light: u32| Color::from_u32(if is_light { light } else { dark });
    Palette {
        assistant: Some(pick(0xb4_bad0, 0x44_4a60)),
        tool: Some(pick(0x96_9eb8, 0x62_6880)),
        dim: Some(pick(0x96_9eb8, 0x62_6880)),
        guide: Some(pick(0x56_5f89, 0xa8_aecb)),
        accent: pick(0x7d_cfff, 0x00_6a83),
        label: pick(0xe0_af68, 0x7a_4f00),
        summary: pick(0xc7_a9ff, 0x78_47bd),
        good: pick(0x9e_ce6a, 0x3f_6212),
        error: pick(0xff_9eb0, 0xb3_153b),
        code: pick(0xff_b787, 0x8a_3b12),
        selected: Some((pick(0xff_ffff, 0x10_1018), pick(0x2e_3450, 0xe3_e7f5))),
    }
}

/// The colours of a theme from the terminal's palette. In many palettes green, cyan, yellow and most bright colours
/// are too pale on white, and blue is too dark on black.
fn terminal(is_light: bool) -> Palette {
    let pick = |dark, light| if is_light { light } else { dark };
    Palette {
        assistant: None,
        tool: None,
        dim: None,
        guide: None,
        accent: pick(Color::Cyan, Color::Blue),
        label: pick(Color::Yellow, Color::Red),
        summary: Color::Magenta,
        good: pick(Color::Green, Color::Blue),
        error: pick(Color::LightRed, Color::Red),
        code: pick(Color::LightBlue, Color::Blue),
        selected: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Common backgrounds of terminals.
    const DARK: [u32; 3] = [0x00_0000, 0x1e_1e1e, 0x28_2a36];
    const LIGHT: [u32; 3] = [0xff_ffff, 0xfa_fafa, 0xfd_f6e3];

    /// Returns red, green and blue of a colour that is the same in every terminal.
    fn rgb(colour: Color) -> [u8; 3] {
        match colour {
            Color::Rgb(red, green, blue) => [red, green, blue],
            Color::Indexed(at @ 232..) => [8 + 10 * (at - 232); 3],
            Color::Indexed(at @ 16..) => {
                let part = |by: u8| match (at - 16) / by % 6 {
                    0 => 0,
                    level => 55 + 40 * level,
                };
                [part(36), part(6), part(1)]
            }
            colour => panic!("{colour} differs between terminals"),
        }
    }

    /// Relative luminance, as WCAG 2 defines it.
    fn luminance(colour: [u8; 3]) -> f64 {
        let linear = colour.map(|part| {
            let part = f64::from(part) / 255.0;
            match part <= 0.04045 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn background(hex: u32) -> [u8; 3] {
        rgb(Color::from_u32(hex))
    }

    const COMPUTED: [(ThemeName, f64); 3] = [
        (ThemeName::Auto, 4.5),
        (ThemeName::HighContrast, 7.0),
        (ThemeName::TrueColor, 4.5),
    ];

    #[test]
    fn every_text_has_enough_contrast() {
        for (name, least) in COMPUTED {
            for (is_light, backgrounds) in [(false, DARK), (true, LIGHT)] {
                let theme = Theme::named(name, is_light);
                for style in theme.texts() {
                    let Some(colour) = style.fg else {
                        // The terminal's own.
                        continue;
                    };
                    for hex in backgrounds {
                        let found = contrast(rgb(colour), background(hex));
                        assert!(
                            found >= least,
                            "{name:?}, light: {is_light}: {colour} on {hex:06x} has {found:.2}"
                        );
                    }
                }
            }
        }
    }

    /// The selected row keeps the colours with a meaning.
    #[test]
    fn every_text_has_enough_contrast_in_the_selected_row() {
        for (name, least) in COMPUTED {
            for is_light in [false, true] {
                let theme = Theme::named(name, is_light);
                for style in theme.texts() {
                    let style = theme.on_selection(style, theme.selected);
                    let (text, behind) = (style.fg.unwrap(), style.bg.unwrap());
                    let found = contrast(rgb(text), rgb(behind));
                    assert!(
                        found >= least,
                        "{name:?}, light: {is_light}: {text} on {behind} has {found:.2}"
                    );
                }
            }
        }
    }

    #[test]
    fn messages_are_shaded_by_their_role() {
        for (name, _) in COMPUTED {
            for (is_light, hex) in [(false, DARK[0]), (true, LIGHT[0])] {
                let theme = Theme::named(name, is_light);
                assert_eq!(theme.text.fg, None, "the terminal's normal colour");
                let of = |style: Style| contrast(rgb(style.fg.unwrap()), background(hex));
                let (assistant, tool) = (of(theme.assistant), of(theme.tool));
                assert!(
                    assistant < 17.0 && tool + 1.0 < assistant,
                    "{assistant} {tool}"
                );
            }
        }
    }
}
