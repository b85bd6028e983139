//! Secrets after a name that means a secret: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, `X-Auth-Token: …`. The
//! words of such names are in `names.txt`.

use crate::name::{Gap, Kind};
use crate::value::{self, Value};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The words of names and their meanings, one word on each line.
const WORDS: &str = include_str!("names.txt");

/// The search finds a part of a name. The name must have fewer bytes than this before the part, and fewer bytes than
/// this from the start of the part to the end of the name.
const LONGEST_NAME: usize = 64;

/// The most bytes between a name and its value.
const LONGEST_GAP: usize = 64;

/// The number of bytes before a name that are read. They show whether a value can follow after a blank.
const BEFORE: usize = 128;

/// The meaning of a word in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Password,
    Token,
    /// A word joined with `key`.
    Joined,
    Public,
}

/// The words of names.
pub(crate) struct Names {
    words: HashMap<&'static str, Word>,
    /// The words that mean a secret if `key` follows.
    of_key: HashSet<&'static str>,
}

impl Names {
    pub(crate) fn new() -> Self {
        let mut names = Self {
            words: HashMap::new(),
            of_key: HashSet::new(),
        };
        let lines = WORDS.lines().filter(|line| !line.starts_with('#'));
        for (class, word) in lines.filter_map(|line| line.split_once(' ')) {
            let meaning = match class {
                "password" => Word::Password,
                "token" => Word::Token,
                "joined" => Word::Joined,
                "public" => Word::Public,
                _ => {
                    names.of_key.insert(word);
                    continue;
                }
            };
            names.words.insert(word, meaning);
        }
        names
    }

    /// The texts that the search looks for to find names: each in lower case, with a capital, and in upper case.
    pub(crate) fn literals() -> Vec<String> {
        let parts = [
            "pass",
            "pwd",
            "token",
            "secret",
            "credential",
            "key",
            "auth",
        ];
        let forms = parts.iter().flat_map(|part| {
            let (first, rest) = part.split_at(1);
            let capital = format!("{}{rest}", first.to_uppercase());
            [(*part).to_owned(), capital, part.to_uppercase()]
        });
        // `pat` is too frequent in other words.
        forms.chain(["_PAT".to_owned()]).collect()
    }

    /// The kind of secret that a name means; `None` for other names.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        let parts = words(name);
        let lower: Vec<String> = parts.iter().map(|part| part.to_ascii_lowercase()).collect();
        let known = |word: &str| self.words.get(word).copied();
        let mut kind = None;
        for (at, word) in lower.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| lower.get(before));
            let is_of_key =
                |before: &String| self.of_key.contains(&**before) || self.ends(before).is_some();
            match known(word) {
                Some(Word::Joined) => kind = Some(Kind::Key),
                Some(Word::Public) if kind.is_some() || at + 1 < lower.len() => {
                    // `service_token` means a token, and `service_url` does not mean a secret.
                    if before.is_some() || !is_qualifier(word) {
                        return None;
                    }
                }
                _ if word == "key" && before.is_some_and(is_of_key) => kind = Some(Kind::Key),
                _ => kind = self.ends(word).or(kind),
            }
        }
        let is_constant = !name.bytes().any(|byte| byte.is_ascii_lowercase());
        match (kind, lower.as_slice()) {
            // `PWD` is the working directory.
            (Some(Kind::Password), [word]) if is_constant && word == "pwd" => None,
            (Some(kind), _) => Some(kind),
            (None, [.., last]) if last == "auth" && lower.len() == 1 => Some(Kind::Auth),
            (None, [_, .., last]) if last == "key" && is_constant => Some(Kind::Key),
            (None, [.., store, last]) if last == "auth" && is_constant => match store.as_str() {
                "redis" | "valkey" | "memcached" => Some(Kind::Password),
                _ => Some(Kind::Token),
            },
            _ => None,
        }
    }

    /// The kind of a word that means a password or a token, or that ends with such a word.
    fn ends(&self, word: &str) -> Option<Kind> {
        match self.words.get(word) {
            Some(Word::Password) => return Some(Kind::Password),
            Some(Word::Token) => return Some(Kind::Token),
            Some(_) => return None,
            None => {}
        }
        let ends = |some: &[&str]| some.iter().any(|one| word.ends_with(one));
        match () {
            () if ends(&["password", "passwd", "passphrase"]) => Some(Kind::Password),
            () if ends(&["token", "secret"]) => Some(Kind::Token),
            () => None,
        }
    }

    /// The secret that follows the name around `at`, and the kind of the secret.
    pub(crate) fn secret(&self, text: &[u8], at: usize) -> Option<(Kind, Range<usize>)> {
        let name = name_around(text, at)?;
        let shown = std::str::from_utf8(text.get(name.clone())?).ok()?;
        let kind = self.kind(last_member(shown.trim_start_matches('-')))?;
        let value = gap(text, &name).and_then(|gap| value::at(text, gap))?;
        // `PASS: TestParse` is the result of a test, not a password.
        let is_verdict = shown.eq_ignore_ascii_case("pass") && !value.is_quoted && !value.is_tight;
        // A pattern of a regular expression, or a method, may have such a name.
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_=:/+".contains(byte);
        let is_vague = shown.ends_with("_PAT") || kind == Kind::Token && shown.ends_with("_AUTH");
        let is_value = value.is_quoted || value.is_tight;
        let is_other = is_vague && !(is_value && value.shown.iter().all(is_plain));
        let is_secret = !is_verdict && !is_other && value.is_secret(kind);
        is_secret.then(|| (kind, value.whole(text)))
    }

    /// Whether a secret may follow the name around `at` in raw JSON. Blanks after the name may be escaped.
    pub(crate) fn may_have(&self, raw: &[u8], at: usize) -> bool {
        let has_gap = |name: &Range<usize>| {
            let rest = raw.get(name.end..).unwrap_or_default();
            gap(raw, name).is_some() || matches!(rest, [b'\\', b'n' | b'r' | b't' | b'u', ..])
        };
        let name = name_around(raw, at).filter(has_gap);
        let name = name.and_then(|name| std::str::from_utf8(raw.get(name)?).ok());
        name.is_some_and(|name| {
            self.kind(last_member(name.trim_start_matches('-')))
                .is_some()
        })
    }
}

/// The last member of a path of members: `password` of `spring.datasource.password`. If the last member is `value`, the
/// member before it is returned, since that member says what the value is.
fn last_member(name: &str) -> &str {
    let path = name.strip_suffix(".value").unwrap_or(name);
    path.rsplit('.').next().unwrap_or(path)
}

/// Whether a word may come before a word that means a secret.
fn is_qualifier(word: &str) -> bool {
    matches!(word, "service" | "test" | "provider" | "vault" | "public")
}

/// The words of a name.
fn words(name: &str) -> Vec<&str> {
    let bytes = name.as_bytes();
    let is = |at: usize, class: fn(&u8) -> bool| bytes.get(at).is_some_and(class);
    let mut out = Vec::new();
    let mut start = 0;
    for at in 0..=bytes.len() {
        let parts = bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphabetic());
        let is_upper = is(at, u8::is_ascii_uppercase);
        let before_is_lower = at > 0 && is(at - 1, u8::is_ascii_lowercase);
        let begins = is_upper && (before_is_lower || is(at + 1, u8::is_ascii_lowercase));
        if parts || begins {
            out.extend(name.get(start..at).filter(|word| !word.is_empty()));
            start = if parts { at + 1 } else { at };
        }
    }
    out
}

/// The name around the part at `at`; `None` if the name is too long.
fn name_around(text: &[u8], at: usize) -> Option<Range<usize>> {
    let head = text.get(at.saturating_sub(LONGEST_NAME)..at)?;
    let before = head.iter().rev().take_while(|byte| is_of_name(**byte));
    let mut start = at - before.count();
    // The letter of an escape does not belong to the name: `\nTOKEN=`.
    if start > 0 && text.get(start - 1) == Some(&b'\\') && start < at {
        start += 1;
    }
    let rest = text.get(at..(at + LONGEST_NAME).min(text.len()))?;
    let length = rest.iter().take_while(|byte| is_of_name(**byte)).count();
    (at - start < LONGEST_NAME && length < LONGEST_NAME).then_some(start..at + length)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The gap between the end of a name and the start of its value; `None` if no value can follow.
fn gap(text: &[u8], name: &Range<usize>) -> Option<Gap> {
    let rest = text.get(name.end..(name.end + LONGEST_GAP).min(text.len()))?;
    let shown = text.get(name.clone())?;
    let is_constant = !shown.iter().any(u8::is_ascii_lowercase);
    let closing = count(rest, |byte| {
        matches!(byte, b'"' | b'\'' | b'\\' | b']' | b'`')
    });
    let behind = rest.get(closing..)?;
    let blanks = count(behind, |byte| matches!(byte, b' ' | b'\t'));
    let sign = behind.get(blanks..)?;
    let gap = |end: usize| Gap {
        end: name.end + end,
        is_tight: false,
        is_attached: false,
        is_spaced: false,
        is_element: false,
        is_of_url: is_of_url(text, name.start),
        needs_quotes: false,
    };
    let assigned = [&b"=>"[..], b":=", b"?=", b"+=", b"=", b":"];
    let assigns = assigned.iter().find(|one| sign.starts_with(one));
    if let Some(one) = assigns {
        let is_comparison = matches!(sign, [b'=', b'=', ..] | [b':', b':', ..]);
        let is_sign = !is_comparison && !(sign.starts_with(b"://"));
        let behind = closing + blanks + one.len();
        // The marks of bold text, or the type in `password: &str = "…"`, may follow.
        let behind = behind + count(rest.get(behind..)?, |byte| byte == b'*');
        let is_of_type = |byte| is_of_name(byte) || b"&<> ?|".contains(&byte);
        let of_type = count(rest.get(behind..)?, is_of_type);
        let declares = *one == b":"
            && of_type > 2
            && rest.get(behind + of_type - 1..behind + of_type + 2) == Some(b" = ");
        let behind = if declares {
            behind + of_type + 1
        } else {
            behind
        };
        let after = count(rest.get(behind..)?, |byte| matches!(byte, b' ' | b'\t'));
        let is_tight = closing + blanks + after == 0 && one.ends_with(b"=");
        return is_sign.then_some(Gap {
            is_tight,
            is_attached: is_constant && is_tight,
            is_spaced: one.ends_with(b"=") && blanks + after > 0,
            ..gap(behind + after)
        });
    }
    if let Some(end) = value_member(rest.get(closing..)?) {
        return Some(gap(closing + end));
    }
    let quoted = |end: usize| Gap {
        needs_quotes: true,
        ..gap(end)
    };
    match (sign, closing) {
        ([b'>', ..], 0) if text.get(name.start.checked_sub(1)?) == Some(&b'<') => Some(Gap {
            is_element: true,
            ..gap(blanks + 1)
        }),
        // A call, such as `.password("…")` or `define('DB_PASSWORD', '…')`.
        ([b'(', ..], 0) => Some(quoted(blanks + 1)),
        ([b',', b' ', ..], 1..) if is_constant => Some(quoted(closing + blanks + 2)),
        ([b',', ..], 1..) if is_constant => Some(quoted(closing + blanks + 1)),
        // SQL, such as `PASSWORD '…'`.
        ([b'\'', ..], 0) if blanks > 0 && shown.eq_ignore_ascii_case(b"password") => {
            Some(quoted(blanks))
        }
        _ if closing == 0 && blanks > 0 && takes_blank(text, name) => Some(Gap {
            is_tight: true,
            ..gap(blanks)
        }),
        _ => None,
    }
}

/// Whether the name at `start` is the name of a parameter of a URL. The value of such a parameter ends at `&` or `#`.
fn is_of_url(text: &[u8], start: usize) -> bool {
    let before = start.checked_sub(1).and_then(|before| text.get(before));
    matches!(before, Some(b'?' | b'&' | b'#'))
}

/// The length of the text between a name and its value in a list of variables: `"name":"TOKEN","value":"…"`.
fn value_member(rest: &[u8]) -> Option<usize> {
    let is_between = |byte| {
        matches!(
            byte,
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b'"' | b'\\' | b'n'
        )
    };
    let before = count(rest, is_between);
    let behind = rest.get(before..)?.strip_prefix(b"value")?;
    let closing = count(behind, |byte| matches!(byte, b'"' | b'\\' | b' '));
    let after = behind.get(closing..)?;
    let blanks = count(after.get(1..)?, |byte| byte == b' ');
    let is_sign = matches!(after.first(), Some(b':' | b'='));
    (before > 0 && is_sign).then_some(before + b"value".len() + closing + 1 + blanks)
}

/// Whether a value follows the name after a blank, as for an option, a variable, or a line of `.netrc`.
fn takes_blank(text: &[u8], name: &Range<usize>) -> bool {
    if text
        .get(name.clone())
        .is_some_and(|shown| shown.starts_with(b"--"))
    {
        return true;
    }
    let head = text.get(name.start.saturating_sub(BEFORE)..name.start);
    let head = head.unwrap_or_default().trim_ascii_end();
    let mut words = head.rsplit(|byte| byte.is_ascii_whitespace());
    let (last, before) = (words.next(), words.find(|word| !word.is_empty()));
    let sets = [&b"ENV"[..], b"setenv", b"setx", b"-x", b"-gx", b"-Ux"];
    let configures = last == Some(b"set") && matches!(before, Some(b"configure" | b"config"));
    configures
        || last.is_some_and(|last| sets.iter().any(|one| is_last_word(last, one)))
        || before.is_some_and(|before| before.ends_with(b"login"))
}

/// Whether a text ends with this word. A quote or an escape may come before the word: `"setenv`, `\nsetenv`.
fn is_last_word(text: &[u8], word: &[u8]) -> bool {
    let before = text.strip_suffix(word);
    before.is_some_and(|before| !crate::is_behind(before, before.len(), crate::is_token_byte))
}

fn count(bytes: &[u8], is_one: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_one(**byte)).count()
}

/// Whether the value of a member is a secret.
pub(crate) fn is_secret_member(kind: Kind, value: &str) -> bool {
    Value {
        shown: value.as_bytes(),
        span: 0..value.len(),
        is_quoted: true,
        is_tight: false,
        is_attached: false,
        is_called: false,
        is_of_code: false,
        may_have_blanks: true,
        rest: 0,
    }
    .is_secret(kind)
}
