//! Writes the stderr of an extension to the log of the daemon: whole lines with the extension's name, within a budget
//! of bytes.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

/// The longest line in the log, in bytes. A longer line becomes several lines.
const MAX_LINE: u64 = 4096;
/// The most bytes that an extension writes to the log in [`WINDOW`]. The rest is left out.
const BUDGET: u64 = 256 << 10;
const WINDOW: Duration = Duration::from_secs(60);

/// Writes the lines to the log, until the program and its children have closed stderr.
pub(super) fn log_lines(extension: &str, stderr: impl Read) {
    let mut stderr = BufReader::new(stderr);
    let mut budget = Budget::new(Instant::now());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = stderr.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        let bytes = match read {
            Ok(bytes @ 1..) => bytes as u64,
            _ => break,
        };
        match budget.take(bytes, Instant::now()) {
            Room::Some { left_out } => {
                say_left_out(extension, left_out);
                let line = String::from_utf8_lossy(&line);
                tracing::warn!(extension, "{}", line.trim_end());
            }
            Room::NoMore => tracing::warn!(
                extension,
                "an extension writes more than {BUDGET} bytes to stderr in {WINDOW:?}: the rest of them is left out"
            ),
            Room::None => {}
        }
    }
    say_left_out(extension, budget.left_out);
}

fn say_left_out(extension: &str, bytes: u64) {
    if bytes > 0 {
        tracing::warn!(extension, "{bytes} bytes of stderr were left out");
    }
}

/// The budget of bytes for the log.
struct Budget {
    window: Instant,
    used: u64,
    /// The bytes that were left out and are not reported yet.
    left_out: u64,
}

/// Whether the budget has room for a line.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    /// There is room. This many bytes before the line were left out.
    Some {
        left_out: u64,
    },
    /// There is no room, and this line is the first one that is left out.
    NoMore,
    None,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self {
            window: now,
            used: 0,
            left_out: 0,
        }
    }

    fn take(&mut self, bytes: u64, now: Instant) -> Room {
        if now.duration_since(self.window) >= WINDOW {
            self.window = now;
            self.used = 0;
        }
        if self.used + bytes <= BUDGET {
            self.used += bytes;
            let left_out = std::mem::take(&mut self.left_out);
            return Room::Some { left_out };
        }
        let is_first = self.used < BUDGET;
        // After a line that was left out, a shorter line must not be logged.
        self.used = BUDGET;
        self.left_out += bytes;
        match is_first {
            true => Room::NoMore,
            false => Room::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An extension once wrote 400 MB to the log of a stdio daemon in seconds.
    #[test]
    fn lines_over_the_budget_of_a_minute_are_counted() {
        let begin = Instant::now();
        let mut budget = Budget::new(begin);
        for _ in 0..64 {
            assert_eq!(budget.take(4095, begin), Room::Some { left_out: 0 });
        }
        let late = begin + Duration::from_secs(59);
        assert_eq!(budget.take(4096, late), Room::NoMore);
        assert_eq!(budget.take(1, late), Room::None, "no line follows a gap");
        let next = begin + WINDOW;
        assert_eq!(budget.take(1, next), Room::Some { left_out: 4097 });
        assert_eq!(budget.take(1, next), Room::Some { left_out: 0 });
        assert_eq!(budget.used, 2);
    }
}
