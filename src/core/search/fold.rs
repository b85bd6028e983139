//! Case folding: two texts that differ only in case have the same folded form.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// Appends `text` in its folded form. Each character is converted to upper case first: so "ß" becomes "ss", and both
/// small sigmas become the same.
pub(super) fn push_folded(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    loop {
        let ascii = rest.bytes().take_while(u8::is_ascii).count();
        let (plain, other) = rest.split_at_checked(ascii).unwrap_or((rest, ""));
        let start = out.len();
        out.extend_from_slice(plain.as_bytes());
        if let Some(plain) = out.get_mut(start..) {
            plain.make_ascii_lowercase();
        }
        let mut chars = other.chars();
        let Some(char) = chars.next() else { return };
        push_folded_char(out, char);
        rest = chars.as_str();
    }
}

/// The folded form of a text.
pub fn folded_text(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    push_folded(&mut out, text);
    // Folding keeps valid UTF-8 valid.
    String::from_utf8(out).unwrap_or_else(|error| {
        debug_assert!(false, "{error}");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

pub(super) fn push_folded_char(out: &mut Vec<u8>, char: char) {
    if let Ok(byte) = u8::try_from(char)
        && byte.is_ascii()
    {
        return out.push(byte.to_ascii_lowercase());
    }
    if !may_have_case(char) {
        return out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    for lower in folded(char) {
        out.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Ranges that contain all characters outside ASCII that fold to another character, or to which another character
/// folds. The ranges contain other characters too. Characters outside of the ranges are not looked up, since this would
/// take most of the time of folding Chinese or Japanese text.
const CASED: [RangeInclusive<char>; 8] = [
    '\u{80}'..='\u{24ff}',
    '\u{2c00}'..='\u{2d2f}',
    '\u{a640}'..='\u{abbf}',
    '\u{fb00}'..='\u{fb17}',
    '\u{ff21}'..='\u{ff5a}',
    '\u{10400}'..='\u{118df}',
    '\u{16e40}'..='\u{16eff}',
    '\u{1e900}'..='\u{1e943}',
];

fn may_have_case(char: char) -> bool {
    CASED.iter().any(|range| range.contains(&char))
}

/// The folded form of a character.
pub(super) fn folded(char: char) -> impl Iterator<Item = char> {
    let upper = char.to_lowercase().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase)
}

/// The characters outside ASCII whose folded form contains an ASCII character.
pub(super) const FOLDED_TO_ASCII: [char; 20] = [
    'ß', 'İ', 'ŉ', 'ı', 'ſ', 'ǰ', 'ẖ', 'ẗ', 'ẘ', 'ẙ', 'ẚ', 'ẞ', '\u{212a}', 'ﬀ', 'ﬁ', 'ﬂ', 'ﬃ',
    'ﬄ', 'ﬅ', 'ﬆ',
];

/// The characters whose folded form contains `char`, which is not ASCII; ascending.
pub(super) fn folded_to(char: char) -> Vec<char> {
    /// Pairs of a folded character and the character that folds to it. Characters that fold to themselves are left
    /// out.
    static MOVED: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
        let chars = CASED.into_iter().flatten();
        let chars = chars.filter(|char| !folded(*char).eq([*char]));
        let moved = chars.flat_map(|char| folded(char).map(move |to| (to, char)));
        let mut moved: Vec<_> = moved.collect();
        moved.sort_unstable();
        moved.dedup();
        moved
    });
    let from = MOVED.partition_point(|(to, _)| *to < char);
    let moved = MOVED.iter().skip(from).take_while(|(to, _)| *to == char);
    let own = folded(char).eq([char]).then_some(char);
    let mut all: Vec<_> = moved.map(|(_, from)| *from).chain(own).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prefilter skips lines that contain none of these characters. If a character were missing here, text with it
    /// would not be found.
    #[test]
    fn all_that_is_folded_to_a_character_is_known() {
        for char in '\u{80}'..=char::MAX {
            let is_moved = !folded(char).eq([char]);
            let mut both = folded(char).chain([char]);
            assert!(
                !is_moved || both.all(|char| char.is_ascii() || may_have_case(char)),
                "{char:?}"
            );
        }
        assert_eq!(folded_to('é'), ['É', 'é']);
        assert_eq!(folded_to('日'), ['日']);
        assert_eq!(folded_to('σ'), ['Σ', 'ς', 'σ']);
        assert!(folded_to('ι').contains(&'ᾳ'));
        assert!(folded_to('å').contains(&'\u{212b}'));
    }

    #[test]
    fn no_other_character_is_folded_to_ascii() {
        let chars = ('\u{80}'..=char::MAX).filter(|char| folded(*char).any(|char| char.is_ascii()));
        let mut expected = FOLDED_TO_ASCII;
        expected.sort_unstable();
        assert_eq!(
            chars.collect::<String>(),
            expected.iter().collect::<String>()
        );
    }

    #[test]
    fn texts_that_differ_in_case_only_fold_to_the_same() {
        let fold = |text: &str| {
            let mut out = Vec::new();
            push_folded(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        for (one, other) in [
            ("Straße", "STRASSE"),
            ("STRAẞE", "strasse"),
            ("ΣΑΣ", "σας"),
            ("ÀÉ x", "àé X"),
            ("\u{212a}", "k"),
            ("ﬁ", "FI"),
        ] {
            assert_eq!(fold(one), fold(other));
        }
        assert_eq!(fold("Größe 日本 [Z]"), "grösse 日本 [z]");
    }
}
