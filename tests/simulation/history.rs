//! A history: a disk with some sessions, several writers, and the check of every disk that may be left.

use crate::book::Book;
use crate::verify::{Expected, verify};
use crate::writer::Writer;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use treelined_core::defect;
use treelined_files::invariant::watch;
use treelined_files::os::file::Folder;
use treelined_files::os::simulated::{Disk, LeftOut, Profile, Random, Rules, World};

/// The session directory of the simulated machine.
pub const SESSIONS: &str = "/sessions";
/// The disks that are made from each power cut.
const PROFILES: [Profile; 9] = [
    Profile::Synced,
    Profile::Ordered { sector: 512 },
    Profile::Ordered { sector: 4096 },
    Profile::Anything { sector: 512 },
    Profile::Anything { sector: 512 },
    Profile::Anything { sector: 512 },
    Profile::Anything { sector: 4096 },
    Profile::Anything { sector: 4096 },
    Profile::Anything { sector: 4096 },
];

/// What a seed decides before a history begins.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    pub writers: usize,
    /// The writer that takes no lock.
    pub lockless: Option<usize>,
    pub kills: Vec<(usize, u64)>,
    pub cut_at: Option<u64>,
    /// Whether the disk is full for some time.
    pub fills: bool,
    /// Whether sessions are deleted and restored.
    pub deletes: bool,
    /// Whether reads, writes and syncs fail for some time.
    pub breaks: bool,
    /// Whether the writers mostly move branches and sessions.
    pub moves: bool,
}

/// The counts of a history, and a hash of its calls.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub calls: u64,
    pub acked: usize,
    pub states: usize,
    pub verbs: BTreeMap<&'static str, u64>,
    pub hash: u64,
    pub trace: Vec<String>,
}

/// The facts that did not hold (session-file.md §3.7), of each process the first one.
type Violated = Arc<Mutex<Vec<&'static str>>>;

impl Setting {
    fn of(seed: u64, random: &mut Random) -> Self {
        let setting = Self::some(random);
        match seed % 5 {
            4 => Self {
                writers: 1 + (seed / 5 % 2) as usize,
                lockless: None,
                deletes: true,
                moves: true,
                ..setting
            },
            _ => setting,
        }
    }

    fn some(random: &mut Random) -> Self {
        // Branches are shed only while no other process has the session open.
        let most = if random.one_in(3) { 2 } else { 8 };
        let writers = 1 + random.below(most) as usize;
        let lockless = (writers > 1 && random.one_in(3)).then(|| random.below(writers as u64));
        let mut kills = Vec::new();
        if random.one_in(3) {
            for writer in 0..writers {
                if random.one_in(2) {
                    kills.push((writer, 1 + random.below(400)));
                }
            }
        }
        Self {
            writers,
            lockless: lockless.map(|number| number as usize),
            kills,
            cut_at: random
                .one_in(2)
                .then(|| 1 + random.below(200 * writers as u64)),
            fills: random.one_in(4),
            deletes: random.one_in(3),
            breaks: random.one_in(3),
            moves: false,
        }
    }
}

/// The sessions that exist before a history, of all versions of the format: their ids, and the ids and tags of their
/// entries.
fn first_disk(random: &mut Random, book: &Book) -> Disk {
    let rules = Rules {
        left_out: LeftOut::Nothing,
        cut_at: None,
        is_traced: false,
    };
    let world = World::new(Disk::new(), random.number(), 1, rules);
    let count = 1 + random.below(3);
    let sessions: Vec<(String, u64, bool)> = (0..count)
        .map(|number| {
            (
                format!("s{number}"),
                [1, 2, 3, 3][random.below(4) as usize],
                random.one_in(3),
            )
        })
        .collect();
    world.run(0, || {
        let root = Arc::new(Folder::open_or_create(Path::new(SESSIONS)).unwrap());
        let folder = root
            .subfolder_or_create("--home-ada-project--".as_ref())
            .unwrap();
        for (id, version, is_damaged) in &sessions {
            let name = format!("2026-01-01T00-00-00-000Z_{id}.jsonl");
            let mut file = folder.create(name.as_ref()).unwrap();
            let text = first_text(id, *version, *is_damaged, book);
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        }
    });
    book.lock().sessions = sessions.into_iter().map(|(id, ..)| id).collect();
    world.disk().after_cut(Profile::All, random)
}

fn first_text(session: &str, version: u64, is_damaged: bool, book: &Book) -> String {
    let time = "2026-01-01T00:00:00.000Z";
    let mut text = match version {
        1 => format!(
            r#"{{"type":"session","id":"{session}","timestamp":"{time}","cwd":"/home/ada/project"}}"#
        ),
        _ => format!(
            r#"{{"type":"session","version":{version},"id":"{session}","timestamp":"{time}","cwd":"/home/ada/project"}}"#
        ),
    };
    text.push('\n');
    let mut parent = "null".to_owned();
    for number in 0..4 {
        let (id, tag) = (
            format!("{session}e{number}"),
            format!("<{session}.{number}>"),
        );
        let names = match version {
            1 => String::new(),
            _ => format!(r#","id":"{id}","parentId":{parent}"#),
        };
        text.push_str(&format!(
            "{{\"type\":\"message\"{names},\"timestamp\":\"{time}\",\"message\":{{\"role\":\"user\",\"content\":\"{tag}\"}}}}\n"
        ));
        parent = format!("\"{id}\"");
        if is_damaged && number == 1 {
            text.push_str("{\"type\":\"mess\n");
        }
        let answered = book.moment();
        book.lock().acked.push(crate::book::Acked {
            session: session.to_owned(),
            // The ids of version 1 are derived.
            id: if version == 1 { String::new() } else { id },
            tag,
            writer: usize::MAX,
            began: answered,
            answered,
            is_durable: true,
            is_doubtful: false,
            is_lockless: false,
        });
    }
    text
}

/// Records the first fact that does not hold on this thread. What comes after it are its consequences.
fn watch_facts(violated: Violated) {
    let has_failed = Cell::new(false);
    watch::with(move |fact, holds| {
        if !holds && !has_failed.replace(true) {
            violated.lock().unwrap().push(fact);
        }
    });
}

/// Runs the writers of the history of a seed. All of them have the defect that breaks the fact `broken`.
fn run_writers(
    world: &Arc<World>,
    book: &Book,
    setting: &Setting,
    violated: &Violated,
    broken: Option<&'static str>,
) {
    std::thread::scope(|scope| {
        for number in 0..setting.writers {
            let violated = Arc::clone(violated);
            scope.spawn(move || {
                watch_facts(violated);
                defect::put(broken);
                world.run(number, || Writer::new(number, world, book, setting).run())
            });
        }
    });
}

/// Runs the history of a seed with the defect that breaks a fact. Returns the facts that did not hold, of each process the
/// first one.
pub fn run_with_defect(seed: u64, broken: &'static str) -> BTreeSet<&'static str> {
    let violated = Violated::default();
    let mut random = Random::new(seed);
    let setting = Setting {
        cut_at: None,
        kills: Vec::new(),
        ..Setting::of(seed, &mut random)
    };
    let book = Book::default();
    let rules = Rules {
        left_out: LeftOut::Nothing,
        cut_at: None,
        is_traced: false,
    };
    let disk = first_disk(&mut random, &book);
    let world = World::new(disk, random.number(), setting.writers, rules);
    run_writers(&world, &book, &setting, &violated, Some(broken));
    violated.lock().unwrap().iter().copied().collect()
}

/// Runs the history of a seed, and checks what it leaves. The error says what is wrong.
pub fn run(seed: u64, left_out: LeftOut, is_traced: bool) -> Result<Outcome, String> {
    let violated = Violated::default();
    watch_facts(Arc::clone(&violated));
    let mut random = Random::new(seed);
    let setting = Setting::of(seed, &mut random);
    let book = Book::default();
    let disk = first_disk(&mut random, &book);
    let rules = Rules {
        left_out,
        cut_at: setting.cut_at,
        is_traced,
    };
    let world = World::new(disk, random.number(), setting.writers, rules);
    for (writer, call) in &setting.kills {
        world.kill_at(*writer, *call);
    }
    run_writers(&world, &book, &setting, &violated, None);
    let (hash, trace) = world.trace();
    let calls = trace.clone();
    let pages = book.lock().clone();
    let mut outcome = Outcome {
        calls: world.calls(),
        acked: pages.acked.len(),
        states: 0,
        verbs: pages.done.clone(),
        hash,
        trace,
    };
    let said = |error: String| {
        let calls: String = calls.iter().flat_map(|call| [call, "\n"]).collect();
        format!("{calls}{error}\n{setting:?}")
    };
    if let Some(fact) = violated.lock().unwrap().first() {
        return Err(said(format!("this fact does not hold: {fact}")));
    }
    if let Some(fault) = pages.faults.first() {
        return Err(said(fault.clone()));
    }
    let is_quiet = !world.is_cut()
        && setting.kills.is_empty()
        && !setting.fills
        && !setting.deletes
        && !setting.breaks;
    let all = Expected {
        unsynced: true,
        lockless: is_quiet,
    };
    let synced = Expected {
        unsynced: false,
        lockless: false,
    };
    let disk = world.disk();
    let profiles = [(Profile::All, all)].into_iter();
    for (profile, expected) in profiles.chain(PROFILES.map(|profile| (profile, synced))) {
        let left = disk.after_cut(profile, &mut random);
        outcome.states += 1;
        let judged = verify(left, &pages, expected, random.number());
        judged.map_err(|error| said(format!("{profile:?}: {error}")))?;
    }
    if let Some(fact) = violated.lock().unwrap().first() {
        return Err(said(format!("this fact does not hold: {fact}")));
    }
    Ok(outcome)
}
