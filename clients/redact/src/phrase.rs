//! Passwords of several words: `correct horse battery staple`, `My d0g ate 7 cats!`.

/// The bytes of a phrase.
const BYTES: std::ops::RangeInclusive<usize> = 8..=96;
/// The number of words of a phrase without digits in its words.
const WORDS: std::ops::RangeInclusive<usize> = 4..=12;

/// Words that occur in labels of fields, in messages and in descriptions.
const OF_SENTENCES: &[&str] = &[
    "account",
    "again",
    "all",
    "and",
    "any",
    "are",
    "base64",
    "been",
    "being",
    "bit",
    "but",
    "can",
    "cannot",
    "change",
    "changed",
    "changes",
    "character",
    "characters",
    "chars",
    "choose",
    "code",
    "confirm",
    "contain",
    "contains",
    "could",
    "create",
    "credentials",
    "current",
    "default",
    "digit",
    "digits",
    "does",
    "email",
    "empty",
    "encoded",
    "encrypted",
    "enter",
    "error",
    "example",
    "expired",
    "fail",
    "failed",
    "field",
    "file",
    "for",
    "forgot",
    "forgotten",
    "from",
    "generated",
    "has",
    "hash",
    "hashed",
    "have",
    "here",
    "hidden",
    "incorrect",
    "input",
    "insert",
    "into",
    "invalid",
    "its",
    "key",
    "last",
    "least",
    "length",
    "letter",
    "letters",
    "log",
    "login",
    "long",
    "longer",
    "match",
    "may",
    "md5",
    "minimum",
    "missing",
    "more",
    "must",
    "name",
    "needs",
    "never",
    "new",
    "none",
    "not",
    "number",
    "numbers",
    "old",
    "optional",
    "or",
    "our",
    "password",
    "passwords",
    "passphrase",
    "placeholder",
    "please",
    "provided",
    "random",
    "redacted",
    "remember",
    "repeat",
    "replace",
    "require",
    "required",
    "requires",
    "reset",
    "sample",
    "secret",
    "see",
    "set",
    "sha1",
    "sha256",
    "sha512",
    "should",
    "sign",
    "some",
    "string",
    "strong",
    "than",
    "that",
    "the",
    "their",
    "then",
    "these",
    "this",
    "token",
    "too",
    "type",
    "unknown",
    "update",
    "updated",
    "use",
    "used",
    "user",
    "username",
    "uses",
    "using",
    "utf8",
    "value",
    "valid",
    "want",
    "was",
    "weak",
    "when",
    "where",
    "which",
    "while",
    "will",
    "with",
    "without",
    "wrong",
    "you",
    "your",
];

/// Whether a value with blanks is a password, and not text that a person reads.
pub(crate) fn is_secret(shown: &str) -> bool {
    let is_of_phrase =
        |byte: u8| byte.is_ascii_alphanumeric() || b" !?.,@#*_+'&^~-".contains(&byte);
    if !BYTES.contains(&shown.len()) || !shown.bytes().all(is_of_phrase) {
        return false;
    }
    let words: Vec<&str> = shown.split(' ').collect();
    let is_of_sentence = |word: &&str| {
        let plain = word.trim_matches(|char: char| char.is_ascii_punctuation());
        let lower = plain.to_ascii_lowercase();
        word.is_empty() || OF_SENTENCES.contains(&lower.as_str())
    };
    if words.iter().any(is_of_sentence) {
        return false;
    }
    let is_plain = |word: &&str| word.len() >= 3 && word.bytes().all(|it| it.is_ascii_lowercase());
    let is_of_words = WORDS.contains(&words.len()) && words.iter().all(is_plain);
    let mixed = words.iter().filter(|word| is_mixed(word)).count();
    is_of_words || words.iter().any(|word| has_digit_inside(word)) || mixed >= 2
}

fn is_mixed(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Whether letters are on both sides of a digit, as in `d0g`.
fn has_digit_inside(word: &str) -> bool {
    let inside = word.trim_matches(|char: char| !char.is_ascii_alphabetic());
    inside.bytes().any(|byte| byte.is_ascii_digit())
        && inside.bytes().all(|byte| byte != b'-' && byte != b'.')
}
