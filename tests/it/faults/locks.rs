//! A lock that another process holds.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn an_append_fails_with_session_locked_after_2_seconds() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    let began = Instant::now();
    // All appends wait at the same time, not one after the other.
    let waiting: Vec<Json> = (0..50)
        .map(|n| {
            d.send(
                "append_message",
                json!({"message": user("x"), "entryId": format!("w{n}")}),
            )
        })
        .collect();
    // In the meantime the daemon answers other requests.
    d.ok("list_sessions", json!({}));
    assert!(began.elapsed() < Duration::from_secs(1));
    for id in &waiting {
        let error = d.response(id).expect_err("the lock is held");
        assert_eq!(error.kind, "sessionLocked");
        assert_eq!(error.data["retryable"], true);
    }
    let took = began.elapsed();
    assert!((2.0..3.5).contains(&took.as_secs_f64()), "{took:?}");
    // A later append waits as long as the others, and succeeds as soon as the lock is free.
    let late = d.send(
        "append_message",
        json!({"message": user("x"), "entryId": "u2"}),
    );
    std::thread::sleep(Duration::from_millis(500));
    d.still_waits(&late);
    holder.unlock().unwrap();
    d.response(&late).expect("the lock is free");
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
}

#[test]
fn an_append_that_waits_for_a_lock_can_be_cancelled() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    let waiting = d.send(
        "append_message",
        json!({"message": user("x"), "entryId": "u2"}),
    );
    d.ok("$/cancel_request", json!({"requestId": waiting}));
    assert_eq!(
        d.response(&waiting).expect_err("cancelled").kind,
        "cancelled"
    );
    holder.unlock().unwrap();
    agrees(&mut d, &path, &["u1", "a1"]);
}
