//! Measures the redaction: `figures speed` prints its speed, `figures FOLDER…` counts what it replaces in real text.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs
)]

use std::path::Path;
use std::time::Instant;
use treelined_redact::{KnownValues, Redactor};

fn main() {
    let redactor = Redactor::new(true, None).unwrap();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "speed") {
        speed(&redactor);
        return;
    }
    let (mut lines, mut hits, mut bytes) = (0_usize, 0_usize, 0_usize);
    for folder in &args {
        walk(Path::new(folder), &mut |path| {
            let Ok(text) = std::fs::read_to_string(path) else {
                return;
            };
            lines += text.lines().count();
            bytes += text.len();
            for (kind, span) in redactor.secrets(&text) {
                hits += 1;
                let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
                let around: String = text[start..span.start].chars().rev().take(80).collect();
                let around: String = around.chars().rev().collect();
                let secret: String = text[span].chars().take(60).collect();
                println!("{kind}\t{}\t{around:?} «{secret:?}»", path.display());
            }
        });
    }
    println!(
        "{hits} replaced in {lines} lines, {bytes} bytes: {:.2} per 10,000 lines",
        hits as f64 * 1e4 / lines.max(1) as f64
    );
}

fn walk(path: &Path, see: &mut dyn FnMut(&Path)) {
    match std::fs::read_dir(path) {
        Ok(items) => {
            let mut items: Vec<_> = items.flatten().map(|item| item.path()).collect();
            items.sort();
            items
                .iter()
                .filter(|path| !path.is_symlink())
                .for_each(|path| walk(path, see));
        }
        Err(_) => see(path),
    }
}

/// The speed on one thread in megabytes per second: the best of five runs over 64 MB.
fn speed(redactor: &Redactor) {
    let words = "the build fails because this file is not found in the folder, so it lists all of them first and reads each line; ";
    let plain = words.repeat((64 << 20) / words.len());
    let kilobyte = words.repeat(9);
    let part = &kilobyte[..1000];
    let with = |candidate: &str| format!("{part}{candidate}\n").repeat(64_000);
    let cases = [
        ("without candidates", plain),
        ("with one harmless name per kB", with("password: string")),
        (
            "with one secret per kB",
            with("API_KEY=a1B2c3D4e5F6g7H8j9K0"),
        ),
        (
            "with one URL per kB",
            with("https://h.example/x?token=a1B2c3D4e5F6g7H8j9K0"),
        ),
    ];
    let mut values = KnownValues::new(b"a salt of 16 bytes");
    values.add_values((0..20).map(|n| format!("a-value-{n}-of-a-variable")));
    values.set_words(&["acme".to_owned(), "a customer".to_owned()]);
    let known = Redactor::new(true, None).unwrap().with_values(values);
    for (name, text) in cases {
        for (redactor, with) in [(redactor, ""), (&known, ", with 20 values and 2 words")] {
            let speeds = (0..5).map(|_| {
                let start = Instant::now();
                std::hint::black_box(redactor.text(&text, &mut |_, _| {}));
                text.len() as f64 / 1e6 / start.elapsed().as_secs_f64()
            });
            println!("{name}{with}: {:.0} MB/s", speeds.fold(0.0, f64::max));
        }
    }
}
