//! Compares the search with a model that decodes all text of all entries ([`model`]).

mod filters;
pub(crate) mod generator;
mod model;

use super::*;
use generator::Random;
use model::{ModelEntry, Needle};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_core::search::{BranchFilter, FieldKind, Mode, Query};
use treelined_core::test_support::sample;
use treelined_files::store::Store;

pub(crate) fn request(query: &str, mode: Mode) -> SearchRequest {
    SearchRequest {
        query: Query::parse(query, mode).unwrap().unwrap(),
        fields: FieldSet::ALL,
        without: None,
        named_directory: None,
        named_entries: EntryFilter::default(),
        directory: None,
        within: None,
        tag: None,
        git: None,
        session: None,
        entries: Vec::new(),
        since: None,
        until: None,
        branches: BranchFilter::All,
        explains: false,
        archived: false,
        limit: 1000,
        after: None,
    }
}

pub(crate) const NO_INDEX: IndexSettings = IndexSettings {
    from: u64::MAX,
    most: u64::MAX,
    first: 4 << 20,
    for_totals: u64::MAX,
};
const INDEX: IndexSettings = IndexSettings {
    from: 0,
    most: u64::MAX,
    first: 4 << 20,
    for_totals: u64::MAX,
};

fn run_with(store: &Store, index: IndexSettings, request: &SearchRequest) -> SearchOutcome {
    let searched = SearchedStore { store, index };
    let mut watch = SearchWatch {
        on_hit: &mut |_| {},
        on_progress: &mut |_, _| {},
    };
    search(searched, request, &Cancel::new(), &mut watch).unwrap()
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

/// The damaged and the sound files of `tests/data`.
fn data_files() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let files = fs::read_dir(data).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    files
}

/// A folder with these files and two random sessions.
fn folder_of(random: &mut Random, files: &[PathBuf]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in files {
        fs::copy(path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    for number in 0..2 {
        let text = generator::session(random, &format!("random{number}"), 25);
        fs::write(folder.path().join(format!("r{number}.jsonl")), text).unwrap();
    }
    folder
}

/// A folder with four of the files in `tests/data`, different in each round, and two random sessions.
fn folder(random: &mut Random, round: usize) -> tempfile::TempDir {
    let files = data_files().into_iter().cycle();
    let files: Vec<_> = files.skip(round * 4).take(4).collect();
    folder_of(random, &files)
}

/// A query for this needle; `None` if it has no words, or is not a pattern.
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
    request.entries.push(EntryFilter {
        role: role.clone(),
        ..EntryFilter::default()
    });
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
    entries: &[ModelEntry],
    needles: usize,
    mut run: impl FnMut(&SearchRequest) -> SearchOutcome,
) -> usize {
    let (mut tried, mut found) = (0, 0);
    while tried < needles {
        let needle = generator::needle(random, entries);
        let Some((text, mode)) = query_of(&needle) else {
            continue;
        };
        let Ok(Some(_)) = Query::parse(&text, mode) else {
            continue;
        };
        tried += 1;
        let mut request = request(&text, mode);
        let takes = filter(random, &mut request);
        let expected = model::find(entries, &needle, takes, |kind| request.fields.has(kind));
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

/// Checks that a search in pages gives these hits, and these totals on each page.
fn check_pages(
    store: &Store,
    index: IndexSettings,
    request: SearchRequest,
    whole: &SearchOutcome,
    limit: usize,
) {
    let expected = ids(whole);
    let mut request = SearchRequest { limit, ..request };
    let mut found = Vec::new();
    loop {
        let page = run_with(store, index, &request);
        assert_eq!(page.totals.entries, whole.totals.entries);
        assert_eq!(page.totals.sessions, whole.totals.sessions);
        found.extend(ids(&page));
        assert_eq!(page.has_more, found.len() < expected.len());
        request.after = page.hits.last().map(|(key, _)| key.clone());
        if !page.has_more {
            break;
        }
    }
    assert_eq!(found, expected);
}

/// Compares ten thousand needles, or a sample of one thousand. Each thread has its own sessions: two files of
/// `tests/data`, most of which are damaged, and two random sessions.
#[test]
fn random_needles_are_found_as_a_model_finds_them() {
    const THREADS: u64 = 4;
    let needles: usize = if sample::is_long_run() { 10_000 } else { 1_000 };
    let seed = sample::seed(sample::of_the_clock());
    let idle = IndexSettings { most: 0, ..INDEX };
    let work = |thread: u64| {
        let mut random = Random(seed.wrapping_add(thread));
        let files = data_files().into_iter().skip(thread as usize * 2).take(2);
        let folder = folder_of(&mut random, &files.collect::<Vec<_>>());
        let store = &Store::new(folder.path().to_owned());
        update_index(store);
        let entries = &model::entries(folder.path());
        let mut narrowed = 0;
        let found = compare(
            &mut random,
            entries,
            needles / THREADS as usize,
            |request| {
                let scanned = run(store, request);
                let indexed = run_with(store, idle, request);
                assert_eq!(ids(&indexed), ids(&scanned));
                assert_eq!(indexed.totals.sessions, scanned.totals.sessions);
                assert_eq!(indexed.totals.entries, scanned.totals.entries);
                narrowed +=
                    usize::from(indexed.totals.scanned_bytes < scanned.totals.scanned_bytes);
                scanned
            },
        );
        (found, narrowed)
    };
    let work = &work;
    let (found, narrowed) = std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| scope.spawn(move || work(thread)));
        let threads: Vec<_> = threads.collect();
        let sums = threads.into_iter().map(|thread| thread.join().unwrap());
        sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    assert!(
        found > needles / 2 && narrowed > needles / 4,
        "{found} {narrowed}"
    );
}

fn update_index(store: &Store) {
    let files = store.session_files().unwrap();
    index::update(&store.cache().unwrap(), INDEX, &files, &Cancel::new()).unwrap();
}

/// The files of the index, without the files of rows and openings.
fn index_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(folder.join(".cache")) else {
        return Vec::new();
    };
    let files = files.map(|file| file.unwrap().path());
    let is_search = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("search")
    };
    files.filter(is_search).collect()
}

/// A search with an index finds the same as a scan, also after files have grown, been replaced and been removed.
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
        // The index is not updated while the needles are compared.
        let idle = IndexSettings { most: 0, ..INDEX };
        let run = |request: &SearchRequest| {
            let outcome = run_with(&store, idle, request);
            let whole = run(&store, request);
            assert_eq!(ids(&outcome), ids(&whole));
            let is_less = outcome.totals.scanned_bytes < whole.totals.scanned_bytes;
            narrow.set(narrow.get() + usize::from(is_less));
            outcome
        };
        found += compare(&mut random, &model::entries(folder.path()), 100, run);
        let line = r#"{"type":"message","id":"late","parentId":"e3","message":{"role":"user","content":"日本語 latecomer"}}"#;
        let grown = folder.path().join("r0.jsonl");
        let text = fs::read_to_string(&grown).unwrap();
        fs::write(&grown, format!("{text}{line}\n")).unwrap();
        let other = generator::session(&mut random, "other", 10);
        fs::remove_file(folder.path().join("r1.jsonl")).unwrap();
        fs::write(folder.path().join("other.jsonl"), other).unwrap();
        found += compare(&mut random, &model::entries(folder.path()), 100, run);
        assert_eq!(run(&request("latecomer", Mode::Words)).hits.len(), 1);
        update_index(&store);
        found += compare(&mut random, &model::entries(folder.path()), 50, run);
        narrowed += narrow.get();
    }
    assert!(found > 500 && narrowed > 250, "{found} {narrowed}");
}

/// All items in a long run; otherwise the first one and a sample of the others.
fn sampled<T>(mut all: Vec<T>, count: usize) -> Vec<T> {
    if !sample::is_long_run() {
        let mut random = Random(sample::seed(sample::of_the_clock()));
        while all.len() > count {
            all.remove(1 + random.below(all.len() - 1));
        }
    }
    all
}

/// A session is opened only if one of its hits may be on the page. The hits of other sessions are counted without
/// opening them. Runs all six queries, or a sample of two.
#[test]
fn pages_and_totals_are_the_same_with_and_without_an_index() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..12 {
        let text = generator::session(&mut Random(number), &format!("s{number}"), 50);
        fs::write(folder.path().join(format!("s{number}.jsonl")), text).unwrap();
    }
    // For an entry with a second line, and for an entry without a time, the matching line alone does not decide the
    // hit.
    let line = r#"{"type":"message","id":"e1","parentId":null,"message":{"role":"user","content":"the error"}}"#;
    for name in ["s3.jsonl", "s4.jsonl"] {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        let line = line.replace(
            "\"e1\"",
            if name == "s3.jsonl" {
                "\"e1\""
            } else {
                "\"e99\""
            },
        );
        fs::write(path, format!("{text}{line}\n")).unwrap();
    }
    let store = Store::new(folder.path().to_owned());
    update_index(&store);
    let idle = IndexSettings { most: 0, ..INDEX };
    let queries = [
        ("error", Mode::Words),
        ("the", Mode::Words),
        ("日本", Mode::Words),
        ("E04", Mode::Literal),
        (r"x\.org|fails", Mode::Regex),
        (r"\d\d", Mode::Regex),
    ];
    for (text, mode) in sampled(queries.to_vec(), 2) {
        let whole = run(&store, &request(text, mode));
        assert!(whole.hits.len() > 20, "{text}");
        for limit in [9, 40] {
            check_pages(&store, NO_INDEX, request(text, mode), &whole, limit);
            check_pages(&store, idle, request(text, mode), &whole, limit);
        }
        let mut since = request(text, mode);
        since.since = treelined_core::timestamp::parse("2026-05-01T00:00:00.000Z");
        let whole = run(&store, &since);
        check_pages(&store, idle, since, &whole, 10);
    }
}

/// The index says which parts of files may have the best hits. The first page is the same as if all parts were
/// searched, and the totals say that not all parts were searched. Runs all 48 searches, or a sample of eight.
#[test]
fn a_page_needs_only_the_parts_that_may_have_its_hits() {
    let mut random = Random(23);
    let folder = tempfile::tempdir().unwrap();
    for number in 0..30 {
        let text = generator::session(&mut random, &format!("s{number}"), 40);
        fs::write(folder.path().join(format!("s{number}.jsonl")), text).unwrap();
    }
    let store = Store::new(folder.path().to_owned());
    update_index(&store);
    let early = IndexSettings {
        most: 0,
        first: 1,
        for_totals: 0,
        ..INDEX
    };
    let mut spared = 0;
    let some = FieldSet::of([FieldKind::ToolResults]);
    let filters = [
        (FieldSet::ALL, None, None),
        (some, None, None),
        (FieldSet::ALL, Some("toolResult"), None),
        (FieldSet::ALL, None, Some("bash")),
    ];
    let queries = [
        ("error", Mode::Words),
        ("the", Mode::Words),
        ("the error", Mode::Words),
        ("日本", Mode::Words),
        ("E04", Mode::Literal),
        (r"x\.org|fails", Mode::Regex),
    ];
    let searches = queries.iter().flat_map(|query| {
        let filters = filters.iter();
        filters.flat_map(move |filter| [(query, filter, 3), (query, filter, 20)])
    });
    for (&(text, mode), &(fields, role, tool), limit) in sampled(searches.collect(), 8) {
        let filtered = |limit| SearchRequest {
            fields,
            entries: vec![EntryFilter {
                role: role.map(str::to_owned),
                tool: tool.map(str::to_owned),
                ..EntryFilter::default()
            }],
            limit,
            ..request(text, mode)
        };
        let whole = run(&store, &filtered(1000));
        let mut paged = filtered(limit);
        let mut found = Vec::new();
        loop {
            let page = run_with(&store, early, &paged);
            found.extend(ids(&page));
            let is_all = page.totals.entries == whole.totals.entries;
            assert!(is_all || page.totals.are_least && page.has_more, "{text}");
            assert!(page.totals.entries <= whole.totals.entries);
            spared += usize::from(page.totals.are_least);
            paged.after = page.hits.last().map(|(key, _)| key.clone()).or(paged.after);
            if !page.has_more || page.hits.is_empty() {
                break;
            }
        }
        assert_eq!(found, ids(&whole), "{text} {limit}");
    }
    assert!(spared > 0, "some pages end before all parts are read");
}

/// A damaged cache does not hide a match: every cut and every change is detected.
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
    for round in 0..30 {
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

/// A killed process leaves unfinished files, and segments that no list names. They are removed, and the rest of the
/// index is used.
#[test]
fn an_index_left_by_a_killed_process_is_continued() {
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
    compare(
        &mut Random(19),
        &model::entries(folder.path()),
        50,
        |request| run_with(&store, IndexSettings { most: 0, ..INDEX }, request),
    );
}
