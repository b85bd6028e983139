//! Syncs that fail or are slow, under each durability.

use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use super::*;

#[test]
fn with_always_a_failed_sync_is_reported_and_the_entry_stays() {
    let Some((shim, mut d, path)) = shimmed(&["--durability", "always"]) else {
        return skip(Needs::Faults, "failing syncs: there is no C compiler");
    };
    shim.act("sync error 5\n");
    let params = json!({"message": user("x"), "entryId": "u2"});
    let error = d.err_kind("append_message", params.clone(), "durabilityUnknown");
    assert_eq!(error.data["retryable"], false);
    shim.is_done();
    assert_eq!(d.leaf(), "u2", "it is in the file, and so it is indexed");
    // A retry returns the durability that its entry got, and no later sync changes it. A later entry is durable again.
    d.err_kind("append_message", params.clone(), "durabilityUnknown");
    assert_eq!(d.user("u3", "y")["durability"], "always");
    d.err_kind("append_message", params, "durabilityUnknown");
    agrees(&mut d, &path, &["u1", "a1", "u2", "u3"]);
}

#[test]
fn the_first_write_of_a_session_is_synced_under_every_durability() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "failing syncs: there is no C compiler");
    };
    for policy in ["os", "interval", "always"] {
        let mut d = shim.start(&home, &["--durability", policy]);
        d.create();
        let before = home.session_files();
        let first = json!({"message": user("x"), "entryId": "u1"});
        for (method, params) in [
            ("append_message", first.clone()),
            ("create_session", json!({"write": "now"})),
        ] {
            shim.act("sync error 5\n");
            d.err_kind(method, params, "storageIo");
            shim.is_done();
            assert_eq!(home.session_files(), before, "{method} leaves no file");
        }
        // The client may try it again.
        assert_eq!(d.ok("append_message", first)["durability"], policy);
        assert_eq!(home.session_files().len(), before.len() + 1);
    }
}

/// A retry once succeeded with `durability: "none"` although the first attempt had failed with `durabilityUnknown`. Now
/// a retry returns the durability of its entry.
#[test]
fn a_retry_after_a_failed_sync_returns_the_durability_of_its_entry() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "failing syncs: there is no C compiler");
    };
    let params = json!({"message": user("x"), "entryId": "u1"});
    for policy in ["interval", "always"] {
        let mut d = shim.start(&home, &["--durability", policy]);
        d.create();
        d.user("u0", "w");
        // The sync of the first append must have ended, so that it is not the sync that fails.
        std::thread::sleep(Duration::from_millis(150));
        shim.act("sync error 5\n");
        match policy {
            "interval" => {
                d.ok("append_message", params.clone());
                d.notification("diagnostics");
                d.err_kind("append_message", params.clone(), "durabilityUnknown");
            }
            _ => drop(d.err_kind("append_message", params.clone(), "durabilityUnknown")),
        }
        shim.is_done();
        d.err_kind("append_message", params.clone(), "durabilityUnknown");
        let later = json!({"message": user("y"), "entryId": "u2"});
        for _ in 0..2 {
            assert_eq!(d.ok("append_message", later.clone())["durability"], policy);
        }
    }
}

/// With `always`, a retry was once answered while the sync of the first attempt was still running.
#[test]
fn a_retry_waits_for_the_sync_of_its_entry() {
    let Some((shim, mut d, _)) = shimmed(&["--durability", "always"]) else {
        return skip(Needs::Faults, "slow syncs: there is no C compiler");
    };
    let params = json!({"message": user("x"), "entryId": "u2"});
    let message = json!({"customType": "c", "content": "x", "display": true, "entryId": "m1"});
    for (method, params) in [("append_message", params), ("send_message", message)] {
        shim.act("sync pause 3000\n");
        let began = Instant::now();
        let first = d.send(method, params.clone());
        std::thread::sleep(Duration::from_millis(100));
        let retry = d.send(method, params.clone());
        std::thread::sleep(Duration::from_millis(200));
        d.still_waits(&retry);
        d.still_waits(&first);
        for id in [retry, first] {
            assert_eq!(d.response(&id).unwrap()["durability"], "always");
        }
        assert!(began.elapsed() >= Duration::from_secs(3));
        shim.is_done();
        // A synced entry needs no further sync.
        shim.act("sync error 5\n");
        assert_eq!(d.ok(method, params)["durability"], "always");
        shim.act("");
    }
}

#[test]
fn a_session_may_have_a_durability_of_its_own() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "failing syncs: there is no C compiler");
    };
    let mut d = shim.start(&home, &["--durability", "os"]);
    let create = |d: &mut Daemon, params: Json| {
        let made = d.ok("create_session", params);
        made["session"]["sessionId"].as_str().unwrap().to_owned()
    };
    let append = |d: &mut Daemon, id: &str| {
        let params = json!({"sessionId": id, "message": user("x")});
        d.call("append_message", params)
    };
    let given = |d: &mut Daemon, id: &str| append(d, id).unwrap()["durability"].clone();
    let plain = create(&mut d, json!({}));
    let safe = create(&mut d, json!({"durability": "always"}));
    assert_eq!(
        (given(&mut d, &plain), given(&mut d, &safe)),
        (json!("os"), json!("always"))
    );
    // The session with `always` waits for the sync, the other one does not.
    shim.act("sync error 5\n");
    assert_eq!(given(&mut d, &plain), "os");
    let error = append(&mut d, &safe).expect_err("the sync fails");
    assert_eq!(error.kind, "durabilityUnknown");
    shim.is_done();
    // A fork inherits the durability.
    for name in ["session_before_fork", "session_fork"] {
        d.ignore(name);
    }
    let fork = d.ok("fork_session", json!({"sessionId": safe, "position": "at"}));
    let fork = fork["session"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(given(&mut d, &fork), "always");
    // The durability belongs to the opening, not to the file, and can be changed.
    d.ok("open_session", json!({"sessionId": safe}));
    assert_eq!(given(&mut d, &safe), "always");
    d.ok(
        "open_session",
        json!({"sessionId": safe, "durability": "interval"}),
    );
    assert_eq!(given(&mut d, &safe), "interval");
    for _opening in 0..3 {
        d.ok("close_session", json!({"sessionId": safe}));
    }
    d.ok("open_session", json!({"sessionId": safe}));
    assert_eq!(given(&mut d, &safe), "os");
    d.ok("close_session", json!({"sessionId": safe}));
    d.ok(
        "open_session",
        json!({"sessionId": safe, "durability": "always"}),
    );
    assert_eq!(given(&mut d, &safe), "always");
    let memory = create(&mut d, json!({"ephemeral": true, "durability": "always"}));
    assert_eq!(given(&mut d, &memory), "none");
    for (method, params) in [
        ("create_session", json!({"durability": "none"})),
        (
            "open_session",
            json!({"sessionId": plain, "durability": "Always"}),
        ),
    ] {
        let error = d.err_kind(method, params, "invalidParams");
        assert_eq!(error.details("field"), "durability");
    }
}

#[test]
fn with_interval_a_late_failure_is_announced_and_fails_the_next_append_once() {
    let Some((shim, mut d, path)) = shimmed(&["--durability", "interval"]) else {
        return skip(Needs::Faults, "failing syncs: there is no C compiler");
    };
    // The sync of the first appends must have ended, so that it is not the sync that fails.
    std::thread::sleep(Duration::from_millis(150));
    shim.act("sync error 5\n");
    d.user("u2", "answered before the sync");
    let announced = d.notification("diagnostics");
    assert_eq!(announced["diagnostics"][0]["kind"], "durabilityUnknown");
    let params = json!({"message": user("x"), "entryId": "u3"});
    d.err_kind("append_message", params.clone(), "durabilityUnknown");
    assert_eq!(d.ids(), ["u1", "a1", "u2"], "nothing of it was written");
    d.ok("append_message", params);
    agrees(&mut d, &path, &["u1", "a1", "u2", "u3"]);
    d.no_notification("diagnostics");
}

#[test]
fn with_always_nothing_is_announced_before_it_is_synced() {
    let Some((shim, mut d, _)) = shimmed(&["--durability", "always"]) else {
        return skip(Needs::Faults, "slow syncs: there is no C compiler");
    };
    d.ok("get_leaf", json!({}));
    d.forget_order();
    // On a busy machine an answer takes long.
    shim.act("sync pause 3000\n");
    let slow = d.send(
        "append_message",
        json!({"message": user("x"), "entryId": "u2"}),
    );
    let next = d.send(
        "append_label",
        json!({"targetId": "u1", "label": "l", "entryId": "l1"}),
    );
    // Reads return the entries without waiting for the sync.
    assert_eq!(d.leaf(), "l1");
    assert_eq!(d.order(), ["=get_leaf"], "nothing is announced yet");
    assert!(d.response(&slow).is_ok() && d.response(&next).is_ok());
    shim.is_done();
    let announced: Vec<&str> = d.order().iter().map(String::as_str).collect();
    let at = |name: &str| {
        announced
            .iter()
            .position(|announced| *announced == name)
            .unwrap()
    };
    assert!(
        at("entries_appended") < at("=append_message"),
        "{announced:?}"
    );
    assert_eq!(
        announced
            .iter()
            .filter(|announced| **announced == "entries_appended")
            .count(),
        2
    );
}

/// With `interval`, an acknowledged append was once not synced if the client closed stdout within the next 50 ms.
#[test]
fn an_acknowledged_append_is_synced_after_stdout_was_closed() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "slow syncs: there is no C compiler");
    };
    // On a slow machine the 50 ms may end before stdout is closed. Then the test proves nothing.
    let mut child = home
        .command(&["--durability", "interval"], &shim.env())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |stdin: &mut std::process::ChildStdin, id: u32, method: &str, params: Json| {
        writeln!(stdin, "{}", request(&json!(id), method, &params)).unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            stdout.read_line(&mut line).unwrap();
            if parse(&line).unwrap()["id"] == id {
                return parse(&line).unwrap();
            }
        }
    };
    ask(&mut stdin, 1, "create_session", json!({}));
    ask(
        &mut stdin,
        2,
        "append_message",
        json!({"message": user("x")}),
    );
    std::thread::sleep(Duration::from_millis(200));
    shim.act("sync pause 1\n");
    let last = ask(
        &mut stdin,
        3,
        "append_message",
        json!({"message": user("y")}),
    );
    assert_eq!(last["result"]["durability"], "interval");
    drop(stdout);
    writeln!(stdin, "{}", request(&json!(4), "get_leaf", &json!({}))).unwrap();
    wait(&mut child, DEADLINE);
    shim.is_done();
    drop(stdin);
}
