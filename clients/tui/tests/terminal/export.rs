//! The export with its review.

use super::TOUR;
use super::tmux::{Tmux, is_missing};

/// The client shows what an export replaces. A person can keep a secret. Only then the file is written.
#[test]
fn an_export_is_written_after_its_review() {
    if is_missing() {
        return;
    }
    let token = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";
    let other = token.replace("0a1B", "9z8Y");
    let tmux = Tmux::new(100, 30);
    let text = TOUR.replace("It still fails.", token);
    let path = tmux.session("tour", &text.replace("Added. It builds.", &other));
    let file = path.with_file_name("out.md");
    tmux.start("tour");
    tmux.wait_for("← active");
    for (keeps, shown) in [(false, "• github-token"), (true, "  github-token")] {
        let name = file.with_extension(format!("{keeps}.md"));
        tmux.keys(":");
        tmux.typed(&format!("export markdown {}", name.display()));
        tmux.keys("Enter");
        tmux.wait_for("• github-token");
        tmux.wait_for("Write ");
        if keeps {
            tmux.keys("Down Enter");
            tmux.wait_for(shown);
            tmux.keys("Home");
        }
        assert!(
            !name.exists(),
            "nothing is written before the person says so"
        );
        tmux.keys("Enter");
        tmux.wait_for("Wrote ");
        let written = std::fs::read_to_string(&name).unwrap();
        assert_eq!(written.contains(&other), keeps, "{written}");
        tmux.escape();
    }
    tmux.keys("q");
    tmux.is_restored();
}
