//! Colours and emphasis: dark, light, none.

use crate::harness::Screen;
use crate::tree::tour;
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

/// `NO_COLOR`: no colour anywhere, and what matters is told apart all the same.
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
