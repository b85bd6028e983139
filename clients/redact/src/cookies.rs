//! The cookies of a `Cookie` or `Set-Cookie` header: `theme=dark; sid=…; Path=/`.

/// The most bytes before the end of the first value that looks like a secret.
const SEARCHED: usize = 1024;
/// The most bytes of a value.
const LONGEST: usize = 4096;
/// The most bytes of the part of a list after the first secret.
const LONGEST_REST: usize = 600;
/// The most bytes of a name.
const LONGEST_NAME: usize = 100;
/// The fewest bytes of the first value. A shorter one is a setting, such as `theme=dark`.
const SHORTEST: usize = 6;
/// The fewest bytes of a later value. The first value may be an example: `name=value; name2=value2`.
const SHORTEST_BEHIND: usize = 8;

/// The attributes of a cookie.
const ATTRIBUTES: &[&str] = &[
    "domain", "expires", "max-age", "path", "priority", "samesite", "version",
];

/// The end of the cookies that begin at `at`; `None` if no value looks like a secret.
pub(super) fn end(text: &[u8], at: usize) -> Option<usize> {
    let whole = text;
    let text = text.get(..text.len().min(at + SEARCHED))?;
    let mut next = at;
    loop {
        let rest = text.get(next..)?;
        let name = count(rest, is_of_name);
        let of_value = rest.get(name..).unwrap_or_default();
        let (value, end) = match of_value.first() {
            Some(b'=') if (1..=LONGEST_NAME).contains(&name) => {
                let length = count(of_value.get(1..)?, is_of_value);
                (of_value.get(1..=length)?, next + name + 1 + length)
            }
            _ => (&b""[..], next + name),
        };
        let behind = text.get(end..).unwrap_or_default();
        if is_secret(rest.get(..name)?, value, next == at) {
            let rest = whole.get(end..whole.len().min(end + LONGEST))?;
            let value = count(rest, is_of_value);
            // The value of an attribute may have blanks: `Expires=Wed, 1 Jan 2031`.
            let list = rest.get(value..).filter(|rest| rest.first() == Some(&b';'));
            let list = count(list.unwrap_or_default(), is_of_list);
            return Some(end + value + list.min(LONGEST_REST));
        }
        let skipped = count(behind, |byte| is_of_list(byte) && byte != b';');
        if behind.get(skipped) != Some(&b';') {
            return None;
        }
        let blanks = count(behind.get(skipped + 1..)?, |byte| byte == b' ');
        next = end + skipped + 1 + blanks;
    }
}

fn is_secret(name: &[u8], value: &[u8], is_first: bool) -> bool {
    let is_attribute = ATTRIBUTES
        .iter()
        .any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
    let is_long = match is_first {
        true => value.len() >= SHORTEST,
        false => {
            let has_digit = value.iter().any(u8::is_ascii_digit);
            value.len() >= SHORTEST_BEHIND && has_digit || value.len() >= 2 * SHORTEST_BEHIND
        }
    };
    is_long && !is_attribute
}

fn count(bytes: &[u8], is_one: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_one(**byte)).count()
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.%$-".contains(&byte)
}

fn is_of_value(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !b"\"'\\;,<>{}()$".contains(&byte)
}

fn is_of_list(byte: u8) -> bool {
    !b"\n\"'\\<>".contains(&byte)
}
