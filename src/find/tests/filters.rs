//! A search for a label, a tool or a role reads only the parts of files that have it.

use super::*;
use std::fmt::Write;

/// Entries of each session.
const ENTRIES: usize = 200;
/// Sessions.
const SESSIONS: usize = 12;

/// A line with its own word and enough text for several blocks of the index in a session.
fn line(number: usize, message: &str) -> String {
    let filler = "the filler of every entry ".repeat(60);
    let parent = match number {
        0 => "null".to_owned(),
        _ => format!("\"e{}\"", number - 1),
    };
    let message = message.replace("FILLER", &filler);
    format!(
        "{{\"type\":\"message\",\"id\":\"e{number}\",\"parentId\":{parent},\"timestamp\":\"2026-03-01T08:{:02}:{:02}.000Z\",\"message\":{message}}}\n",
        number / 60,
        number % 60
    )
}

fn header(number: usize) -> String {
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"s{number}\",\"timestamp\":\"2026-03-01T08:00:00.000Z\",\"cwd\":\"/p\"}}\n"
    )
}

fn label(id: usize, target: usize, text: &str) -> String {
    format!(
        "{{\"type\":\"label\",\"id\":\"l{id}\",\"parentId\":\"e{target}\",\"timestamp\":\"2026-03-02T08:00:00.000Z\",\"targetId\":\"e{target}\",\"label\":{text}}}\n"
    )
}

/// Sessions with texts of the user; each has these lines at its end.
fn sessions(folder: &Path, end: impl Fn(usize) -> String) {
    for number in 0..SESSIONS {
        let mut text = header(number);
        for entry in 0..ENTRIES {
            let message = format!("{{\"role\":\"user\",\"content\":\"word{entry} FILLER\"}}");
            text.push_str(&line(entry, &message));
        }
        write!(text, "{}", end(number)).unwrap();
        fs::write(folder.join(format!("s{number}.jsonl")), text).unwrap();
    }
}

/// Searches with the index, and checks that a scan of all files finds the same.
fn checked(store: &Store, index: IndexSettings, request: &SearchRequest) -> SearchOutcome {
    let (indexed, scanned) = (run_with(store, index, request), run(store, request));
    assert_eq!(ids(&indexed), ids(&scanned), "{request:?}");
    indexed
}

/// A label is a field of an entry that may be in another block. A file with a label that has a word of the query was
/// therefore once searched as a whole. If a label had the two letters of a query, the query once read all files.
#[test]
fn a_label_with_a_word_of_the_query_needs_only_the_line_of_its_entry() {
    let folder = tempfile::tempdir().unwrap();
    sessions(folder.path(), |number| {
        let replaced = label(1, 20, "\"needle first\"") + &label(2, 20, "\"other\"");
        let removed = label(3, 30, "\"needle gone\"") + &label(4, 30, "null");
        let early = label(5, ENTRIES, "\"needle early\"");
        let late = line(ENTRIES, "{\"role\":\"user\",\"content\":\"the last\"}");
        let kept = label(6, 50 + number, "\"a needle\"");
        replaced + &removed + &early + &late + &kept
    });
    let store = Store::new(folder.path().to_owned());
    update_index(&store);
    let idle = IndexSettings { most: 0, ..INDEX };
    let whole = run(&store, &request("needle", Mode::Words));
    for (query, hits) in [
        ("needle", 2 * SESSIONS),
        ("needle filler", SESSIONS),
        ("needle last", SESSIONS),
        ("needle word20", 0),
        ("needle word30", 0),
        ("needle word50", 1),
    ] {
        let found = checked(&store, idle, &request(query, Mode::Words));
        assert_eq!(found.hits.len(), hits, "{query}");
        assert_eq!(found.totals.entries, hits as u64, "{query}");
        let scanned = found.totals.scanned_bytes;
        let is_little = scanned < whole.totals.scanned_bytes / 4;
        assert!(is_little || query == "needle filler", "{query}: {scanned}");
    }
    // The labels of a file that has grown are searched again.
    let grown = folder.path().join("s3.jsonl");
    let text = fs::read_to_string(&grown).unwrap() + &label(7, 30, "\"needle again\"");
    fs::write(&grown, text).unwrap();
    for (query, hits) in [("needle word30", 1), ("needle", 2 * SESSIONS + 1)] {
        let found = checked(&store, idle, &request(query, Mode::Words));
        assert_eq!(found.hits.len(), hits, "{query}");
    }
    update_index(&store);
    let found = checked(&store, idle, &request("needle word30", Mode::Words));
    assert_eq!(found.hits.len(), 1);
}

/// Text of the user has the highest score, but is not a hit if the filter is for a tool or another role. For a word
/// that most entries have, all files were once searched before the page was known.
#[test]
fn a_filter_of_tools_or_roles_needs_only_the_parts_with_such_entries() {
    let folder = tempfile::tempdir().unwrap();
    sessions(folder.path(), |_| {
        let call = "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a filler\"},{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"bash\",\"arguments\":{\"command\":\"filler\"}}]}";
        let result = "{\"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"bash\",\"content\":[{\"type\":\"text\",\"text\":\"a filler\"}]}";
        // A message of the user that names a tool passes the filter.
        let odd = "{\"role\":\"user\",\"toolName\":\"odd\",\"content\":\"odd filler\"}";
        line(ENTRIES, call) + &line(ENTRIES + 1, result) + &line(ENTRIES + 2, odd)
    });
    let store = Store::new(folder.path().to_owned());
    update_index(&store);
    let early = IndexSettings {
        most: 0,
        first: 1,
        for_totals: 0,
        ..INDEX
    };
    let all = run(&store, &request("filler", Mode::Words));
    let filters = [
        (Some("bash"), None),
        (Some("odd"), None),
        (None, Some("toolResult")),
        (None, Some("assistant")),
        (Some("bash"), Some("toolResult")),
        (Some("nosuch"), None),
        (None, Some("custom")),
    ];
    for (tool, role) in filters {
        let mut request = request("filler", Mode::Words);
        request.limit = 5;
        request.entries = vec![EntryFilter {
            tool: tool.map(str::to_owned),
            role: role.map(str::to_owned),
            ..EntryFilter::default()
        }];
        let found = checked(&store, early, &request);
        let is_none = tool == Some("nosuch") || role == Some("custom");
        assert_eq!(found.hits.len(), if is_none { 0 } else { 5 });
        let scanned = found.totals.scanned_bytes;
        assert!(scanned < all.totals.scanned_bytes / 4, "{tool:?} {role:?}");
    }
}
