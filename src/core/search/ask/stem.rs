//! Stems of English words: Porter's algorithm, and the past forms of common irregular verbs.

use std::sync::LazyLock;

/// The past forms of irregular verbs, each with its verb, sorted by form.
const IRREGULAR: &[(&str, &str)] = &[
    ("ate", "eat"),
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("bought", "buy"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("did", "do"),
    ("done", "do"),
    ("drew", "draw"),
    ("drove", "drive"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("fought", "fight"),
    ("found", "find"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("given", "give"),
    ("gone", "go"),
    ("got", "get"),
    ("grew", "grow"),
    ("heard", "hear"),
    ("held", "hold"),
    ("kept", "keep"),
    ("knew", "know"),
    ("known", "know"),
    ("led", "lead"),
    ("left", "leave"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("said", "say"),
    ("sang", "sing"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("slept", "sleep"),
    ("sold", "sell"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("stood", "stand"),
    ("swam", "swim"),
    ("taken", "take"),
    ("taught", "teach"),
    ("thought", "think"),
    ("threw", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("understood", "understand"),
    ("went", "go"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Endings and their replacements, for words that are long enough without the ending (steps 2 and 3). If one ending is
/// the end of another, the longer one comes first.
const DERIVED: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];
const SHORTER: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];
/// Endings that are removed from a long word (step 4).
const ENDINGS: &[&str] = &[
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "al", "er", "ic", "ou",
];

/// Replaces a word by its stem. Words with fewer than three letters, or with anything but lower-case ASCII letters, are
/// not changed.
pub(super) fn stem(word: &mut String) {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    if may_be_irregular(word.as_bytes())
        && let Ok(at) = IRREGULAR.binary_search_by(|(form, _)| (*form).cmp(word.as_str()))
        && let Some((_, verb)) = IRREGULAR.get(at)
    {
        word.replace_range(.., verb);
    }
    plural(word);
    past(word);
    let before = word.len().saturating_sub(2);
    if word.ends_with('y') && before > 0 && !is_vowel(word.as_bytes(), before) {
        replace(word, 1, "i");
    }
    derived(word, DERIVED);
    derived(word, SHORTER);
    ending(word);
    if word.ends_with('e') {
        let rest = without(word, 1);
        let measure = measure(rest);
        if measure > 1 || measure == 1 && !ends_short(rest) {
            word.truncate(word.len() - 1);
        }
    }
    if has_ending(word, "ll") && measure(without(word, 1)) > 1 {
        word.truncate(word.len() - 1);
    }
}

/// The lengths of the irregular forms by their first letter, one bit for each length. Nearly all other words have a
/// different length.
static LENGTHS: LazyLock<[u16; 32]> = LazyLock::new(|| {
    let mut lengths = [0; 32];
    for (form, _) in IRREGULAR {
        if let Some(of_first) = lengths.get_mut(first_letter(form.as_bytes())) {
            *of_first |= 1 << form.len();
        }
    }
    lengths
});

/// The number of a word's first letter, below 32.
fn first_letter(word: &[u8]) -> usize {
    word.first().map_or(0, |first| usize::from(first & 31))
}

fn may_be_irregular(word: &[u8]) -> bool {
    let lengths = LENGTHS.get(first_letter(word));
    word.len() < 16 && lengths.is_some_and(|lengths| lengths >> word.len() & 1 == 1)
}

/// Whether `word` ends with `ending`. The last letters are compared first, since they nearly always differ.
fn has_ending(word: &str, ending: &str) -> bool {
    let (word, ending) = (word.as_bytes(), ending.as_bytes());
    let mut pairs = word.iter().rev().zip(ending.iter().rev());
    word.len() >= ending.len() && pairs.all(|(own, wanted)| own == wanted)
}

/// The word without its last `letters` letters.
fn without(word: &str, letters: usize) -> &str {
    let len = word.len().saturating_sub(letters);
    word.get(..len).unwrap_or_default()
}

fn replace(word: &mut String, letters: usize, by: &str) {
    word.truncate(word.len().saturating_sub(letters));
    word.push_str(by);
}

fn is_vowel(word: &[u8], at: usize) -> bool {
    match word.get(at) {
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => true,
        Some(b'y') => at
            .checked_sub(1)
            .is_some_and(|before| !is_vowel_letter(word, before)),
        _ => false,
    }
}

/// Like [`is_vowel`], but always treats `y` as a consonant.
fn is_vowel_letter(word: &[u8], at: usize) -> bool {
    matches!(word.get(at), Some(b'a' | b'e' | b'i' | b'o' | b'u'))
}

fn has_vowel(word: &str) -> bool {
    (0..word.len()).any(|at| is_vowel(word.as_bytes(), at))
}

/// The number of times that consonants follow vowels.
fn measure(word: &str) -> usize {
    let (mut count, mut was_vowel) = (0, false);
    for at in 0..word.len() {
        let is_vowel = is_vowel(word.as_bytes(), at);
        count += usize::from(was_vowel && !is_vowel);
        was_vowel = is_vowel;
    }
    count
}

/// Whether a word ends with consonant, vowel, consonant, where the last consonant is not `w`, `x` or `y`.
fn ends_short(word: &str) -> bool {
    let (bytes, len) = (word.as_bytes(), word.len());
    len >= 3
        && !is_vowel(bytes, len - 1)
        && is_vowel(bytes, len - 2)
        && !is_vowel(bytes, len - 3)
        && !word.ends_with(['w', 'x', 'y'])
}

fn plural(word: &mut String) {
    if has_ending(word, "sses") || has_ending(word, "ies") {
        replace(word, 2, "");
    } else if word.ends_with('s') && !has_ending(word, "ss") && !has_ending(word, "us") {
        replace(word, 1, "");
    }
}

fn past(word: &mut String) {
    if has_ending(word, "eed") {
        if measure(without(word, 3)) > 0 {
            replace(word, 1, "");
        }
        return;
    }
    let cut = match () {
        () if has_ending(word, "ed") => 2,
        () if has_ending(word, "ing") => 3,
        () => return,
    };
    if !has_vowel(without(word, cut)) {
        return;
    }
    replace(word, cut, "");
    let last = word.bytes().last();
    let is_double = last.is_some() && last == without(word, 1).bytes().last();
    if has_ending(word, "at") || has_ending(word, "bl") || has_ending(word, "iz") {
        word.push('e');
    } else if is_double && !word.ends_with(['l', 's', 'z', 'a', 'e', 'i', 'o', 'u']) {
        replace(word, 1, "");
    } else if measure(word) == 1 && ends_short(word) {
        word.push('e');
    }
}

fn derived(word: &mut String, endings: &[(&str, &str)]) {
    let found = endings.iter().find(|(ending, _)| has_ending(word, ending));
    if let Some((ending, by)) = found
        && measure(without(word, ending.len())) > 0
    {
        replace(word, ending.len(), by);
    }
}

fn ending(word: &mut String) {
    let found = ENDINGS.iter().find(|ending| has_ending(word, ending));
    let len = match found {
        Some(ending) => ending.len(),
        None if has_ending(word, "sion") || has_ending(word, "tion") => 3,
        None => return,
    };
    if measure(without(word, len)) > 1 {
        replace(word, len, "");
    }
}
