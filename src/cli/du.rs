//! `treelined du`: measures the disk space of the session directory (usage.md).

use super::options::Options;
use super::screen::{Screen, Style};
use super::words::count;
use clap::Args;
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use treelined_core::terminal;

/// The width of the column of names.
const NAMES: usize = 12;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined du
  treelined du --json | jq .total.bytes

What can be done: treelined purge empties the trash; the cache may be deleted at any time, and is made again; \
treelined import --forget SESSION removes the kept sources of a session; treelined rm moves a session to the trash.")]
pub(crate) struct DuArgs {
    /// Print bytes and numbers of files as JSON
    #[arg(long)]
    json: bool,
}

/// The purpose of a file in the session directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Sessions,
    Beside,
    Originals,
    Trash,
    Index,
    Cache,
    Other,
}

impl Part {
    const ALL: [Self; 7] = [
        Self::Sessions,
        Self::Beside,
        Self::Originals,
        Self::Trash,
        Self::Index,
        Self::Cache,
        Self::Other,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Beside => "beside",
            Self::Originals => "originals",
            Self::Trash => "trash",
            Self::Index => "index",
            Self::Cache => "cache",
            Self::Other => "other",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Sessions => "session files, archived ones too",
            Self::Beside => {
                "originals of migrations, damaged lines, shed branches, files of a team"
            }
            Self::Originals => "kept sources of imported sessions",
            Self::Trash => "deleted sessions",
            Self::Index => "the search index",
            Self::Cache => "other derived data",
            Self::Other => "marks, files for other agents, unfinished files",
        }
    }

    /// The purpose of the file with this path below the session directory.
    fn of(path: &Path) -> Self {
        let parts: Vec<&str> = path.iter().filter_map(OsStr::to_str).collect();
        match *parts.as_slice() {
            [".trash", ..] => Self::Trash,
            [".origins" | ".imports", ..] => Self::Originals,
            [".cache", name] if is_of_index(name) => Self::Index,
            [".cache", ..] => Self::Cache,
            [folder, ..] if folder.starts_with('.') => Self::Other,
            [name] | [_, name] if name.starts_with('.') => Self::Other,
            [name] | [_, name] if name.ends_with(".jsonl") => Self::Sessions,
            [name] | [_, name] | [_, name, _] if name.contains(".jsonl.") => Self::Beside,
            _ => Self::Other,
        }
    }
}

/// Whether a cache file belongs to the search index.
fn is_of_index(name: &str) -> bool {
    const ENDINGS: [&str; 3] = [".words", ".terms", ".counts"];
    name.starts_with("search")
        || name == "ask.list"
        || ENDINGS.iter().any(|end| name.ends_with(end))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    files: u64,
    bytes: u64,
}

impl Size {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

pub(super) fn run(options: &Options, du: &DuArgs) -> anyhow::Result<ExitCode> {
    let root = options.config()?.daemon.session_dir;
    let sizes = measure(&root)?;
    let mut total = Size::default();
    for (_, size) in &sizes {
        total.files += size.files;
        total.bytes = total.bytes.saturating_add(size.bytes);
    }
    let mut screen = Screen::new();
    if du.json {
        let described = |size: &Size| json!({ "files": size.files, "bytes": size.bytes });
        let mut parts = serde_json::Map::new();
        for (part, size) in &sizes {
            parts.insert(part.name().to_owned(), described(size));
        }
        let path = root.display().to_string();
        let text = json!({ "path": path, "parts": parts, "total": described(&total) }).to_string();
        writeln!(screen, "{}", terminal::json(&text))?;
    } else {
        show(&mut screen, &root, &sizes, total)?;
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn show(screen: &mut Screen, root: &Path, sizes: &[(Part, Size)], total: Size) -> io::Result<()> {
    let root = terminal::line(&root.display().to_string()).into_owned();
    writeln!(screen, "{}", screen.style(Style::Bold, &root))?;
    for (part, size) in sizes.iter().filter(|(_, size)| size.files > 0) {
        let line = line(part.name(), *size);
        let meaning = format!("  {}", part.meaning());
        let fits = terminal::width(&line) + meaning.len() <= screen.columns;
        let meaning = if fits { meaning } else { String::new() };
        writeln!(screen, "{line}{}", screen.style(Style::Dim, &meaning))?;
    }
    writeln!(screen, "{}", line("total", total))
}

fn line(name: &str, size: Size) -> String {
    let files = count(size.files, "file", "files");
    format!("{name:<NAMES$}{:>9}  {files:>11}", amount(size.bytes))
}

/// A number of bytes in words, such as `512 B`, `1.5 KiB` or `12.0 GiB`.
pub(super) fn amount(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = UNITS.iter().find(|(shift, _)| bytes >> shift > 0);
    match unit {
        None => format!("{bytes} B"),
        Some((shift, name)) => {
            let tenths = (bytes >> (shift - 10)) % 1024 * 10 / 1024;
            format!("{}.{tenths} {name}", bytes >> shift)
        }
    }
}

/// The sizes of all parts. A directory that does not exist has size 0, and files that are removed meanwhile
/// are not counted.
fn measure(root: &Path) -> io::Result<Vec<(Part, Size)>> {
    let mut sizes = Part::ALL.map(|part| (part, Size::default()));
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(named(&folder, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| named(&folder, &error))?;
            // For a link, only the link itself is counted, since its target is elsewhere.
            let Ok(status) = entry.metadata() else {
                continue;
            };
            let path = entry.path();
            if status.is_dir() {
                folders.push(path);
                continue;
            }
            let part = Part::of(path.strip_prefix(root).unwrap_or(&path));
            let size = sizes.iter_mut().find(|(of, _)| *of == part);
            if let Some((_, size)) = size {
                size.add(status.len());
            }
        }
    }
    Ok(sizes.to_vec())
}

fn named(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("read {}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_part() {
        for (path, part) in [
            ("--p--/a.jsonl", Part::Sessions),
            ("a.jsonl", Part::Sessions),
            ("--p--/a.jsonl.v1.bak", Part::Beside),
            ("--p--/a.jsonl.quarantine/1.damaged", Part::Beside),
            ("--p--/a.jsonl.cold", Part::Beside),
            ("--p--/.a.jsonl.0.treelined.tmp", Part::Other),
            ("--p--/inner/a.jsonl", Part::Other),
            (".trash/a.jsonl", Part::Trash),
            (".trash/a.jsonl.quarantine/1.damaged", Part::Trash),
            (".origins/x/1", Part::Originals),
            (".imports/ledger.jsonl", Part::Originals),
            (".cache/sessions.rows", Part::Cache),
            (".cache/search.list", Part::Index),
            (".cache/0123.words", Part::Index),
            (".cache/ask.list", Part::Index),
            (".cache/ask-3.counts", Part::Index),
            (".marks.jsonl", Part::Other),
            (".continuations/x.md", Part::Other),
        ] {
            assert_eq!(Part::of(Path::new(path)), part, "{path}");
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (12 << 30, "12.0 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(amount(bytes), shown);
        }
    }
}
