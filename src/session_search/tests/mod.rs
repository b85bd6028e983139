//! Against a model that decodes all text of all entries ([`model`]).

mod generator;
mod model;

use super::*;
use crate::search::{FieldKind, Mode, Query};
use generator::Random;
use model::{ModelEntry, Needle};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn request(query: &str, mode: Mode) -> SearchRequest {
    SearchRequest {
        query: Query::parse(query, mode).unwrap().unwrap(),
        fields: FieldSet::ALL,
        cwd: None,
        entries: EntryFilter::default(),
        since: None,
        until: None,
        branches: BranchFilter::All,
        limit: 1000,
        after: None,
    }
}

const NO_INDEX: IndexSettings = IndexSettings {
    from: u64::MAX,
    most: u64::MAX,
};
const INDEX: IndexSettings = IndexSettings {
    from: 0,
    most: u64::MAX,
};

fn run_with(store: &Store, index: IndexSettings, request: &SearchRequest) -> SearchOutcome {
    let searched = SearchedStore { store, index };
    search(searched, request, &Cancel::new(), &mut |_| {}).unwrap()
}

fn run(store: &Store, request: &SearchRequest) -> SearchOutcome {
    run_with(store, NO_INDEX, request)
}

/// The ids of the hits, in order.
fn ids(outcome: &SearchOutcome) -> Vec<(String, String)> {
    let hits = outcome.hits.iter();
    hits.map(|(_, hit)| (hit.session_id.clone(), hit.entry_id.clone()))
        .collect()
}

/// A folder with four of the files in `tests/data`, other ones for each round, and two random sessions.
fn folder(random: &mut Random, round: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let files = fs::read_dir(data).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    for path in files.iter().cycle().skip(round * 4).take(4) {
        fs::copy(path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    for number in 0..2 {
        let text = generator::session(random, &format!("random{number}"), 25);
        fs::write(folder.path().join(format!("r{number}.jsonl")), text).unwrap();
    }
    folder
}

/// A query for this needle; `None` if it has no words, or is no pattern.
fn query_of(needle: &Needle) -> Option<(String, Mode)> {
    match needle {
        Needle::Words(words) => {
            let is_quotable = words.iter().all(|word| !word.contains('"'));
            let quoted = words.iter().map(|word| format!("\"{word}\""));
            is_quotable.then(|| (quoted.collect::<Vec<_>>().join(" "), Mode::Words))
        }
        Needle::Literal(text) => Some((text.clone(), Mode::Literal)),
        Needle::Regex(pattern) => Some((pattern.clone(), Mode::Regex)),
    }
}

/// Sets a random filter; returns the same filter for the model.
fn filter(
    random: &mut Random,
    request: &mut SearchRequest,
) -> impl Fn(&ModelEntry) -> bool + use<> {
    const FIELDS: [FieldKind; 6] = [
        FieldKind::Text,
        FieldKind::Thinking,
        FieldKind::ToolCalls,
        FieldKind::ToolResults,
        FieldKind::Labels,
        FieldKind::Summaries,
    ];
    if random.below(3) == 0 {
        request.fields = FieldSet::of(FIELDS.into_iter().filter(|_| random.below(2) == 0));
    }
    let branches = [
        BranchFilter::All,
        BranchFilter::Active,
        BranchFilter::Abandoned,
    ];
    request.branches = branches[random.below(12).saturating_sub(9)];
    let role = (random.below(8) == 0).then(|| "user".to_owned());
    request.entries.role.clone_from(&role);
    let branches = request.branches;
    move |entry| {
        let is_on = match branches {
            BranchFilter::All => true,
            BranchFilter::Active => entry.is_active,
            BranchFilter::Abandoned => !entry.is_active,
        };
        is_on && role.as_ref().is_none_or(|role| entry.role == *role)
    }
}

/// Compares searches for random needles with the model; returns how many hits there were.
fn compare(
    random: &mut Random,
    folder: &Path,
    needles: usize,
    run: impl Fn(&SearchRequest) -> SearchOutcome,
) -> usize {
    let entries = model::entries(folder);
    let (mut tried, mut found) = (0, 0);
    while tried < needles {
        let needle = generator::needle(random, &entries);
        let Some((text, mode)) = query_of(&needle) else {
            continue;
        };
        let Ok(Some(_)) = Query::parse(&text, mode) else {
            continue;
        };
        tried += 1;
        let mut request = request(&text, mode);
        let takes = filter(random, &mut request);
        let expected = model::find(&entries, &needle, takes, |kind| request.fields.has(kind));
        let outcome = run(&request);
        let actual: BTreeSet<_> = ids(&outcome).into_iter().collect();
        let one = actual.symmetric_difference(&expected).next();
        let text = one.map(|one| {
            let is_it = |entry: &&ModelEntry| entry.session == one.0 && entry.id == one.1;
            entries.iter().find(is_it).map(|entry| &entry.fields)
        });
        assert_eq!(actual, expected, "{needle:?} {text:?} {:?}", request.fields);
        assert_eq!(outcome.totals.entries, outcome.hits.len() as u64);
        found += actual.len();
    }
    found
}

#[test]
fn ten_thousand_random_needles_are_found_as_a_model_finds_them() {
    let mut random = Random(7);
    let mut found = 0;
    for round in 0..20 {
        let folder = folder(&mut random, round);
        let store = Store::new(folder.path().to_owned());
        found += compare(&mut random, folder.path(), 500, |request| {
            run(&store, request)
        });
    }
    assert!(found > 10_000, "{found}");
}

fn update_index(store: &Store) {
    let files = store.session_files().unwrap();
    index::update(&store.cache().unwrap(), INDEX, &files, &Cancel::new()).unwrap();
}

/// The files of the index, without those of rows and openings.
fn index_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(files) = fs::read_dir(folder.join(".cache")) else {
        return Vec::new();
    };
    let files = files.map(|file| file.unwrap().path());
    let is_search = |path: &std::path::PathBuf| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("search")
    };
    files.filter(is_search).collect()
}

/// Also after files have grown, were replaced and removed.
#[test]
fn a_search_with_an_index_finds_what_a_scan_finds() {
    let mut random = Random(11);
    let (mut found, mut narrowed) = (0, 0);
    for round in 0..3 {
        let folder = folder(&mut random, round);
        let store = Store::new(folder.path().to_owned());
        update_index(&store);
        assert_eq!(index_files(folder.path()).len(), 2);
        let narrow = std::cell::Cell::new(0);
        // Nothing is brought up to date while the needles are compared.
        let idle = IndexSettings { most: 0, ..INDEX };
        let run = |request: &SearchRequest| {
            let outcome = run_with(&store, idle, request);
            let whole = run(&store, request);
            assert_eq!(ids(&outcome), ids(&whole));
            let is_less = outcome.totals.scanned_bytes < whole.totals.scanned_bytes;
            narrow.set(narrow.get() + usize::from(is_less));
            outcome
        };
        found += compare(&mut random, folder.path(), 100, run);
        let line = r#"{"type":"message","id":"late","parentId":"e3","message":{"role":"user","content":"日本語 latecomer"}}"#;
        let grown = folder.path().join("r0.jsonl");
        let text = fs::read_to_string(&grown).unwrap();
        fs::write(&grown, format!("{text}{line}\n")).unwrap();
        let other = generator::session(&mut random, "other", 10);
        fs::remove_file(folder.path().join("r1.jsonl")).unwrap();
        fs::write(folder.path().join("other.jsonl"), other).unwrap();
        found += compare(&mut random, folder.path(), 100, run);
        assert_eq!(run(&request("latecomer", Mode::Words)).hits.len(), 1);
        update_index(&store);
        found += compare(&mut random, folder.path(), 50, run);
        narrowed += narrow.get();
    }
    assert!(found > 500 && narrowed > 250, "{found} {narrowed}");
}

/// Nothing in the cache can hide a match: whatever is cut or changed is noticed.
#[test]
fn a_damaged_index_is_not_used_and_made_again() {
    let mut random = Random(13);
    let folder = folder(&mut random, 0);
    let store = Store::new(folder.path().to_owned());
    let query = request("needle", Mode::Words);
    let line = r#"{"type":"message","id":"n","parentId":null,"message":{"role":"user","content":"a needle"}}"#;
    let path = folder.path().join("r0.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{line}\n")).unwrap();
    let idle = IndexSettings { most: 0, ..INDEX };
    let narrowed = || {
        let outcome = run_with(&store, idle, &query);
        assert_eq!(outcome.hits.len(), 1);
        outcome.totals.scanned_bytes < run(&store, &query).totals.scanned_bytes
    };
    for round in 0..10 {
        for old in index_files(folder.path()) {
            fs::remove_file(old).unwrap();
        }
        update_index(&store);
        assert!(narrowed(), "round {round}");
        let files = index_files(folder.path());
        let path = &files[random.below(files.len())];
        let mut bytes = fs::read(path).unwrap();
        let at = random.below(bytes.len());
        match round % 5 {
            0 => bytes.truncate(at),
            1 => bytes
                .iter_mut()
                .skip(at)
                .take(64)
                .for_each(|byte| *byte = 0),
            2 | 3 => bytes[at] ^= 1 << random.below(8),
            _ => bytes.clear(),
        }
        fs::write(path, bytes).unwrap();
        assert!(!narrowed(), "round {round}");
        update_index(&store);
        assert!(narrowed(), "round {round}");
    }
}

/// A killed process leaves unfinished files and segments that no list names; they are removed, and the index goes on.
#[test]
fn an_index_that_was_being_written_when_the_process_died_goes_on() {
    let folder = folder(&mut Random(17), 0);
    let store = Store::new(folder.path().to_owned());
    let cache = folder.path().join(".cache");
    update_index(&store);
    let orphan = cache.join("search-orphan.words");
    fs::write(&orphan, "SQLite").unwrap();
    let orphan = fs::File::options().append(true).open(orphan).unwrap();
    orphan
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    fs::write(
        cache.join(".search-x.0123456789abcdef.treelined.tmp"),
        "SQLite",
    )
    .unwrap();
    let more = generator::session(&mut Random(18), "more", 30);
    fs::write(folder.path().join("more.jsonl"), more).unwrap();
    update_index(&store);
    let names = fs::read_dir(&cache)
        .unwrap()
        .map(|file| file.unwrap().file_name());
    let left: Vec<_> = names
        .filter(|name| name.to_string_lossy().contains("search"))
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
    compare(&mut Random(19), folder.path(), 50, |request| {
        run_with(&store, IndexSettings { most: 0, ..INDEX }, request)
    });
}
