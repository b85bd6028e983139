//! Words that several commands show.

/// `1 entry`, `2 entries`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{number} {noun}")
}

/// The title of a session: its name, else its first message.
pub(super) fn title<'a>(name: Option<&'a str>, first_message: &'a str) -> &'a str {
    match (name, first_message) {
        (Some(name), _) => name,
        (None, "") => "(no messages)",
        (None, first_message) => first_message,
    }
}
