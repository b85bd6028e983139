//! The cells of tables.

use treelined_core::terminal;
use treelined_core::timestamp::{self, Millis};

const MINUTE: Millis = 60_000;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;
const WEEK: Millis = 7 * DAY;
const YEAR: Millis = 365 * DAY;
/// The width of the column of times.
pub(super) const WHEN: usize = 10;

pub(super) fn padded(text: &str, columns: usize) -> String {
    let gap = columns.saturating_sub(terminal::width(text));
    format!("{text}{}", " ".repeat(gap))
}

/// The time since `modified` (protocol.md §1.5). A text that is not a time is cut to the width of
/// the column.
pub(super) fn when(modified: &str, now: Millis) -> String {
    let Some(then) = timestamp::parse(modified) else {
        return modified.chars().take(WHEN).collect();
    };
    let since = now.saturating_sub(then);
    match since {
        ..MINUTE => "now".to_owned(),
        MINUTE..HOUR => format!("{}m", since / MINUTE),
        HOUR..DAY => format!("{}h", since / HOUR),
        DAY..WEEK => format!("{}d", since / DAY),
        WEEK..YEAR => format!("{}w", since / WEEK),
        _ => format!("{}y", since / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_distances() {
        let now = timestamp::parse("2026-11-22T12:00:00Z").unwrap();
        for (then, shown) in [
            ("2026-11-22T11:59:30Z", "now"),
            ("2026-11-22T11:30:00Z", "30m"),
            ("2026-11-22T01:00:00Z", "11h"),
            ("2026-11-21T01:00:00Z", "1d"),
            ("2026-11-01T12:00:00Z", "3w"),
            ("2026-01-01T12:00:00Z", "46w"),
            ("2024-11-21T12:00:00Z", "2y"),
            ("2027-01-01T12:00:00Z", "now"),
            ("", ""),
        ] {
            assert_eq!(when(then, now), shown, "{then}");
        }
    }
}
