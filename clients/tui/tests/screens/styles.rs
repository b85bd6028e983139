//! Colours and emphasis: dark, light, none.

use crate::harness::Screen;
use crate::harness::row;
use crate::tree::tour;
use ratatui::style::Color;
use treelined_tui::message::{Kind, Row, RowStyle};
use treelined_tui::theme::{Theme, ThemeName};

fn with(theme: Theme) -> Screen {
    let mut screen = Screen::tree(60, 10, tour());
    screen.model.settings.theme = theme;
    screen
}

#[test]
fn dark() {
    with(Theme::dark()).check_styled("styles-dark");
}

#[test]
fn light() {
    with(Theme::light()).check_styled("styles-light");
}

#[test]
fn high_contrast_true_colour_and_the_palette_of_the_terminal() {
    for (name, theme) in [
        ("styles-high-contrast", ThemeName::HighContrast),
        ("styles-true-color", ThemeName::TrueColor),
        ("styles-terminal", ThemeName::Terminal),
    ] {
        with(Theme::named(theme, false)).check_styled(name);
    }
}

/// In many palettes, green and the bright colours are too pale to read on white.
#[test]
fn the_terminals_palette_is_used_where_it_is_readable() {
    let light = [Color::Reset, Color::Red, Color::Blue, Color::Magenta];
    for style in Theme::named(ThemeName::Terminal, true).texts() {
        let colour = style.fg.unwrap_or(Color::Reset);
        assert!(light.contains(&colour), "{colour}");
        assert_eq!(style.bg, None);
    }
    for style in Theme::named(ThemeName::Terminal, false).texts() {
        let colour = style.fg.unwrap_or(Color::Reset);
        assert!(!matches!(colour, Color::Rgb(..) | Color::Indexed(_)));
        // Blue is too dark on black, and in some palettes grey is the background.
        assert!(!matches!(
            colour,
            Color::Blue | Color::Black | Color::DarkGray
        ));
        assert_eq!(style.bg, None);
    }
}

/// With `NO_COLOR`, bold, dim and reversed text show the differences.
#[test]
fn plain() {
    let screen = with(Theme::plain());
    screen.check_styled("styles-plain");
    let styled = screen.styled();
    let styles = styled
        .split('{')
        .filter_map(|part| Some(part.split_once('}')?.0));
    let styles: Vec<&str> = styles.collect();
    for colour in ["cyan", "red", "green", "blue", "magenta", "yellow", "gray"] {
        assert!(
            styles.iter().all(|style| !style.contains(colour)),
            "{colour}"
        );
    }
    assert!(styled.contains("{bold}") && styled.contains("{reversed}"));
}

/// A message with a renderer looks as the renderer says. Without a renderer, a displayed custom message differs from
/// other messages.
#[test]
fn renderers_decide_the_looks_of_custom_messages() {
    let custom = |kind: Kind, icon: Option<&str>, style, preview: &str| Row {
        kind,
        icon: icon.map(Into::into),
        style,
        ..row(preview, "", preview)
    };
    let data = || Kind::Other("custom".into());
    let rows = vec![
        row("q", "", "Why does the build fail?"),
        custom(Kind::Plugin, None, Some(RowStyle::Accent), "CI: started"),
        custom(
            Kind::Plugin,
            Some("☑"),
            Some(RowStyle::Success),
            "2/2 Ship it",
        ),
        custom(data(), Some("☐"), Some(RowStyle::Warning), "1/2 Ship it"),
        custom(data(), None, Some(RowStyle::Error), "CI: 3 tests failed"),
        custom(data(), Some("·"), Some(RowStyle::Dim), "heartbeat"),
        custom(data(), None, None, "state"),
    ];
    for (name, theme) in [
        ("renderers-dark", Theme::dark()),
        ("renderers-plain", Theme::plain()),
    ] {
        let mut screen = Screen::tree(60, 10, rows.clone());
        screen.model.settings.theme = theme;
        screen.check_styled(name);
    }
}
