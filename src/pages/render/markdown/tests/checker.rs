//! Checks HTML with a reader that shares no code with the writer.

/// A start or end tag, or text, as a browser reads them.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Start(&'a str, Vec<(&'a str, String)>),
    End(&'a str),
    Text(String),
}

/// Reads HTML by strict rules: a tag has only lower-case letters and digits, and an attribute has double quotes.
/// Anything else, except text, is an error.
fn tokens(html: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = html;
    while !rest.is_empty() {
        let Some(inner) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            tokens.push(Token::Text(unescaped(&rest[..end])?));
            rest = &rest[end..];
            continue;
        };
        let is_name = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
        if let Some(inner) = inner.strip_prefix('/') {
            let (name, after) = inner.split_once('>').ok_or("an end tag without an end")?;
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(format!("</{name}>"));
            }
            tokens.push(Token::End(name));
            rest = after;
            continue;
        }
        let end = inner.find(|char| !is_name(char)).ok_or("a tag")?;
        let (name, mut inner) = inner.split_at(end);
        let mut attributes = Vec::new();
        while let Some(after) = inner.strip_prefix(' ') {
            let (key, after) = after.split_once("=\"").ok_or("an attribute")?;
            let (value, after) = after.split_once('"').ok_or("a value without an end")?;
            if !key.chars().all(is_name) || value.contains(['<', '>']) {
                return Err(format!("{key}={value}"));
            }
            attributes.push((key, unescaped(value)?));
            inner = after;
        }
        if name.is_empty() || !inner.starts_with('>') {
            return Err(format!("<{name} {inner:.40}"));
        }
        tokens.push(Token::Start(name, attributes));
        rest = &inner[1..];
    }
    Ok(tokens)
}

/// The text before it was escaped. Each `&` must begin one of five references.
fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (name, after) = after.split_once(';').ok_or("a bare &")?;
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            _ => return Err(format!("&{name};")),
        });
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

const VOID: &[&str] = &["br", "hr"];
const ELEMENTS: &[&str] = &[
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
    "del",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "hr",
    "br",
];

/// Fails unless the HTML has only allowed elements and attributes, and each element is closed at the right position.
pub(super) fn check(html: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for token in tokens(html)? {
        match token {
            Token::Text(_) => {}
            Token::End(name) if open.pop() == Some(name) => {}
            Token::End(name) => return Err(format!("</{name}> closes nothing")),
            Token::Start(name, attributes) => {
                if !ELEMENTS.contains(&name) {
                    return Err(format!("<{name}>"));
                }
                let names: Vec<_> = attributes.iter().map(|(key, _)| *key).collect();
                let ok = match (name, &*names) {
                    (_, []) => name != "a",
                    ("a", ["href", "rel"] | ["href", "title", "rel"]) => is_link(&attributes),
                    ("ol", ["start"]) => attributes[0].1.parse::<u64>().is_ok(),
                    ("code", ["class"]) => is_language(&attributes[0].1),
                    ("th" | "td", ["class"]) => {
                        ["left", "center", "right"].contains(&&*attributes[0].1)
                    }
                    _ => false,
                };
                if !ok || (name == "a" && open.contains(&"a")) {
                    return Err(format!("<{name} {attributes:?}> in {open:?}"));
                }
                if !VOID.contains(&name) {
                    open.push(name);
                }
            }
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("{open:?} are not closed")),
    }
}

fn is_link(attributes: &[(&str, String)]) -> bool {
    let href = &attributes[0].1;
    let is_allowed = ["http://", "https://", "mailto:"].iter().any(|scheme| {
        let start = href.get(..scheme.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(scheme)
    });
    let is_clean = !href
        .chars()
        .any(|char| char.is_control() || char.is_whitespace());
    is_allowed && is_clean && attributes.last().unwrap().1 == "noopener noreferrer"
}

fn is_language(class: &str) -> bool {
    let name = class.strip_prefix("language-").unwrap_or_default();
    let is_known =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+#._-".contains(&byte);
    !name.is_empty() && name.len() <= 32 && name.bytes().all(is_known)
}
