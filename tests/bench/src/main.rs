//! Measures treelined, pi's own SessionManager and the limit of the machine in turns, and prints a table.
//! `tests/bench/run` builds everything and runs it.
//!
//! - [`rows`]: a file for each group of rows, with what is measured and how;
//! - [`daemon`], [`pi`], [`machine`]: the three that are measured;
//! - [`shared`]: the daemon on a socket, and its clients;
//! - [`world`]: the folders of one measurement;
//! - [`table`]: medians, targets, and how they are shown; [`record`]: where they are written.

mod daemon;
mod machine;
mod pi;
mod record;
mod rows;
mod shared;
mod table;
mod web_socket;
mod world;

use anyhow::{Context, Result, bail, ensure};
use record::Record;
use std::path::PathBuf;
use table::Table;

/// The options of a run.
pub struct Bench {
    pub treelined: PathBuf,
    pub pi: Option<pi::Install>,
    pub oh_my_pi: Option<pi::Install>,
    /// The folder of generated sessions and scratch folders, all on one disk.
    pub folder: PathBuf,
    pub library: treelined_bench::library::Library,
    /// The numbers of entries of conversations.
    pub sizes: Vec<u32>,
    /// The numbers of sessions in a session directory.
    pub counts: Vec<u32>,
    /// The bytes of a session directory that is searched with the index. By default there is no such measurement.
    pub index_bytes: Option<u64>,
    /// Only groups of rows with this text in their names are measured.
    pub only: Option<String>,
    /// Whether the rows are written into the documents of the repository, which is the working directory.
    pub write: bool,
    /// The number of times that each operation is measured. Slow operations are measured fewer times.
    pub rounds: usize,
}

impl Bench {
    /// The size for rows that are measured at one size only.
    pub fn main_size(&self) -> u32 {
        let fits = self.sizes.iter().copied().filter(|size| *size <= 100_000);
        fits.max().unwrap_or(100_000)
    }

    /// The number of rounds for a session of this size. Slow measurements have fewer rounds.
    pub fn rounds_for(&self, entries: u32) -> usize {
        match entries {
            0..=100_000 => self.rounds,
            _ => self.rounds.div_ceil(2),
        }
    }

    pub fn say(&self, what: &str) {
        eprintln!("bench: {what}");
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    // In some measurements, this program is also the other side.
    match arguments.next().as_deref() {
        Some("line-server") => return machine::serve_lines(),
        Some("source") => return machine::serve_bytes(arguments.next().context("bytes")?.parse()?),
        Some("append") => return rows::append::in_process(arguments),
        _ => {}
    }
    let bench = parse()?;
    let record = bench.write.then(Record::begin).transpose()?;
    let mut table = Table::default();
    for (group, measure) in rows::GROUPS {
        if bench
            .only
            .as_ref()
            .is_none_or(|only| group.contains(only.as_str()))
        {
            bench.say(group);
            let before = table.rows.len();
            if let Err(error) = measure(&bench, &mut table) {
                table.failed(group, &error);
            }
            for row in &table.rows[before..] {
                eprintln!("{}", row.line());
            }
        }
    }
    println!("{}", table.markdown());
    if let Some(record) = record {
        ensure!(table.is_complete(), "not written, since rows are missing");
        record.write(&table)?;
    }
    Ok(())
}

fn parse() -> Result<Bench> {
    let mut arguments = std::env::args().skip(1);
    let (mut treelined, mut pi, mut oh_my_pi, mut folder) = (None, None, None, None);
    let (mut sizes, mut counts) = (vec![1_000, 10_000, 100_000, 1_000_000], vec![2_000, 10_000]);
    let (mut only, mut rounds, mut index_bytes, mut write) = (None, 5, None, false);
    while let Some(flag) = arguments.next() {
        if flag == "--quick" {
            sizes.retain(|size| *size <= 100_000);
            counts.retain(|count| *count <= 2_000);
            rounds = 3;
            continue;
        }
        if flag == "--write" {
            write = true;
            continue;
        }
        let value = arguments
            .next()
            .with_context(|| format!("{flag} takes a value"))?;
        match flag.as_str() {
            "--treelined" => treelined = Some(PathBuf::from(value)),
            "--pi" => pi = pi::Install::pi(&PathBuf::from(value)),
            "--oh-my-pi" => oh_my_pi = pi::Install::oh_my_pi(&PathBuf::from(value)),
            "--folder" => folder = Some(PathBuf::from(value)),
            "--sizes" => sizes = numbers(&value)?,
            "--sessions" => counts = numbers(&value)?,
            "--index-gigabytes" => index_bytes = Some(value.parse::<u64>()? * 1_000_000_000),
            "--only" => only = Some(value),
            "--rounds" => rounds = value.parse()?,
            _ => bail!("unknown argument {flag}"),
        }
    }
    let folder = folder.context("--folder")?;
    ensure!(
        !write || only.is_none(),
        "--write is for all rows, without --only"
    );
    Ok(Bench {
        treelined: treelined.context("--treelined")?,
        pi,
        oh_my_pi,
        library: treelined_bench::library::Library::new(&folder)?,
        folder,
        sizes,
        counts,
        index_bytes,
        only,
        write,
        rounds,
    })
}

/// Sizes as text: `1k,100k,1m`.
fn numbers(list: &str) -> Result<Vec<u32>> {
    let number = |word: &str| {
        let word = word.to_ascii_lowercase();
        let (digits, unit) = match word.strip_suffix(['k', 'm']) {
            Some(digits) if word.ends_with('k') => (digits, 1_000),
            Some(digits) => (digits, 1_000_000),
            None => (word.as_str(), 1),
        };
        let digits: u32 = digits
            .parse()
            .with_context(|| format!("{word} is not a number"))?;
        Ok(digits * unit)
    };
    list.split(',').map(number).collect()
}
