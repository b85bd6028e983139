//! The addresses that links may have.

pub(crate) use treelined_core::terminal::is_unseen;

/// The address of a link for the attribute `href`, without white space and invisible characters. `None` if its scheme
/// is not `http`, `https` or `mailto`.
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
