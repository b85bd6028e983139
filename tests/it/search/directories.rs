//! The directories to which a search is limited. protocol.md §3.16 and §3.19.

use crate::harness::*;
use std::fs;

/// Directories were once compared as text: a session that was begun in a link, or with `..`, was in another directory.
#[test]
fn a_session_is_in_the_directory_to_which_its_path_leads() {
    let home = Home::new();
    let place = |name: &str| home.cwd().join(name);
    fs::create_dir_all(place("garden/bed")).unwrap();
    fs::create_dir_all(place("shed")).unwrap();
    std::os::unix::fs::symlink(place("garden"), place("link")).unwrap();
    std::os::unix::fs::symlink(place("shed"), place("garden/out")).unwrap();
    for (id, cwd) in [
        ("below", "garden/bed"),
        ("gone", "garden/gone"),
        ("link", "link"),
        ("dots", "shed/../garden"),
        ("out", "garden/out"),
        ("away", "garden/../shed"),
        ("near", "garden2"),
    ] {
        Log::with_header(json!({
            "type": "session", "version": 3, "id": id, "timestamp": "2025-01-01T00:00:00.000Z", "cwd": place(cwd),
        }))
            .user("u1", "", "Plant the apples")
            .store(&home, &format!("2025-01-01T00-00-00-000Z_{id}.jsonl"));
    }
    let mut d = Daemon::quiet_in(&home);
    let garden = ["below", "dots", "gone", "link"];
    let shed = ["away", "out"];
    let mut sessions = |params: Json| {
        let mut both = Vec::new();
        for mode in ["words", "ask"] {
            let mut params = params.clone();
            params["mode"] = json!(mode);
            let mut found: Vec<String> = d.ok("search", params)["hits"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hit| hit["sessionId"].as_str().unwrap().to_owned())
                .collect();
            found.sort();
            both.push(found);
        }
        assert_eq!(both[0], both[1]);
        both.remove(0)
    };
    for (directory, expected) in [
        ("garden", &garden[..]),
        ("link", &garden),
        ("link/bed/..", &garden),
        ("shed", &shed),
        ("garden/out", &shed),
        ("gar", &[]),
    ] {
        let path = place(directory).display().to_string();
        let found = sessions(json!({"query": "apples", "cwd": path}));
        assert_eq!(found, expected, "{directory}");
        let here = json!({"query": "apples cwd:.", "syntax": "filters", "directory": path});
        assert_eq!(sessions(here), expected, "cwd:. in {directory}");
    }
    assert_eq!(
        sessions(json!({"query": "apples", "cwd": "garden"})),
        [""; 0]
    );
}
