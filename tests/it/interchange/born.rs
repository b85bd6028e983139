//! Branches that grow in the background while pi writes the same file.

use super::*;

#[test]
fn eight_background_writers_and_pi_move_nobody() {
    let Some((mut both, m)) = Both::created_there() else {
        return;
    };
    let (home, path) = (Arc::clone(&both.home), both.path.clone());
    let pi = &mut both.pi;
    crate::born::grow_beside(&home, &path, || {
        pi.id(&m, "appendMessage", json!([user("on")]))
    });
    both.live.allow_stderr();
    both.agree("all branches");
}
