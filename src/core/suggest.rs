//! Finds the known name that a person probably meant by a wrong name.

/// The most characters of a text that can be a mistyped name.
const MAX_CHARS: usize = 64;

/// The nearest of the known names; `None` if every known name differs in more than a third of the letters. Case, `_`
/// and `-` make no difference. `wrong` itself is never returned, since a known name can be wrong at this position.
pub fn nearest<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if wrong.is_empty() || wrong.chars().nth(MAX_CHARS).is_some() {
        return None;
    }
    let letters = plain(wrong);
    let most = (letters.chars().count() / 3).max(1);
    let others = known.into_iter().filter(|name| *name != wrong);
    let near = others.filter_map(|name| {
        let distance = strsim::damerau_levenshtein(&letters, &plain(name));
        (distance <= most).then_some((distance, name))
    });
    let (_, name) = near.min_by_key(|(distance, _)| *distance)?;
    Some(name)
}

/// The end of an error message about a wrong name: `; did you mean "x"?`, or nothing.
pub fn hint<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(wrong, known)
        .map(|name| format!("; did you mean {name:?}?"))
        .unwrap_or_default()
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_only_if_it_is_near() {
        let known = ["get_tree", "get_leaf", "sessionId", "cwd"];
        for (wrong, meant) in [
            ("get_tre", Some("get_tree")),
            ("getTree", Some("get_tree")),
            ("session_id", Some("sessionId")),
            ("cdw", Some("cwd")),
            ("open", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, known), meant, "{wrong}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
        assert_eq!(hint("cdw", known), "; did you mean \"cwd\"?");
    }
}
