//! Reads `Retry-After`: how long a server asks clients to wait.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::Duration;

/// The number of seconds in the header, or the time until the date in it. A number that is too large for the type gives
/// the longest duration. Any other text gives `None`.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let Some(at) = http_date(value) else {
        return value.ends_with("GMT").then_some(Duration::MAX);
    };
    let left = at.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(left).unwrap_or_default())
}

/// A date in any of HTTP's three forms.
fn http_date(text: &str) -> Option<jiff::Timestamp> {
    let rfc2822 = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    if let Ok(at) = rfc2822.parse_timestamp(text) {
        return Some(at);
    }
    let forms = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    let civil = forms
        .iter()
        .find_map(|form| jiff::civil::DateTime::strptime(form, text).ok())?;
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn requested_pauses_are_seconds_or_dates() {
        let after = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            retry_after(&headers)
        };
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert!(after("Wed, 21 Oct 2099 07:28:00 GMT") > Some(Duration::from_secs(1 << 20)));
        assert_eq!(after("soon"), None);
        assert_eq!(after("-1"), None);
        assert_eq!(after(""), None);
    }

    /// A number that was too large for the type was once ignored, and the server was asked again half a second later.
    #[test]
    fn a_pause_too_long_to_be_read_is_the_longest() {
        for text in [
            "99999999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "Fri, 31 Dec 99999 23:59:59 GMT",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            assert_eq!(retry_after(&headers), Some(Duration::MAX), "{text}");
        }
    }

    #[test]
    fn dates_come_in_three_forms() {
        let expect = "1994-11-06T08:49:37Z".parse().ok();
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            // A wrong day of the week is accepted.
            "Mon, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(http_date(text), expect, "{text}");
        }
    }
}
