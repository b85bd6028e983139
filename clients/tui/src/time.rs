//! Times, durations and sizes in readable form.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::time::Duration;

/// Formats an ISO 8601 time in the user's time zone. Returns the text unchanged if it is not a time.
pub fn local(stored: &str) -> String {
    in_zone(stored, &TimeZone::system())
}

/// Formats an ISO 8601 time without its year.
pub fn local_short(stored: &str) -> String {
    let full = local(stored);
    full.get(5..16).unwrap_or_default().to_owned()
}

fn in_zone(stored: &str, zone: &TimeZone) -> String {
    match stored.parse::<Timestamp>() {
        Ok(instant) => instant
            .to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M")
            .to_string(),
        Err(_) => crate::text::line(stored),
    }
}

/// Returns the seconds since 1970 of an ISO 8601 time; 0 if the text is not a time.
pub fn seconds(stored: &str) -> i64 {
    stored.parse::<Timestamp>().map_or(0, Timestamp::as_second)
}

/// Formats how long ago `then` was (protocol.md §1.5); both are seconds since 1970.
pub fn ago(then: i64, now: i64) -> String {
    let seconds = now.saturating_sub(then).max(0);
    match seconds {
        _ if then == 0 => "?".to_owned(),
        0..60 => "now".to_owned(),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..604_800 => format!("{}d", seconds / 86_400),
        604_800..31_536_000 => format!("{}w", seconds / 604_800),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

/// Formats how long ago an ISO 8601 time was, by the clock of this machine.
pub fn since(stored: &str) -> String {
    ago(seconds(stored), Timestamp::now().as_second())
}

/// Formats a duration, such as `7 s` or `2:05`.
pub fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{}:{:02}", seconds / 60, seconds % 60),
    }
}

/// Formats a size in bytes.
pub fn bytes(count: usize) -> String {
    match count {
        0..1000 => format!("{count} bytes"),
        1000..1_000_000 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

/// Formats a number of tokens, rounded, such as `950`, `1.3k` or `13k`.
pub fn tokens(count: u64) -> String {
    let rounded = |unit: u64| count / unit + u64::from(count % unit >= unit / 2);
    match (count, rounded(100)) {
        (0..1000, _) => count.to_string(),
        (_, tenths @ ..100) => format!("{}.{}k", tenths / 10, tenths % 10),
        _ => format!("{}k", rounded(1000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (seconds, shown) in [
            (5, "now"),
            (90, "1m"),
            (7200, "2h"),
            (200_000, "2d"),
            (700_000, "1w"),
            (90_000_000, "2y"),
        ] {
            assert_eq!(ago(1_000_000_000, 1_000_000_000 + seconds), shown);
        }
        for (count, shown) in [
            (950, "950"),
            (1260, "1.3k"),
            (9949, "9.9k"),
            (9950, "10k"),
            (12_600, "13k"),
        ] {
            assert_eq!(tokens(count), shown);
        }
        assert_eq!(ago(10, 5), "now");
        assert_eq!(elapsed(Duration::from_secs(125)), "2:05");
    }

    #[test]
    fn invalid_times_are_shown_unchanged() {
        assert_eq!(
            in_zone("2026-11-21T19:07:08.211Z", &TimeZone::UTC),
            "2026-11-21 19:07"
        );
        assert_eq!(in_zone("\u{1b}[2J", &TimeZone::UTC), "␛[2J");
        assert_eq!(seconds("yesterday"), 0);
    }
}
