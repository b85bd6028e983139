//! Words that several commands show.

use treelined_core::stats::Cost;

/// A number with its noun, such as `1 entry` or `2 entries`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{number} {noun}")
}

/// The title of a session: its name, or else its first message.
pub(super) fn title<'a>(name: Option<&'a str>, first_message: &'a str) -> &'a str {
    match (name, first_message) {
        (Some(name), _) => name,
        (None, "") => "(no messages)",
        (None, first_message) => first_message,
    }
}

/// A cost, such as `1.40`; `~1.40` if a part of it is estimated, `1.40 + ?` if a part is unknown,
/// or `unknown`.
pub(super) fn dollars(cost: &Cost) -> String {
    let Some(known) = cost.known() else {
        return "unknown".to_owned();
    };
    let about = if cost.estimated.is_some() { "~" } else { "" };
    let more = if cost.unknown > 0 { " + ?" } else { "" };
    match known < 0.01 && known > 0.0 {
        true => format!("{about}<0.01{more}"),
        false => format!("{about}{known:.2}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_cost_is_not_zero() {
        let shown = |recorded, estimated, unknown| {
            dollars(&Cost {
                recorded,
                estimated,
                unknown,
            })
        };
        assert_eq!(shown(Some(1.4), None, 0), "1.40");
        assert_eq!(shown(Some(1.0), Some(0.4), 0), "~1.40");
        assert_eq!(shown(Some(1.4), None, 2), "1.40 + ?");
        assert_eq!(shown(None, Some(0.001), 1), "~<0.01 + ?");
        assert_eq!(shown(None, None, 3), "unknown");
        assert_eq!(shown(None, None, 0), "unknown");
    }
}
