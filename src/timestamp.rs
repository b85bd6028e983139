//! Timestamps: ISO 8601 with milliseconds in UTC on disk and wire, Unix milliseconds in memory.

use jiff::Timestamp;

/// A timestamp in Unix milliseconds.
pub type Millis = i64;

/// `2025-01-31T09:05:07.123Z`.
pub fn format(at: Millis) -> String {
    match Timestamp::from_millisecond(at) {
        Ok(at) => format!("{at:.3}"),
        Err(_) => "1970-01-01T00:00:00.000Z".to_owned(),
    }
}

/// Parses ISO 8601; `None` for anything that names no instant.
pub fn parse(text: &str) -> Option<Millis> {
    canonical(text.as_bytes()).or_else(|| Some(text.parse::<Timestamp>().ok()?.as_millisecond()))
}

/// As [`parse`], and whether [`format`] would write exactly this for the instant.
pub fn parse_exact(text: &str) -> Option<(Millis, bool)> {
    match canonical(text.as_bytes()) {
        Some(at) => Some((at, true)),
        None => parse(text).map(|at| (at, format(at) == text)),
    }
}

/// The one shape that is written, read without the general parser: opening a session parses one
/// timestamp per line.
fn canonical(text: &[u8]) -> Option<Millis> {
    let &[
        y1,
        y2,
        y3,
        y4,
        b'-',
        mo1,
        mo2,
        b'-',
        d1,
        d2,
        b'T',
        h1,
        h2,
        b':',
        mi1,
        mi2,
        b':',
        s1,
        s2,
        b'.',
        f1,
        f2,
        f3,
        b'Z',
    ] = text
    else {
        return None;
    };
    let number = |digits: &[u8]| -> Option<i64> {
        digits.iter().try_fold(0, |value, digit| {
            let digit = digit.wrapping_sub(b'0');
            (digit < 10).then(|| value * 10 + i64::from(digit))
        })
    };
    let (year, month, day) = (
        number(&[y1, y2, y3, y4])?,
        number(&[mo1, mo2])?,
        number(&[d1, d2])?,
    );
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[mi1, mi2])?, number(&[s1, s2])?);
    // Days 29 to 31 go the general way: it knows the calendar.
    if !(1..=12).contains(&month) || !(1..=28).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days from civil, after the proleptic Gregorian calendar with years starting in March.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(&[f1, f2, f3])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parsers_agree() {
        let mut at: Millis = -62_135_596_800_000;
        while at < 4_102_444_800_000 {
            let text = format(at);
            assert_eq!(parse(&text), Some(at), "{text}");
            if let Some(fast) = canonical(text.as_bytes()) {
                assert_eq!(fast, at, "{text}");
            }
            at += 86_399_987 * 13;
        }
    }

    #[test]
    fn other_shapes() {
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(parse("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(parse("2025-02-30T00:00:00.000Z"), None);
        assert_eq!(parse("2025-02-29T00:00:00.000Z"), None);
        assert_eq!(parse("2024-02-29T00:00:00.000Z"), Some(1_709_164_800_000));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse(""), None);
    }
}
