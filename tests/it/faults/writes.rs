//! Writes that fail: a full disk, a size limit, no descriptors, errors and short writes.

use super::*;

/// Appends until the disk is full, collects the acknowledged ids, and returns the error.
fn fill(d: &mut Daemon, acknowledged: &mut Vec<String>, size: usize) -> RpcError {
    for number in 0.. {
        let id = format!("f{}-{number}", acknowledged.len());
        let params = json!({"message": user(&"x".repeat(size)), "entryId": id});
        match d.call("append_message", params) {
            Ok(_) => acknowledged.push(id),
            Err(error) => return error,
        }
    }
    unreachable!()
}

/// Sizes of messages for which the last line that fits ends at different positions of the last block.
const SIZES: [usize; 6] = [20_000, 3_000, 700, 111, 30, 1];

#[test]
fn a_full_disk_loses_no_acknowledged_entry() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home, 256) else {
        return skip(Needs::Faults, "a full disk: mounting a tmpfs needs root");
    };
    let mut d = quiet(&home, &[], &[]);
    d.ignore("diagnostics");
    d.allow_stderr();
    d.create();
    let mut acknowledged = vec!["u1".to_owned()];
    d.user("u1", "first");
    let path = home.only_file();
    let ballast = home.sessions().join("ballast");
    let piece = |size: usize| home.sessions().join(format!("ballast-{size}"));
    for size in SIZES {
        fs::write(piece(size), vec![0; 24 << 10]).unwrap();
    }
    for size in SIZES {
        let before = fs::read(&path).unwrap();
        let error = fill(&mut d, &mut acknowledged, size);
        assert_eq!(error.kind, "storageFull", "{error:?}");
        assert_eq!(error.data["retryable"], true);
        assert!(fs::read(&path).unwrap().starts_with(&before), "a prefix");
        assert_eq!(d.leaf(), *acknowledged.last().unwrap());
        fs::remove_file(piece(size)).unwrap();
        let id = format!("after-{size}");
        d.user(&id, "there is room again");
        acknowledged.push(id);
        let expected: Vec<&str> = acknowledged.iter().map(String::as_str).collect();
        agrees(&mut d, &path, &expected);
    }
    // A session whose first entry does not fit leaves no file.
    fs::write(&ballast, vec![0; 512 << 10]).ok();
    let other = d.create();
    let params = json!({"sessionId": other, "message": user(&"x".repeat(9_000)), "entryId": "n1"});
    d.err_kind("append_message", params.clone(), "storageFull");
    assert_eq!(home.session_files(), [path]);
    fs::remove_file(&ballast).unwrap();
    d.ok("append_message", params);
    assert_eq!(home.session_files().len(), 2);
}

/// This limit sends the signal SIGXFSZ, which once ended the daemon.
#[test]
fn the_file_size_limit_loses_no_acknowledged_entry() {
    let mut d = Daemon::quiet();
    d.ignore("diagnostics");
    d.allow_stderr();
    let path = begun(&mut d);
    let mut acknowledged = vec!["u1".to_owned(), "a1".to_owned()];
    for size in SIZES {
        let limit = fs::metadata(&path).unwrap().len() + 5_000;
        limit_to(&d, Resource::Fsize, Some(limit));
        let error = fill(&mut d, &mut acknowledged, size);
        assert_eq!(error.kind, "storageFull", "{error:?}");
        limit_to(&d, Resource::Fsize, None);
        let id = format!("after-{size}");
        d.user(&id, "there is room again");
        acknowledged.push(id);
        let expected: Vec<&str> = acknowledged.iter().map(String::as_str).collect();
        agrees(&mut d, &path, &expected);
    }
}

#[test]
fn calls_fail_without_descriptors_and_work_again_afterwards() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let other = d.home.file(
        "other.jsonl",
        Log::new("other").user("o1", "", "x").text().as_bytes(),
    );
    // The limit of descriptors is lower than the number of open ones, so no file can be opened.
    limit_to(&d, Resource::Nofile, Some(4));
    let error = d.err_kind("open_session", json!({"path": other}), "storageIo");
    assert!(error.message.contains("open"), "{error:?}");
    let params = json!({"message": user("x"), "entryId": "u2"});
    d.err_kind("append_message", params.clone(), "storageIo");
    limit_to(&d, Resource::Nofile, Some(1024));
    d.ok("append_message", params);
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
    d.open(&other);
}

#[test]
fn a_failed_write_leaves_no_trace() {
    let Some((shim, mut d, path)) = shimmed(&[]) else {
        return skip(Needs::Faults, "failing calls: there is no C compiler");
    };
    for (errno, kind) in [
        (5, "storageIo"),
        (28, "storageFull"),
        (122, "storageFull"),
        (30, "pathDenied"),
    ] {
        let before = fs::read(&path).unwrap();
        shim.act(&format!("write error {errno}\n"));
        let label = json!({"targetId": "u1", "label": "no", "entryId": "l1"});
        d.err_kind("append_label", label, kind);
        shim.is_done();
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(d.leaf(), "a1");
        assert!(
            d.ok("get_label", json!({"entryId": "u1"}))
                .get("label")
                .is_none()
        );
        d.err_kind("get_entry", json!({"entryId": "l1"}), "entryNotFound");
        // A failed move leaves no trace either.
        shim.act(&format!("write error {errno}\n"));
        d.err_kind("set_leaf", json!({"leafId": "u1"}), kind);
        assert_eq!(d.leaf(), "a1");
        d.err_kind("undo_navigation", json!({}), "nothingToUndo");
    }
    // The id of the failed label is free.
    d.user("l1", "x");
    agrees(&mut d, &path, &["u1", "a1", "l1"]);
}

/// The write of three entries is cut at different bytes.
#[test]
fn a_short_write_keeps_whole_lines_and_isolates_the_rest() {
    let Some((shim, mut d, path)) = shimmed(&[]) else {
        return skip(Needs::Faults, "short writes: there is no C compiler");
    };
    d.ignore("diagnostics");
    let mut expected = vec!["u1".to_owned(), "a1".to_owned()];
    let entry = |id: &str| json!({"type": "custom", "customType": "c", "data": 1, "id": id});
    let line = {
        d.ok("append_entries", json!({"entries": [entry("sz00")]}));
        expected.push("sz00".to_owned());
        fs::read_to_string(&path)
            .unwrap()
            .lines()
            .last()
            .unwrap()
            .len()
            + 1
    };
    for cut in
        (1..3 * line)
            .step_by(7)
            .chain([line - 1, line, line + 1, 2 * line - 1, 3 * line - 1])
    {
        for closes in [true, false] {
            let ids: Vec<String> = (0..3)
                .map(|n| format!("s{cut}{}{n}", u8::from(closes)))
                .collect();
            // The ids may differ in length; only the position of the cut matters.
            let entries: Vec<Json> = ids.iter().map(|id| entry(id)).collect();
            let before = fs::read(&path).unwrap();
            shim.act(&if closes {
                format!("write short {cut}\n")
            } else {
                format!("write short {cut}\nwrite error 28\n")
            });
            let result = d.call("append_entries", json!({"entries": entries}));
            shim.act("");
            let after = fs::read(&path).unwrap();
            assert!(after.starts_with(&before), "nothing before it is touched");
            let new = String::from_utf8_lossy(&after[before.len()..]).into_owned();
            let whole: Vec<String> = ids
                .iter()
                .filter(|id| {
                    new.lines()
                        .any(|line| parse(line).is_ok_and(|entry| entry["id"] == id.as_str()))
                })
                .cloned()
                .collect();
            match result {
                Ok(result) => assert_eq!((ids_of(&result), &whole), (ids.clone(), &ids)),
                Err(error) => {
                    assert_eq!(error.kind, "storageFull");
                    let written = error.data["details"]["writtenIds"].clone();
                    let written = if written.is_null() {
                        vec![]
                    } else {
                        self::ids(&written)
                    };
                    assert_eq!(written, whole, "cut at {cut}");
                }
            }
            expected.extend(whole);
            let leaf = format!("ok{cut}{}", u8::from(closes));
            assert_eq!(d.ids(), expected, "cut at {cut}, closed: {closes}");
            d.user(&leaf, "there is room again");
            expected.push(leaf);
        }
    }
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    agrees(&mut d, &path, &expected);
}

fn ids_of(result: &Json) -> Vec<String> {
    ids(&result["entryIds"])
}
