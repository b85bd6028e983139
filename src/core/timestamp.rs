//! Timestamps: ISO 8601 with milliseconds in UTC on disk and wire, Unix milliseconds in memory.

use jiff::Timestamp;

/// A timestamp in Unix milliseconds.
pub type Millis = i64;

/// A timestamp as text, such as `2025-01-31T09:05:07.123Z`.
pub fn format(at: Millis) -> String {
    let text = canonical_text(at).map(|text| String::from_utf8_lossy(&text).into_owned());
    text.unwrap_or_else(|| format_any(at))
}

/// Appends the result of [`format()`].
pub fn push(out: &mut Vec<u8>, at: Millis) {
    match canonical_text(at) {
        Some(text) => out.extend_from_slice(&text),
        None => out.extend_from_slice(format_any(at).as_bytes()),
    }
}

fn format_any(at: Millis) -> String {
    match Timestamp::from_millisecond(at) {
        Ok(at) => format!("{at:.3}"),
        Err(_) => "1970-01-01T00:00:00.000Z".to_owned(),
    }
}

/// Like [`format`], without the general formatter, since a tree has as many timestamps as rows. `None`
/// outside the years 0 to 9999.
fn canonical_text(at: Millis) -> Option<[u8; 24]> {
    let (days, millis) = (at.div_euclid(DAY), at.rem_euclid(DAY));
    // Computes the date from the number of days: the inverse of `canonical`.
    let shifted = days + DAYS_TO_1970;
    let (era, day_of_era) = (
        shifted.div_euclid(DAYS_OF_ERA),
        shifted.rem_euclid(DAYS_OF_ERA),
    );
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let digit = |value: i64, power: i64| b'0' + u8::try_from(value / power % 10).unwrap_or(0);
    let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
    let second = millis / 1000 % 60;
    Some([
        digit(year, 1000),
        digit(year, 100),
        digit(year, 10),
        digit(year, 1),
        b'-',
        digit(month, 10),
        digit(month, 1),
        b'-',
        digit(day, 10),
        digit(day, 1),
        b'T',
        digit(hour, 10),
        digit(hour, 1),
        b':',
        digit(minute, 10),
        digit(minute, 1),
        b':',
        digit(second, 10),
        digit(second, 1),
        b'.',
        digit(millis, 100),
        digit(millis, 10),
        digit(millis, 1),
        b'Z',
    ])
}

/// An example of each form of time that [`read`] reads, for an error.
pub const TIMES: &str =
    "90min, 12h, 3d, 2w, 6mo, 1y, today, yesterday, 2026-11-01 or 2026-11-01T08:00:00Z";

/// Reads a time as a person writes it (protocol.md §3.16): an instant in RFC 3339, the beginning of a day in UTC,
/// `today`, `yesterday`, or an age such as `2w` before `now`.
pub fn read(text: &str, now: Millis) -> Option<Millis> {
    let today = now - now.rem_euclid(DAY);
    match text {
        "today" => Some(today),
        "yesterday" => Some(today - DAY),
        _ => parse(text)
            .or_else(|| parse(&format!("{text}T00:00:00.000Z")))
            .or_else(|| ago(text, now)),
    }
}

fn ago(text: &str, now: Millis) -> Option<Millis> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(end)?;
    let unit = match unit {
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => DAY,
        "w" => 7 * DAY,
        "mo" => 30 * DAY,
        "y" => 365 * DAY,
        _ => return None,
    };
    let number: Millis = number.parse().ok()?;
    now.checked_sub(number.checked_mul(unit)?)
}

/// The milliseconds of a day.
pub const DAY: i64 = 86_400_000;
/// The days of 400 years, after which the Gregorian calendar repeats itself.
const DAYS_OF_ERA: i64 = 146_097;
/// The days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// Parses ISO 8601; `None` if the text is not a time.
pub fn parse(text: &str) -> Option<Millis> {
    canonical(text.as_bytes()).or_else(|| Some(text.parse::<Timestamp>().ok()?.as_millisecond()))
}

/// Like [`parse`], and also returns whether [`format`] would write exactly this text.
pub(crate) fn parse_exact(text: &str) -> Option<(Millis, bool)> {
    match canonical(text.as_bytes()) {
        Some(at) => Some((at, true)),
        None => parse(text).map(|at| (at, format(at) == text)),
    }
}

/// The number of days of a month, in the Gregorian calendar.
fn days_of(year: i64, month: i64) -> i64 {
    let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap_year => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Parses the form that [`format`] writes, without the general parser, since opening a session parses one
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
    if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Computes the number of days from the date, in the proleptic Gregorian calendar with years that start
    // in March.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * DAYS_OF_ERA + day_of_era - DAYS_TO_1970;
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
            assert_eq!(text, format_any(at));
            assert_eq!(parse(&text), Some(at), "{text}");
            if let Some(fast) = canonical(text.as_bytes()) {
                assert_eq!(fast, at, "{text}");
            }
            at += 86_399_987 * 13;
        }
    }

    /// Once the general parser parsed the days 29 to 31, so an append took 18 % more instructions on three days of a
    /// month.
    #[test]
    fn every_day_is_parsed_without_the_general_parser() {
        for day in 0..146_097 * 2 {
            let at = day * DAY - 62_135_596_800_000;
            let text = format(at);
            assert_eq!(canonical(text.as_bytes()), Some(at), "{text}");
        }
        for day in [
            "2026-02-29",
            "1900-02-29",
            "2024-02-30",
            "2026-04-31",
            "2026-01-32",
            "2026-01-00",
        ] {
            let text = format!("{day}T00:00:00.000Z");
            assert_eq!(canonical(text.as_bytes()), None, "{text}");
            assert_eq!(parse(&text), None, "{text}");
        }
    }

    #[test]
    fn every_day_is_written_as_the_general_formatter_writes_it() {
        for day in -720_000..2_933_000 {
            let at = day * DAY + (day * 7_654_321).rem_euclid(DAY);
            if day % 97 == 0 || day.abs() < 20_000 {
                assert_eq!(format(at), format_any(at));
            }
        }
        for at in [Millis::MIN, Millis::MAX, -1, 0, 253_402_300_800_000] {
            assert_eq!(format(at), format_any(at));
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
