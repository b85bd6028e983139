//! Compares answers with and without counts in the cache, and the scores with plain formulas.

use super::counts::{Counter, Counts};
use super::entries::CountedEntry;
use super::*;
use crate::request::{DirectoryTest, EntryFilter, FieldSet, SearchRequest, WantedDirectory};
use crate::tests::generator::{self, Random};
use crate::tests::{NO_INDEX, request};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use treelined_core::search::ask::{Corpus, Question, Term, bounded_weight, recency};
use treelined_core::search::{BranchFilter, FieldKind, Mode};
use treelined_files::os::handle::HandleAccess;

/// The sessions of a folder: enough for a segment.
const SESSIONS: usize = 66;
const NOW: Millis = 1_800_000_000_000;

fn session_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("s{number}.jsonl"))
}

fn write_session(random: &mut Random, folder: &Path, number: usize) {
    let length = random.below(12) + 1;
    let text = generator::session(random, &format!("s{number}"), length);
    fs::write(session_path(folder, number), text).unwrap();
}

fn folder(random: &mut Random) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    (0..SESSIONS).for_each(|number| write_session(random, folder.path(), number));
    folder
}

pub(super) fn asked(question: &str) -> Arc<AskRequest> {
    with_filters(question, request("x", Mode::Words))
}

fn with_filters(question: &str, filters: SearchRequest) -> Arc<AskRequest> {
    let question = Question::parse(question).unwrap();
    Arc::new(AskRequest {
        question,
        phrases: None,
        filters: filters.into(),
        read_time: None,
    })
}

fn directory(wanted: &'static str) -> WantedDirectory {
    WantedDirectory {
        written: wanted.to_owned(),
        has: DirectoryTest(Arc::new(move |cwd| Path::new(cwd).starts_with(wanted))),
    }
}

/// Questions with and without filters.
fn questions() -> Vec<Arc<AskRequest>> {
    let words = [
        "build fails",
        "cargo test error",
        "snake_case_name",
        "検索 parseError",
        "quotd bulid",
        "e0425",
        "src/lib.rs",
        "the",
        "nothing",
    ];
    let mut all: Vec<Arc<AskRequest>> = words.into_iter().map(asked).collect();
    let mut filtered = |question: &str, filter: &dyn Fn(&mut SearchRequest)| {
        let mut filters = request("x", Mode::Words);
        filter(&mut filters);
        all.push(with_filters(question, filters));
    };
    let entry = |role: &str| EntryFilter {
        role: Some(role.to_owned()),
        ..EntryFilter::default()
    };
    filtered("build", &|filters| {
        filters.directory = Some(directory("/home/ada"))
    });
    filtered("bulid", &|filters| {
        filters.directory = Some(directory("/home/bob"))
    });
    filtered("cargo label", &|filters| {
        filters.fields = FieldSet::of([FieldKind::Text, FieldKind::Labels]);
    });
    filtered("build test", &|filters| {
        filters.entries = vec![entry("user")]
    });
    filtered("fails", &|filters| {
        filters.branches = BranchFilter::Abandoned
    });
    filtered("error", &|filters| filters.since = Some(1_780_000_000_000));
    filtered("error build", &|filters| {
        filters.session = Some("s3".to_owned())
    });
    all
}

fn ranking(store: &Store, index: &AskIndex, request: &Arc<AskRequest>) -> Ranking {
    let searched = SearchedStore {
        store,
        index: NO_INDEX,
    };
    let mut watch = SearchWatch {
        on_hit: &mut |_| {},
        on_progress: &mut |_, _| {},
    };
    ask(searched, index, request, NOW, &Cancel::new(), &mut watch).unwrap()
}

/// An answer as text, without the number of bytes that were read for it.
fn answer(store: &Store, index: &AskIndex, request: &Arc<AskRequest>) -> String {
    let mut ranking = ranking(store, index, request);
    ranking.totals.scanned_bytes = 0;
    let page = ranking.page(store, 0..200, &Cancel::new()).unwrap();
    let Ranking {
        totals, near_words, ..
    } = ranking;
    format!("{totals:#?} {near_words:#?} {page:#?}")
}

/// Removes the cache, in which a thread may still be writing.
fn remove_cache(folder: &Path) {
    let cache = folder.join(".cache");
    while cache.exists() {
        let _again = fs::remove_dir_all(&cache);
    }
}

/// The answers from the session files, without the cache.
fn without_cache(folder: &Path) -> Vec<String> {
    let of = |request: &Arc<AskRequest>| {
        let store = Store::new(folder.to_owned());
        let answer = answer(&store, &AskIndex::default(), request);
        store.end();
        remove_cache(folder);
        answer
    };
    questions().iter().map(of).collect()
}

fn with_cache(store: &Store, index: &AskIndex) -> Vec<String> {
    let of = |request: &Arc<AskRequest>| answer(store, index, request);
    questions().iter().map(of).collect()
}

/// The files of segments in the cache.
fn segment_files(folder: &Path) -> Vec<PathBuf> {
    files_ending(folder, "counts")
}

/// The files in the cache with this ending.
fn files_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let cache = fs::read_dir(folder.join(".cache")).unwrap();
    let files = cache.map(|file| file.unwrap().path());
    let has_ending = |path: &PathBuf| path.extension().is_some_and(|it| it == ending);
    files.filter(has_ending).collect()
}

/// Asks until there are at least `count` segments.
fn wait_for_segments(store: &Store, folder: &Path, index: &AskIndex, count: usize) {
    for _ in 0..100 {
        answer(store, index, &asked("build"));
        store.settle();
        if segment_files(folder).len() >= count {
            return;
        }
    }
    panic!("{:?}", segment_files(folder));
}

#[track_caller]
fn assert_same(one: &[String], other: &[String]) {
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        assert_eq!(one, other, "question {number}");
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn answers_do_not_depend_on_what_is_kept() {
    for seed in 0..2 {
        let mut random = Random(seed);
        let folder = folder(&mut random);
        let path = folder.path();
        let expected = without_cache(path);
        assert!(expected.iter().filter(|one| one.contains("score:")).count() > 10);
        assert!(expected.iter().any(|one| one.contains("\"build\"")));
        let (store, index) = (Store::new(path.to_owned()), AskIndex::default());
        wait_for_segments(&store, path, &index, 1);
        assert_same(&with_cache(&store, &index), &expected);
        // A new process reads the segments. If the list is missing, it reads the counts of each session.
        assert_same(&with_cache(&store, &AskIndex::default()), &expected);
        fs::remove_file(path.join(".cache/ask.list")).unwrap();
        assert_same(&with_cache(&store, &AskIndex::default()), &expected);
        store.end();
    }
}

/// The pages together are the whole ranking, and the first pages open few sessions.
#[test]
fn a_page_opens_the_sessions_that_can_be_on_it() {
    let mut random = Random(5);
    let folder = folder(&mut random);
    let (store, index) = (Store::new(folder.path().to_owned()), AskIndex::default());
    let mut later = 0;
    for request in questions() {
        let whole = ranking(&store, &index, &request);
        let whole = whole.page(&store, 0..200, &Cancel::new()).unwrap();
        assert!(!whole.has_more);
        let ranking = ranking(&store, &index, &request);
        let (mut hits, mut more) = (Vec::new(), true);
        while more {
            let places = hits.len()..hits.len() + 3;
            let page = ranking.page(&store, places, &Cancel::new()).unwrap();
            more = page.has_more;
            hits.extend(page.hits);
            later += ranking.unopened();
        }
        assert_eq!(hits, whole.hits, "{:?}", request.question);
        assert_eq!(ranking.unopened(), 0);
    }
    assert!(later > 100, "{later}");
    store.end();
}

#[test]
fn changed_sessions_are_read_anew_and_segments_of_them_given_up() {
    let mut random = Random(9);
    let folder = folder(&mut random);
    let path = folder.path();
    let (store, index) = (Store::new(path.to_owned()), AskIndex::default());
    wait_for_segments(&store, path, &index, 1);
    let first = segment_files(path);
    for number in 0..5 {
        write_session(&mut random, path, number);
    }
    let appended = "{\"type\":\"message\",\"id\":\"new\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"build\"}}\n";
    let text = fs::read_to_string(session_path(path, 6)).unwrap();
    fs::write(session_path(path, 6), text + appended).unwrap();
    fs::remove_file(session_path(path, 7)).unwrap();
    let now = with_cache(&store, &index);
    store.settle();
    assert_eq!(
        segment_files(path),
        first,
        "a few changed sessions do not make a segment"
    );
    // All other sessions change, so no row of the segment is valid.
    for number in 8..SESSIONS {
        write_session(&mut random, path, number);
    }
    let later = with_cache(&store, &index);
    store.settle();
    answer(&store, &index, &asked("build"));
    store.settle();
    let cache = store.cache().unwrap();
    let now_read = index.segments(&cache, store.kept());
    assert!(
        now_read
            .files()
            .iter()
            .all(|file| !first.iter().any(|old| old.ends_with(file)))
    );
    let in_segments = with_cache(&store, &index);
    store.end();
    remove_cache(path);
    assert_same(&later, &without_cache(path));
    assert_same(&in_segments, &later);
    assert_ne!(now, later);
}

/// The counts of half a gigabyte of sessions once took 591 MB, since each session had its counts both in a file and in
/// a segment.
#[test]
fn counts_are_kept_once() {
    let mut random = Random(12);
    let folder = folder(&mut random);
    let path = folder.path();
    let (store, index) = (Store::new(path.to_owned()), AskIndex::default());
    wait_for_segments(&store, path, &index, 1);
    assert_eq!(files_ending(path, "terms"), Vec::<PathBuf>::new());
    let first = segment_files(path);
    // Most sessions of the segment change, and there are new sessions, so the segment is discarded. The unchanged
    // sessions are counted again for the next segment.
    let half = SESSIONS / 2 + 1;
    for number in (0..half).chain(SESSIONS..SESSIONS + half) {
        write_session(&mut random, path, number);
    }
    for _ in 0..2 {
        answer(&store, &index, &asked("build"));
        store.settle();
    }
    let cache = store.cache().unwrap();
    let read = index.segments(&cache, store.kept()).files();
    assert!(
        read.iter()
            .all(|name| !first.iter().any(|old| old.ends_with(name)))
    );
    let now = ranking(&store, &index, &asked("build fails"));
    assert_eq!(now.totals.scanned_bytes, 0);
    assert_eq!(files_ending(path, "terms"), Vec::<PathBuf>::new());
    store.end();
}

/// A damaged block is not used, and the segment is made again.
#[test]
fn a_damaged_segment_changes_no_answer_and_is_made_again() {
    let mut random = Random(4);
    let folder = folder(&mut random);
    let path = folder.path();
    let expected = without_cache(path);
    let (store, index) = (Store::new(path.to_owned()), AskIndex::default());
    wait_for_segments(&store, path, &index, 1);
    let segment = segment_files(path).remove(0);
    let whole = fs::read(&segment).unwrap();
    let damage = |at: usize, index: &AskIndex| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&segment, bytes).unwrap();
        assert_same(&with_cache(&store, index), &expected);
        store.settle();
        answer(&store, index, &asked("build"));
        store.settle();
        let cache = store.cache().unwrap();
        let names = index.segments(&cache, store.kept()).files();
        assert!(
            names.iter().any(|name| !segment.ends_with(name)),
            "{at}: {names:?}"
        );
        // The next round begins with the first segment again.
        fs::write(&segment, &whole).unwrap();
        segments::save(&cache, &[0]).unwrap();
    };
    for at in (0..whole.len()).step_by(whole.len() / 4) {
        damage(at, &AskIndex::default());
    }
    // This segment is damaged while it is open.
    let open = AskIndex::default();
    answer(&store, &open, &asked("build"));
    assert_same(&with_cache(&store, &open), &expected);
    fs::write(&segment, &whole[..whole.len() / 2]).unwrap();
    assert_same(&with_cache(&store, &AskIndex::default()), &expected);
    store.end();
}

/// The score of a unit (an entry, a branch or a session) for one term, computed anew for each unit.
fn plain_bm25((all, with): (u64, u64), (weight, terms): (u64, u64), all_terms: u64) -> f64 {
    let mean = all_terms as f64 / all.max(1) as f64;
    let (all, with) = (all.max(with) as f64, with as f64);
    let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
    let weight = weight as f64 / 4.0;
    let length = 1.0 - 0.6 + 0.6 * terms as f64 / mean.max(1.0);
    rarity * weight * (1.2 + 1.0) / (weight + 1.2 * length)
}

/// The weight of a term in those entries of a session for which `is_meant` is true.
fn plain_weight(counts: &Counts, term: Term, is_meant: impl Fn(&CountedEntry) -> bool) -> u64 {
    let postings = counts.postings.get(&term).into_iter().flatten();
    let own = postings.filter(|one| is_meant(&counts.entries[one.entry as usize]));
    own.map(|one| u64::from(bounded_weight(one.weight, one.fields)))
        .sum()
}

/// For each entry that has a term: its session's number, its offset, its own score, and the score of its session.
fn plain_scores(request: &AskRequest, all: &[Counts]) -> Vec<(usize, u64, f64, f64)> {
    let mut corpus = Corpus::default();
    for own in all.iter().map(Counts::corpus) {
        corpus.entries += own.entries;
        corpus.sessions += own.sessions;
        corpus.branches += own.branches;
        corpus.terms += own.terms;
    }
    let with = |term: Term| {
        let (mut entries, mut branches, mut sessions) = (0, 0, 0);
        for counts in all {
            let postings = counts.postings.get(&term).into_iter().flatten();
            let in_branches = postings.map(|one| counts.entries[one.entry as usize].branch);
            let in_branches: Vec<u32> = in_branches.collect();
            entries += in_branches.len() as u64;
            branches += in_branches.iter().collect::<HashSet<_>>().len() as u64;
            sessions += u64::from(!in_branches.is_empty());
        }
        (entries, branches, sessions)
    };
    let terms = request.question.terms().iter();
    let terms: Vec<_> = terms
        .map(|one| (one.term, one.weight, with(one.term)))
        .collect();
    let mut scores = Vec::new();
    for (number, counts) in all.iter().enumerate() {
        let terms_of = |is_meant: &dyn Fn(&CountedEntry) -> bool| -> u64 {
            let own = counts.entries.iter().filter(|entry| is_meant(entry));
            own.map(|entry| u64::from(entry.terms)).sum()
        };
        let of_session = terms_of(&|_| true);
        let (mut own_scores, mut best) = (Vec::new(), vec![0.0_f64; terms.len()]);
        for entry in &counts.entries {
            let is_own = |one: &CountedEntry| one.offset == entry.offset;
            let has = |(term, ..): &(Term, f64, _)| plain_weight(counts, *term, is_own) > 0;
            if !terms.iter().any(has) {
                continue;
            }
            let is_of_branch = |one: &CountedEntry| one.branch == entry.branch;
            let of_branch = terms_of(&is_of_branch);
            let of_terms = terms.iter().zip(&mut best);
            let own: f64 = of_terms
                .map(
                    |((term, term_weight, (entries, branches, sessions)), best)| {
                        let unit = |all, with, weight, terms| {
                            plain_bm25((all, with), (weight, terms), corpus.terms)
                        };
                        let weight = plain_weight(counts, *term, is_own);
                        let own = unit(corpus.entries, *entries, weight, u64::from(entry.terms));
                        *best = best.max(term_weight * own);
                        let weight = plain_weight(counts, *term, |_| true);
                        let session = 0.5 * unit(corpus.sessions, *sessions, weight, of_session);
                        let weight = plain_weight(counts, *term, is_of_branch);
                        let branch = 0.3 * unit(corpus.branches, *branches, weight, of_branch);
                        term_weight * (own + (session + branch))
                    },
                )
                .sum();
            own_scores.push((entry.offset, own * recency(entry.at.unwrap_or(0), NOW)));
        }
        let together: f64 = best.into_iter().sum();
        let own_scores = own_scores.into_iter();
        scores.extend(own_scores.map(|(offset, own)| (number, offset, own, together)));
    }
    scores
}

#[test]
fn scores_are_those_of_the_plain_formulas() {
    let mut random = Random(5);
    let folder = folder(&mut random);
    let path = folder.path();
    let (store, index) = (Store::new(path.to_owned()), AskIndex::default());
    wait_for_segments(&store, path, &index, 1);
    let files = store.session_files().unwrap();
    let counts = |(location, status): &(Location, Status)| {
        let file = location
            .folder
            .file(&location.name, HandleAccess::Read)
            .unwrap();
        let counter = Counter::new(None, Counts::default());
        counter.read(&file, 0..status.size, &Cancel::new()).unwrap()
    };
    let all: Vec<Counts> = files.iter().map(counts).collect();
    let segments = index.segments(&store.cache().unwrap(), store.kept());
    assert!(
        files
            .iter()
            .all(|(_, status)| segments.row(*status).is_some())
    );
    for question in [
        "build fails",
        "cargo test error",
        "snake_case_name 検索",
        "src/lib.rs e0425",
    ] {
        let request = asked(question);
        let gatherer = Gatherer {
            request: &request,
            cache: None,
            cancel: &Cancel::new(),
            reads_all: false,
            until: None,
            read: &HashMap::new(),
            found: segments.look_up(&request.terms(), &[], &files),
            segments: &segments,
        };
        let counted = gather::all(&gatherer, &files, |_, _| {}, |_| {}).unwrap();
        let found = gather::best(&request, &counted, files.len(), NOW);
        let plain = plain_scores(&request, &all);
        assert_eq!(found.of_file.iter().sum::<u64>(), found.entries);
        let plain: HashMap<(usize, u64), (u64, u64)> = plain
            .iter()
            .map(|(file, offset, own, together)| {
                ((*file, *offset), (own.to_bits(), together.to_bits()))
            })
            .collect();
        assert!(found.candidates.len() > 20);
        for one in &found.candidates {
            let expected = plain[&(one.file, one.offset)];
            assert_eq!(
                (one.own.to_bits(), one.together.to_bits()),
                expected,
                "{one:?}"
            );
        }
        // An entry that was left out has no higher score than the last candidate, unless its session has eight better
        // entries.
        let last = found.candidates.last().unwrap().score();
        let of_file = |file| found.candidates.iter().filter(move |one| one.file == file);
        for ((file, offset), (own, together)) in &plain {
            let is_taken = of_file(*file).any(|one| one.offset == *offset);
            let score = f64::from_bits(*own) + f64::from_bits(*together);
            assert!(is_taken || score <= last || of_file(*file).count() == 8);
        }
    }
    store.end();
}
