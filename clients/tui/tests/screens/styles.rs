//! Colours and emphasis: dark, light, none.

use crate::harness::Screen;
use crate::tree::tour;
use ratatui::style::Color;
use treelined_tui::theme::Theme;

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

/// On white, green and the bright colours are too pale to read in many palettes.
#[test]
fn the_light_theme_uses_only_dark_palette_colours() {
    let light = [Color::Reset, Color::Red, Color::Blue, Color::Magenta];
    for style in Theme::light().styles() {
        let colour = style.fg.unwrap_or(Color::Reset);
        assert!(light.contains(&colour), "{colour}");
        assert_eq!(style.bg, None);
    }
    for style in Theme::dark().styles() {
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
    for colour in ["cyan", "red", "green", "blue", "magenta", "yellow", "gray"] {
        assert!(!styled.contains(colour), "{colour}");
    }
    assert!(styled.contains("{bold}") && styled.contains("{reversed}"));
}
