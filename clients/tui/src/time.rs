//! Instants, spans and sizes as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::time::Duration;

/// An ISO 8601 instant in the zone of the user; as it stands if it is none.
pub fn local(stored: &str) -> String {
    in_zone(stored, &TimeZone::system())
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

/// Seconds since 1970 of an ISO 8601 instant; 0 if it is none.
pub fn seconds(stored: &str) -> i64 {
    stored.parse::<Timestamp>().map_or(0, Timestamp::as_second)
}

/// How long ago, in five columns at most; both in seconds since 1970.
pub fn ago(then: i64, now: i64) -> String {
    let seconds = now.saturating_sub(then).max(0);
    match seconds {
        _ if then == 0 => "?".to_owned(),
        0..60 => "now".to_owned(),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..8_640_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", (seconds / 31_557_600).max(1)),
    }
}

/// A running time: `7 s`, `2:05`.
pub fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{}:{:02}", seconds / 60, seconds % 60),
    }
}

/// A size.
pub fn bytes(count: usize) -> String {
    match count {
        0..1000 => format!("{count} bytes"),
        1000..1_000_000 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

/// A count of tokens: `950`, `12k`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        _ => format!("{}k", count / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        for (seconds, shown) in [
            (5, "now"),
            (90, "1m"),
            (7200, "2h"),
            (200_000, "2d"),
            (90_000_000, "2y"),
        ] {
            assert_eq!(ago(1_000_000_000, 1_000_000_000 + seconds), shown);
        }
        assert_eq!(ago(10, 5), "now");
        assert_eq!(elapsed(Duration::from_secs(125)), "2:05");
    }

    #[test]
    fn instants_that_are_none_stay_harmless() {
        assert_eq!(
            in_zone("2026-11-21T19:07:08.211Z", &TimeZone::UTC),
            "2026-11-21 19:07"
        );
        assert_eq!(in_zone("\u{1b}[2J", &TimeZone::UTC), "␛[2J");
        assert_eq!(seconds("yesterday"), 0);
    }
}
