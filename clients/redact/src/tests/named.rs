//! Secrets after their names. In `named.txt`, each secret is between `«` and `»`. Lines without these marks must not
//! change.

use super::redacted;

const LINES: &str = include_str!("named.txt");

/// Once 58 of 144 samples stayed in an export. Among them were forms that agents print daily: assignments, members,
/// headers, options and parameters whose names mean a secret.
#[test]
fn secrets_beside_names_of_all_kinds_are_replaced_and_look_alikes_stay() {
    let mut wrong = Vec::new();
    for line in LINES.lines() {
        let text = line.replace(['«', '»'], "");
        let (out, kinds) = redacted(&text);
        let parts = line.split('«').enumerate().map(|(at, part)| match at {
            0 => part.to_owned(),
            _ => {
                let kind = kinds.get(at - 1).copied().unwrap_or("nothing");
                let rest = part.split_once('»').map_or("", |(_, rest)| rest);
                format!("[redacted:{kind}]{rest}")
            }
        });
        let expected: String = parts.collect();
        if out != expected {
            wrong.push(format!("{line}\n  {out}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_of_named_members_are_secrets_where_they_look_like_some() {
    let member = |name, value| super::redactor().member(name, value);
    assert_eq!(member("password", "hunter2"), Some("password"));
    assert_eq!(member("apiKey", "0a1b2c3d4e5f6789"), Some("key"));
    assert_eq!(member("GITHUB_TOKEN", "0a1b2c3d4e5f6789"), Some("token"));
    for (name, value) in [
        ("password", "required"),
        ("password", "${PASSWORD1}"),
        ("token", "the 2nd token of the line"),
        ("maxTokens", "4096000012345678"),
        ("path", "hunter2"),
    ] {
        assert_eq!(member(name, value), None, "{name}: {value}");
    }
}
