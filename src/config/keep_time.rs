//! The time of `[trash] keep`.

use super::lines::{SettingLines, SettingOrigin};
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use treelined_core::timestamp::Millis;

const HOUR: Millis = 60 * 60 * 1000;

/// How long a deleted session is kept, in whole hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct KeepTime {
    hours: u32,
}

impl KeepTime {
    pub(crate) fn millis(self) -> Millis {
        Millis::from(self.hours) * HOUR
    }
}

impl FromStr for KeepTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let factor = match text.strip_prefix(digits) {
            Some("h") => Some(1),
            Some("d") => Some(24),
            Some("w") => Some(7 * 24),
            _ => None,
        };
        let number = digits.parse::<u32>().ok().filter(|number| *number > 0);
        let hours = number.zip(factor);
        let hours = hours.and_then(|(number, factor)| number.checked_mul(factor));
        hours
            .map(|hours| Self { hours })
            .ok_or("must be a number and a unit, such as 12h, 30d or 8w")
    }
}

impl TryFrom<String> for KeepTime {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for KeepTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hours % 24 {
            0 => write!(f, "{}d", self.hours / 24),
            _ => write!(f, "{}h", self.hours),
        }
    }
}

/// The time from the file; `None` if deleted sessions are kept until a person names them.
pub(super) fn keep(file: Option<KeepTime>, lines: &mut SettingLines) -> Option<KeepTime> {
    let time = file?;
    lines.push(
        ("trash", "keep"),
        time.to_string().into(),
        SettingOrigin::File,
    );
    Some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, millis, shown) in [
            ("1h", HOUR, "1h"),
            ("36h", 36 * HOUR, "36h"),
            ("30d", 720 * HOUR, "30d"),
            ("2w", 336 * HOUR, "14d"),
        ] {
            let time: KeepTime = text.parse().unwrap();
            assert_eq!(
                (time.millis(), time.to_string()),
                (millis, shown.to_owned())
            );
        }
        for text in [
            "",
            "30",
            "d",
            "0d",
            "-1d",
            "1.5d",
            "30s",
            "4294967295w",
            "1 d",
        ] {
            assert!(text.parse::<KeepTime>().is_err(), "{text}");
        }
    }
}
