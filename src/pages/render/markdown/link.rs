//! The addresses that links may have.

pub(crate) use treelined_core::terminal::is_unseen;

/// The address of a link as the attribute `href` has it, without white space and characters that nobody sees; `None` if its
/// scheme is not one of `http`, `https` and `mailto`.
pub(super) fn address(destination: &str) -> Option<String> {
    let is_kept = |char: &char| !char.is_whitespace() && !is_unseen(*char);
    let address: String = destination.chars().filter(is_kept).collect();
    let (scheme, rest) = address.split_once(':')?;
    let is_allowed = match &*scheme.to_ascii_lowercase() {
        "http" | "https" => rest.len() > 2 && rest.starts_with("//"),
        "mailto" => !rest.is_empty(),
        _ => false,
    };
    is_allowed.then_some(address)
}
