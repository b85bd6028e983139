//! The addresses that links may have.

/// The address of a link as the attribute `href` has it, without white space and control characters; `None` if its
/// scheme is not one of `http`, `https` and `mailto`.
pub(super) fn address(destination: &str) -> Option<String> {
    let is_kept = |char: &char| !char.is_whitespace() && !is_invisible(*char);
    let address: String = destination.chars().filter(is_kept).collect();
    let (scheme, rest) = address.split_once(':')?;
    let is_allowed = match &*scheme.to_ascii_lowercase() {
        "http" | "https" => rest.len() > 2 && rest.starts_with("//"),
        "mailto" => !rest.is_empty(),
        _ => false,
    };
    is_allowed.then_some(address)
}

/// Whether the character changes how others are read and is not seen itself: control characters, and marks of the
/// direction of writing.
fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
}
