//! Lists the secrets in the text on stdin: the line number, the kind and the secret, separated by tabs. Prints the
//! number of lines and bytes on stderr.
//!
//! cargo run --release -p treelined-redact --example secrets <FILE

use std::io::{self, Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let redactor = treelined_redact::Redactor::new(true, None)?;
    let mut out = io::stdout().lock();
    let (mut line, mut counted) = (1, 0);
    let began = std::time::Instant::now();
    let secrets: Vec<_> = redactor.secrets(&text).collect();
    let seconds = began.elapsed().as_secs_f64();
    for (kind, span) in &secrets {
        let before = text.get(counted..span.start).unwrap_or_default();
        line += before.matches('\n').count();
        counted = span.start;
        let start = text.get(..span.start).unwrap_or_default();
        let head: String = start.chars().rev().take(40).collect();
        let head: String = head.chars().rev().collect();
        let secret = text.get(span.clone()).unwrap_or_default();
        writeln!(
            out,
            "{line}\t{kind}\t{}\u{ab}{secret}\u{bb}",
            head.replace('\n', "\u{23ce}")
        )?;
    }
    let speed = text.len() as f64 / 1e6 / seconds;
    let lines = text.lines().count();
    writeln!(
        io::stderr(),
        "{lines} lines, {} secrets, {speed:.0} MB/s",
        secrets.len()
    )?;
    Ok(())
}
