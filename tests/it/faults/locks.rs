//! A lock that another process holds.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn an_append_fails_with_session_locked_after_2_seconds() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    // All appends wait at the same time, not one after the other.
    takes_at_most(Duration::from_millis(3_500), || {
        let began = Instant::now();
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
        let answered = began.elapsed();
        for id in &waiting {
            let error = d.response(id).expect_err("the lock is held");
            assert_eq!(error.kind, "sessionLocked");
            assert_eq!(error.data["retryable"], true);
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(2), "{took:?}");
        // The other request takes at most a second.
        took.max(answered + Duration::from_millis(2_500))
    });
    agrees(&mut d, &path, &["u1", "a1"]);
}

/// On a busy machine the two seconds may end before the lock is free.
#[test]
fn an_append_succeeds_as_soon_as_the_lock_is_free() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let mut ids = vec!["u1".to_owned(), "a1".to_owned()];
    let has_succeeded = (0..20).any(|attempt| {
        let id = format!("u2-{attempt}");
        let holder = fs::File::open(&path).unwrap();
        holder.lock().unwrap();
        let late = d.send(
            "append_message",
            json!({"message": user("x"), "entryId": id}),
        );
        std::thread::sleep(Duration::from_millis(500));
        let is_waiting = d.has_no_response(&late);
        holder.unlock().unwrap();
        match d.response(&late) {
            Ok(_) => ids.push(id),
            Err(error) => {
                assert_eq!(error.kind, "sessionLocked");
                return false;
            }
        }
        is_waiting
    });
    assert!(has_succeeded, "no append has waited and succeeded");
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    agrees(&mut d, &path, &ids);
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
