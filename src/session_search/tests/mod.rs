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

fn run(store: &Store, request: &SearchRequest) -> SearchOutcome {
    search(store, request, &Cancel::new(), &mut |_| {}).unwrap()
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

#[test]
fn ten_thousand_random_needles_are_found_as_a_model_finds_them() {
    let mut random = Random(7);
    let (mut checked, mut found) = (0, 0);
    for round in 0..20 {
        let folder = folder(&mut random, round);
        let store = Store::new(folder.path().to_owned());
        let entries = model::entries(folder.path());
        let mut tried = 0;
        while tried < 500 {
            let needle = generator::needle(&mut random, &entries);
            let Some((text, mode)) = query_of(&needle) else {
                continue;
            };
            let Ok(Some(_)) = Query::parse(&text, mode) else {
                continue;
            };
            tried += 1;
            let mut request = request(&text, mode);
            let takes = filter(&mut random, &mut request);
            let expected = model::find(&entries, &needle, takes, |kind| request.fields.has(kind));
            let outcome = run(&store, &request);
            let actual: BTreeSet<_> = ids(&outcome).into_iter().collect();
            let one = actual.symmetric_difference(&expected).next();
            let text = one.map(|one| {
                let is_it = |entry: &&ModelEntry| entry.session == one.0 && entry.id == one.1;
                entries.iter().find(is_it).map(|entry| &entry.fields)
            });
            assert_eq!(actual, expected, "{needle:?} {text:?} {:?}", request.fields);
            assert_eq!(
                outcome.totals.entries,
                outcome.hits.len() as u64,
                "{needle:?}"
            );
            found += actual.len();
        }
        checked += tried;
    }
    assert!(checked == 10_000 && found > 10_000, "{checked} {found}");
}
