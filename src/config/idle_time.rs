//! The time of `--idle-exit`.

use super::flags::EnvironmentLookup;
use super::lines::{SettingLines, SettingOrigin};
use anyhow::anyhow;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const VARIABLE: &str = "TREELINED_IDLE_EXIT";

/// A time without a connection, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct IdleTime(Duration);

impl IdleTime {
    pub(crate) fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for IdleTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let factor = match text.strip_prefix(digits) {
            Some("s") => Some(1),
            Some("m") => Some(60),
            Some("h") => Some(3600),
            _ => None,
        };
        let seconds = digits.parse::<u32>().ok().filter(|number| *number > 0);
        let time = seconds.zip(factor);
        let time = time.map(|(number, factor)| Duration::from_secs(u64::from(number) * factor));
        time.map(Self)
            .ok_or("must be a number and a unit, such as 90s, 10m or 1h")
    }
}

impl TryFrom<String> for IdleTime {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for IdleTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0.as_secs())
    }
}

/// The time from the environment, else from the file; `None` if a daemon never ends by itself.
pub(super) fn idle_exit(
    environment: EnvironmentLookup<'_>,
    file: Option<IdleTime>,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<IdleTime>> {
    let named = environment(VARIABLE).filter(|text| !text.is_empty());
    let (time, origin) = match (named, file) {
        (Some(text), _) => {
            let time = text.to_string_lossy().parse();
            let time = time.map_err(|why| anyhow!("{VARIABLE}: {why}"))?;
            (time, SettingOrigin::Environment)
        }
        (None, Some(time)) => (time, SettingOrigin::File),
        (None, None) => return Ok(None),
    };
    lines.push(("", "idle_exit"), time.to_string().into(), origin);
    Ok(Some(time))
}
