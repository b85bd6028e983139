//! The parameters of an `Authorization` header: `username="ada", response="…"`.

/// The most bytes of a list of parameters.
const LONGEST: usize = 8192;
/// The most bytes of a name.
const LONGEST_NAME: usize = 64;

/// The end of the parameters that begin at `at`; `None` if there are none.
pub(super) fn end(text: &[u8], at: usize) -> Option<usize> {
    let text = text.get(..text.len().min(at + LONGEST))?;
    let mut last = None;
    let mut next = at;
    while let Some(end) = parameter_end(text, next) {
        last = Some(end);
        next = skip_comma(text, end);
        if next == end {
            break;
        }
    }
    last
}

/// Whether the value of a parameter looks like a secret: it has a digit, and eight or more bytes.
pub(super) fn has_secret(parameters: &[u8]) -> bool {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    parameters.split(is_between).any(|parameter| {
        let equals = memchr::memchr(b'=', parameter);
        let value = equals.and_then(|at| parameter.get(at + 1..));
        value.is_some_and(|value| value.len() >= 8 && value.iter().any(u8::is_ascii_digit))
            // A token may end with `=`.
            || value == Some(b"") && parameter.len() > 16
    })
}

/// The end of one parameter: a name, `=` and a value.
fn parameter_end(text: &[u8], at: usize) -> Option<usize> {
    let is_of_name =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'*');
    let rest = text.get(at..)?;
    let name = rest
        .iter()
        .take(LONGEST_NAME)
        .take_while(is_of_name)
        .count();
    if name == 0 || rest.get(name) != Some(&b'=') {
        return None;
    }
    let value = at + name + 1;
    let rest = text.get(value..)?;
    let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    match rest.get(backslashes) {
        Some(b'"') => Some(quoted_end(text, value + backslashes + 1, backslashes)),
        _ => {
            let is_plain = |byte: &&u8| {
                !byte.is_ascii_whitespace() && !matches!(byte, b',' | b'"' | b'\'' | b'\\')
            };
            Some(value + rest.iter().take_while(is_plain).count())
        }
    }
}

/// The end of a quoted value, after its closing quote. Quotes inside the value have more backslashes.
fn quoted_end(text: &[u8], at: usize, backslashes: usize) -> usize {
    let mut before = 0;
    let rest = text.get(at..).unwrap_or_default();
    for (number, byte) in rest.iter().enumerate() {
        before = match byte {
            b'"' if before <= backslashes => return at + number + 1,
            b'\n' => return at + number,
            b'\\' => before + 1,
            _ => 0,
        };
    }
    text.len()
}

/// Skips a comma and the blanks and line breaks around it, escaped or not. Blanks without a comma separate parameters
/// too.
fn skip_comma(text: &[u8], at: usize) -> usize {
    let blanks = |mut at: usize, breaks: bool| {
        loop {
            at += match text.get(at..).unwrap_or_default() {
                [b' ' | b'\t', ..] => 1,
                [b'\r' | b'\n', ..] if breaks => 1,
                [b'\\', b'r' | b'n' | b't', ..] if breaks => 2,
                _ => return at,
            };
        }
    };
    let next = blanks(at, false);
    match text.get(next) {
        Some(b',') => blanks(next + 1, true),
        _ => next,
    }
}
