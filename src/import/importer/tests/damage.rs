//! Damaged files: whole records are imported, and the other bytes are reported.

use super::*;
use crate::importer::origin::Origins;
use std::collections::BTreeSet;
use std::io::Read as _;

/// Imports a file that is cut at bytes of its last 4 KB: at every byte near the end, and at some bytes before.
fn cut(tool: Tool, name: &str, bytes: &[u8]) {
    let first = bytes.len().saturating_sub(4 << 10);
    let near = bytes.len().saturating_sub(64);
    let home = Home::new(tool);
    let ends = (first..near).step_by(41).chain(near..bytes.len());
    let mut last = 0;
    for end in ends {
        home.write(name, &bytes[..end]);
        let result = home.import();
        assert_eq!(result.totals.failed, 0, "{name} cut at {end}");
        let entries = result.files.first().map_or(last, |file| file.entries);
        assert!(
            entries >= last,
            "{name} cut at {end}: {entries} after {last}"
        );
        last = entries;
    }
}

#[test]
fn a_file_cut_at_any_byte_is_imported_as_far_as_it_goes() {
    cut(Tool::ClaudeCode, "s.jsonl", conversation().as_bytes());
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import");
    let pi = fs::read(data.join("pi/agentsview-session.jsonl")).unwrap();
    cut(Tool::Pi, "p.jsonl", &pi);
    let folder = data.join("codex/0.130-rollback");
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        cut(Tool::Codex, name, &fs::read(&path).unwrap());
    }
}

#[test]
fn glued_records_and_nul_bytes_lose_no_record() {
    let whole = Home::new(Tool::ClaudeCode);
    whole.write("s.jsonl", conversation());
    let whole = whole.import();
    let home = Home::new(Tool::ClaudeCode);
    let text = conversation();
    let glued = text.replacen("}\n{", "}{", 2);
    let damaged = glued.replacen("}\n{", "}\n\0\0\0\0\n{", 1);
    home.write("s.jsonl", damaged);
    let result = home.import();
    assert_eq!(result.files[0].unparsable.len(), 1);
    assert_eq!(
        texts(&path_of(&result.sessions[0])),
        texts(&path_of(&whole.sessions[0]))
    );
}

#[test]
fn a_source_that_cannot_be_read_is_reported_and_the_rest_is_imported() {
    let home = Home::new(Tool::Codex);
    codex(&home);
    let name = "rollout-2026-11-22T02-44-44-01a20124-4777-7de2-915b-000000000000.jsonl.zst";
    let damaged = home.write(name, b"\x28\xb5\x2f\xfd not Zstandard");
    let result = home
        .try_import(|request| request.paths.push(damaged))
        .unwrap();
    assert_eq!(result.totals.failed, 1);
    let failed = result
        .files
        .iter()
        .find(|file| file.error.is_some())
        .unwrap();
    assert!(failed.path.ends_with(name) && failed.tool.as_deref() == Some("codex"));
    assert_eq!(result.totals.entries_added, 21);
}

/// Codex moves and compresses its files, so their origins are found by file name. Two folders may have files of the
/// same name, for instance in a backup. The bytes of both are kept whole.
#[test]
fn files_of_one_name_are_kept_apart() {
    let home = Home::new(Tool::Codex);
    let folder = fixture("codex/0.169-paginated");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let rollout = files.min_by_key(|path| (!name(path).starts_with("rollout"), name(path)));
    let rollout = rollout.unwrap();
    let bytes = fs::read(&rollout).unwrap();
    let longer = [&bytes[..], b"{\"type\":\"unknown\"}\n"].concat();
    let mut kept = BTreeSet::new();
    for (at, bytes) in ["a", "b", "c"].into_iter().zip([&bytes, &longer, &bytes]) {
        fs::create_dir_all(home.root.path().join("files").join(at)).unwrap();
        home.write(&format!("{at}/{}", name(&rollout)), bytes);
        kept.insert(bytes.clone());
    }
    assert_eq!(home.import().totals.failed, 0);
    let origins = Origins::existing(&home.sessions()).unwrap();
    let names = Origins::names(&home.sessions());
    assert_eq!(names.len(), 3);
    let found = names.iter().map(|name| {
        let mut bytes = Vec::new();
        let mut reader = origins.reader(name.to_str().unwrap()).unwrap();
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), kept);
}
