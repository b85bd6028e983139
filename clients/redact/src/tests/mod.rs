mod corpus;
mod named;
mod values;

use super::samples::{ALNUM, chars, escaped_forms, tokens};
use super::*;

fn redactor() -> &'static Redactor {
    static SHARED: std::sync::LazyLock<Redactor> =
        std::sync::LazyLock::new(|| Redactor::new(true, None).unwrap());
    &SHARED
}

/// The text after redaction, and the kinds that were found.
fn redacted(text: &str) -> (String, Vec<&'static str>) {
    let mut kinds = Vec::new();
    let out = redactor()
        .text(text, &mut |kind, _| kinds.push(kind))
        .into_owned();
    (out, kinds)
}

#[test]
fn tokens_of_each_provider_are_replaced_by_their_kind() {
    for (kind, token) in tokens() {
        let texts = [
            token.clone(),
            format!("KEY={token}\n"),
            format!("\"{token}\","),
            format!("export K='{token}'; run"),
            format!("see\n{token}"),
            format!("\x1b[31m{token}\x1b[0m"),
            format!("ключ:{token}."),
        ];
        for text in texts {
            let (out, kinds) = redacted(&text);
            assert_eq!(kinds, [kind], "{text}");
            let expected = text.replace(&token, &format!("[redacted:{kind}]"));
            // A full stop may belong to a token.
            assert_eq!(
                out.trim_end_matches('.'),
                expected.trim_end_matches('.'),
                "{text}"
            );
        }
    }
}

#[test]
fn secrets_beside_names_are_replaced_and_the_names_stay() {
    let secret = chars(ALNUM, 40);
    let check = |text: &str, kind: &str, expected: &str| {
        let (out, kinds) = redacted(text);
        assert_eq!(
            (kinds.as_slice(), out.as_str()),
            (&[kind][..], expected),
            "{text}"
        );
    };
    let shown = |kind: &str| format!("[redacted:{kind}]");
    let key = shown("aws-secret-key");
    check(
        &format!("aws_secret_access_key = {secret}\n"),
        "aws-secret-key",
        &format!("aws_secret_access_key = {key}\n"),
    );
    check(
        &format!("AWS_SECRET_ACCESS_KEY=\"{secret}\""),
        "aws-secret-key",
        &format!("AWS_SECRET_ACCESS_KEY=\"{key}\""),
    );
    let authorization = shown("authorization");
    for head in [
        "Authorization: Bearer ",
        "authorization: basic ",
        "\"Authorization\": \"token ",
        "X-Api-Key: ",
        "-H 'AUTHORIZATION: ",
    ] {
        check(
            &format!("{head}{secret}\""),
            "authorization",
            &format!("{head}{authorization}\""),
        );
    }
    check(
        &format!("Bearer {secret}"),
        "bearer-token",
        &format!("Bearer {}", shown("bearer-token")),
    );
    let url = shown("url-credentials");
    check(
        "postgres://app:p4ss@wd!@db.example/x",
        "url-credentials",
        &format!("postgres://app:{url}@db.example/x"),
    );
    check(
        "https://user:hunter2@host",
        "url-credentials",
        &format!("https://user:{url}@host"),
    );
    check(
        &format!("AccountKey={secret}{secret}123456==;Endpoint"),
        "azure-storage-key",
        &format!("AccountKey={};Endpoint", shown("azure-storage-key")),
    );
}

#[test]
fn private_keys_are_replaced_whole_also_escaped_quoted_and_cut() {
    let line = chars(ALNUM, 64);
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{line}\n{line}\nab+c==\n-----END RSA PRIVATE KEY-----"
    );
    let openssh = format!(
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{line}\n{line}\n-----END OPENSSH PRIVATE KEY-----"
    );
    let pgp = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n{line}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----"
    );
    let whole = [
        key.clone(),
        openssh.clone(),
        pgp,
        key.replace('\n', "\\n"),
        openssh.replace('\n', "\r\n"),
        openssh.replace('\n', "\n    "),
        openssh.replace('\n', "\n> "),
    ];
    for key in whole {
        let (out, kinds) = redacted(&format!("before {key} after"));
        assert_eq!(out, "before [redacted:private-key] after", "{key}");
        assert_eq!(kinds, ["private-key"]);
    }
    let (out, _) = redacted(&format!("-----BEGIN PRIVATE KEY-----\n{line}\n{line}"));
    assert_eq!(out, "[redacted:private-key]", "the end is missing");
    for prose in [
        "a file begins with -----BEGIN PRIVATE KEY----- and some more text",
        "-----BEGIN PRIVATE KEY-----",
        &format!("-----BEGIN CERTIFICATE-----\n{line}\n-----END CERTIFICATE-----"),
        &format!("-----BEGIN PUBLIC KEY-----\n{line}\n-----END PUBLIC KEY-----"),
    ] {
        assert_eq!(redacted(prose).1, [] as [&str; 0], "{prose}");
    }
}

#[test]
fn look_alikes_stay() {
    let base64 = chars(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        4000,
    );
    let texts = [
        "d41d8cd98f00b204e9800998ecf8427e".to_owned(),
        "da39a3ee5e6b4b0d3255bfef95601890afd80709".to_owned(),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned(),
        "0199a1f2-7c3e-7d10-9b55-5a0c1b7f2d31".to_owned(),
        format!("data:image/png;base64,{base64}"),
        base64.clone(),
        "task-force sk-learn sk-SK disk-usage risk-averse-and-otherwise-unknown-people".to_owned(),
        "class sk-button-primary-large-and-some-more-of-them-without-digits".to_owned(),
        "npm_config_registry npm_lifecycle_event hf_transfer key-value".to_owned(),
        "SKIP TASK SKELETON SKU SG.md AKIA".to_owned(),
        "Authorization: required. The authorization header is missing".to_owned(),
        "Authorization: Bearer <token>, or Bearer $TOKEN, or Bearer authentication-is-needed-here-today".to_owned(),
        "http://localhost:8080/@scope/pkg https://example.org:443/a@b ssh://host/a:b@c".to_owned(),
        "https://user:${PASSWORD}@host https://user:***@host".to_owned(),
        "git@github.com:owner/repo.git mailto:ada@example.org".to_owned(),
        "eyJhbGciOiJIUzI1NiJ9 is the head of a token".to_owned(),
        "version=AKIAprefix ghp_short glpat-short xoxb-short".to_owned(),
        "12:30:AA and 1:AAA".to_owned(),
        "ssh://git@github.com/a/b https://git@github.com/a sftp://ada@host postgres://ada@db/x".to_owned(),
        "https://{token}@host https://$TOKEN@host https://ada:$PASSWORD@host".to_owned(),
        "[page](https://example.org),ada@example.org https://@host https://example.org/?to=ada@host".to_owned(),
        r#"{\"url\":\"https:\/\/example.org\/ada@host\",\"to\":\"ada@host\"}"#.to_owned(),
        r"https:\/\/example.org\nfrom:ada@example.org C:\\\\host:a@b".to_owned(),
        "docker://alpine:3.19@sha256:0123 https%3A%2F%2Fhost%3A8080%2Fa%40b".to_owned(),
        "Digest username=\"ada\", response=\"1\" AWS4-HMAC-SHA256 is an algorithm".to_owned(),
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==".to_owned(),
    ];
    for text in texts {
        assert_eq!(redacted(&text), (text.clone(), vec![]), "{text}");
    }
}

#[test]
fn redacted_text_has_nothing_more_to_redact() {
    let all: Vec<String> = tokens().into_iter().map(|(_, token)| token).collect();
    let all = format!(
        "{} https://a:secret1@b Authorization: Bearer abcdefgh1234",
        all.join(" ")
    );
    let (once, kinds) = redacted(&all);
    assert!(kinds.len() >= 23, "{kinds:?}");
    assert_eq!(redacted(&once), (once.clone(), vec![]));
}

#[test]
fn only_paths_in_the_home_directory_are_shortened() {
    let redactor = Redactor::new(false, Some("/home/ada/")).unwrap();
    let shown = |text: &str| redactor.text(text, &mut |_, _| {}).into_owned();
    assert_eq!(shown("/home/ada/x /home/ada"), "~/x ~");
    assert_eq!(
        shown("cd '/home/ada'; /home/adam /mnt/home/ada/x"),
        "cd '~'; /home/adam /mnt~/x".replace("/mnt~", "/mnt/home/ada")
    );
    for other in [
        "~/home/ada",
        "./home/ada/x",
        "${X}/home/ada",
        "/home/ada.old/x",
        "a/home/ada",
    ] {
        assert_eq!(shown(other), other);
    }
    assert_eq!(shown("It is in /home/ada."), "It is in ~.");
    let root = Redactor::new(false, Some("/root")).unwrap();
    let shown = root.text("~/root /root ~/root/x:/root/y", &mut |_, _| {});
    assert_eq!(shown, "~/root ~ ~/root/x:~/y");
    assert!(redactor.may_change(br#"{"cwd":"\/home\/ada\/x"}"#));
    assert!(!redactor.may_change(br#"{"cwd":"/home/eve/x"}"#));
}

#[test]
fn credentials_of_urls_are_replaced_however_they_are_written() {
    let mark = "[redacted:url-credentials]";
    let user_stays = [
        "https://ada:R@host",
        "postgres://app:R@db.example/x",
        "https://ada@example.org:R@host",
        r"https:\/\/ada:R@host\/x",
        r"https:\\/\\/ada:R@host",
        r#"{\"a\":\"https:\\\/\\\/ada:R@host\"}"#,
        "(https://ada:R@bücher.example)",
        "https://ada:R@${HOST}/x",
        "?to=https%3A%2F%2Fada%3AR%40host%2Fx",
    ];
    for form in user_stays {
        let form = form.replacen('R', "{}", 1);
        for password in ["pw1", "p%C3%A4ss%21", "%C3%A4%3A"] {
            let (out, kinds) = redacted(&form.replacen("{}", password, 1));
            assert_eq!(kinds, ["url-credentials"], "{form} {password}");
            assert_eq!(out, form.replacen("{}", mark, 1), "{password}");
        }
    }
    for password in ["pässwörd", "密码", r"p\u00e4ss", "p@ss", "a:b"] {
        let (out, _) = redacted(&format!("https://ada:{password}@host"));
        assert_eq!(out, format!("https://ada:{mark}@host"), "{password}");
    }
    for form in [
        "https://R@host/x",
        "HTTP://R@host",
        r"https:\/\/R@host",
        "git+https://R:@host",
        "https://R:x-oauth-basic@host",
        "https://R:abc@host",
    ] {
        for token in ["ghp_a1B2c3D4e5F6g7H8j9", "a0b1c2d3e4f5a6b7"] {
            let (out, kinds) = redacted(&form.replacen('R', token, 1));
            assert_eq!(kinds, ["url-credentials"], "{form}");
            assert!(!out.contains(token), "{out}");
        }
    }
    assert_eq!(
        redacted("https://ghp_x@host").0,
        format!("https://{mark}@host")
    );
    assert_eq!(
        redacted("https://TOKEN@host").0,
        format!("https://{mark}@host")
    );
    // JSON is searched without decoding it.
    for entry in [
        r#"{"a":"https://ada:p\u00e4ss@host"}"#,
        r#"{"a":"https:\\/\\/ada:pw1@host"}"#,
        r#"{"a":"{\"b\":\"https:\\/\\/TOKEN@host\"}"}"#,
        r#"{"a":"https://ada:p\\u00e4ss@host"}"#,
    ] {
        assert!(redactor().may_change(entry.as_bytes()), "{entry}");
    }
    let plain = r#"{"a":"https://example.org/x\nada@host, https:\\/\\/a ssh://git@host"}"#;
    assert!(!redactor().may_change(plain.as_bytes()));
}

/// Once only the first parameter was replaced, and the signature at the end stayed.
#[test]
fn all_parameters_of_an_authorization_header_are_replaced() {
    let digest = r#"username="Ada, \"x\"", realm="a b", nonce="c", uri="/dir/", qop=auth,nc=01, response="6629fae4""#;
    let aws = "Credential=AKIAEXAMPLE/20260101/us-east-1/s3/aws4_request, SignedHeaders=host;range, Signature=fe5f80f7";
    let hawk = r#"id="d", ts="1", nonce="n", mac="6R4rV5iE=", ext=1"#;
    for (scheme, parameters) in [
        ("Digest", digest),
        ("AWS4-HMAC-SHA256", aws),
        ("Hawk", hawk),
    ] {
        for head in [
            "Authorization: ",
            "proxy-authorization: ",
            "-H 'Authorization: ",
        ] {
            let (out, kinds) = redacted(&format!("{head}{scheme} {parameters}\nHost: x"));
            assert_eq!(kinds, ["authorization"], "{out}");
            assert_eq!(
                out,
                format!("{head}{scheme} [redacted:authorization]\nHost: x")
            );
        }
        let nested = parameters.replace('\\', "\\\\").replace('"', "\\\"");
        let (out, _) = redacted(&format!(
            "{{\"Authorization\": \"{scheme} {nested}\", \"b\": 1}}"
        ));
        let expected =
            format!("{{\"Authorization\": \"{scheme} [redacted:authorization]\", \"b\": 1}}");
        assert_eq!(out, expected);
    }
    let folded = format!("AWS4-HMAC-SHA256 {}", aws.replace(", ", ",\n  "));
    let (out, _) = redacted(&format!("['{folded}']"));
    assert_eq!(out, "['AWS4-HMAC-SHA256 [redacted:authorization]']");
    let url = format!(
        "https://b.example/x?X-Amz-Signature={}&y=1",
        chars(super::samples::HEX, 64)
    );
    let (out, _) = redacted(&url);
    assert_eq!(
        out,
        "https://b.example/x?X-Amz-Signature=[redacted:aws-signature]&y=1"
    );
}

/// A search from each literal to the end of the text would take quadratic time.
#[test]
fn hostile_text_takes_linear_time() {
    let time = |part: &str, length: usize| {
        let text = part.repeat(length / part.len());
        let began = std::time::Instant::now();
        let _ = redactor().text(&text, &mut |_, _| {});
        let _ = redactor().may_change(text.as_bytes());
        began.elapsed().as_secs_f64()
    };
    // Eight times the text takes eight times as long, or 64 times. A busy machine may stretch one measurement.
    let is_linear = |part: &str| time(part, 200_000) < 16.0 * time(part, 25_000);
    for part in [
        "eyJ",
        "eyJ-",
        "eyJaaaaaaaaaaaa.",
        "sk-ant-api03-",
        "sk-",
        "-----BEGIN PRIVATE KEY-----",
        "://",
        "://a:",
        "://a:a@",
        "SK",
        "SG.",
        "Authorization: Bearer ",
        "1:AA",
        "AKIA",
        "ghp_",
        "glpat-",
        "\\u0020",
        "Q~",
        "-----BEGIN PRIVATE KEY-----\naaaaaaaaaaaaaaaaa\n",
        "a:1:-----BEGIN PRIVATE KEY-----",
        "https://a",
        "https://a@",
        "https://a:\\u00e4",
        ":\\/",
        ":\\\\/\\\\/",
        "%3A%2F%2F",
        "%3A%2F%2Fa%3A",
        "Authorization: Foo a=1,",
        "Cookie: a=1;",
        "Cookie: a=1; sid=12345678",
        "curl -b ",
        "curl -u \"a:",
        "mysql ",
        "DB_PASSWORD=a#",
        "DB_PASSWORD=a,",
        "DB_PASSWORD=\"a ",
        "Password=a!!",
        "Authorization: Digest ",
        "Authorization: Digest a=\"",
        "AWS4-HMAC-SHA256 Credential=",
        "pass",
        "password=",
        "token=a",
        "token=\"",
        "api_key: ",
        "secret='\\",
        "a_token\":\"",
        "name: TOKEN\n value",
        "cookie: a=",
        "curl ",
        "mysql ",
        "echo ",
        "X-Amz-Signature=",
    ] {
        assert!((0..30).any(|_| is_linear(part)), "{part}");
    }
}

/// JSON is searched without decoding it: a line break has two characters, and any character may be an escape.
#[test]
fn json_that_may_change_is_found_however_it_is_escaped() {
    for (kind, token) in tokens() {
        for text in escaped_forms(&token) {
            let json = format!("{{\"a\":\"{text}\"}}");
            assert!(redactor().may_change(json.as_bytes()), "{kind}: {json}");
        }
    }
    let keeps = Redactor::new(false, None).unwrap();
    assert!(!keeps.may_change(br#"{"a":"\u0041"}"#));
    assert!(!redactor().may_change(br#"{"a":"no \n secret \" at all"}"#));
}

/// Programs put a line number before each line of a key, and JSON escapes the line breaks in strings. A search in the
/// bytes of an entry once did not recognize such a key, which stayed in exports.
#[test]
fn private_keys_are_replaced_with_the_numbers_of_their_lines() {
    let lines = [
        "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
        chars(ALNUM, 64),
        format!("12{}", chars(ALNUM, 62)),
        chars(ALNUM, 31),
        "-----END RSA PRIVATE KEY-----".to_owned(),
    ];
    let joined = |line: &dyn Fn(usize, &str) -> String| -> String {
        let numbered = lines.iter().enumerate();
        numbered.map(|(at, text)| line(at + 1, text)).collect()
    };
    for text in [
        joined(&|_, text| format!("{text}\n")),
        joined(&|_, text| format!("{text}\\n")),
        joined(&|at, text| format!("{at:>6}\t{text}\n")),
        joined(&|at, text| format!("{at:>6}→{text}\n")),
        joined(&|at, text| format!("{at}: {text}\n")),
        joined(&|at, text| format!("{at:>3} | {text}\n")),
        joined(&|at, text| format!("+{at:>3} {text}\n")),
        joined(&|_, text| format!("-{text}\n")),
        joined(&|at, text| format!("keys/id_rsa:{at}:{text}\n")),
        joined(&|at, text| format!("./keys/id_rsa:{at}:{text}\n")),
        joined(&|_, text| format!("2026/id_rsa:{text}\n")),
        joined(&|at, text| match at {
            1 => format!("id_rsa:{at}:{text}\n"),
            _ => format!("id_rsa-{at}-{text}\n"),
        }),
        joined(&|at, text| format!("keys/id_rsa:{at}:{text}\\n")),
        joined(&|_, text| format!("# {text}\n")),
        joined(&|_, text| format!("  \"{text}\\n\" +\n")),
        joined(&|_, text| format!("'{text}\\n',\n")),
        joined(&|_, text| format!("    . '{text}'\n")),
        joined(&|_, text| format!("(\"{text}\\n\")\n")),
        joined(&|_, text| format!("\\\"{text}\\\\n\\\" +\\n")),
        joined(&|_, text| format!("`{text}\\n` +\n")),
    ] {
        let (out, kinds) = redacted(&text);
        assert_eq!(kinds, ["private-key"], "{text}");
        let left = lines[1..4].iter().find(|line| out.contains(&line[..20]));
        assert_eq!(left, None, "{out}");
        let entry = format!("{{\"text\":{}}}", format!("{text:?}").replace("\\'", "'"));
        assert!(redactor().may_change(entry.as_bytes()), "{text}");
    }
}

/// Titles lose the first byte of the escape codes of a terminal, and text in URLs and in source code has character
/// codes.
#[test]
fn tokens_behind_codes_and_other_letters_are_replaced() {
    let token = format!("ghp_{}", chars(ALNUM, 36));
    for before in [
        "[32m",
        "\u{1b}[1;31m",
        "[2J",
        "%22",
        "%3D",
        "\\u0022",
        "\\x22",
        "是",
        "キー",
        "é",
    ] {
        let (out, kinds) = redacted(&format!("{before}{token}请"));
        assert_eq!(kinds, ["github-token"], "{before}");
        assert_eq!(out, format!("{before}[redacted:github-token]请"));
        let entry = format!("{{\"text\":\"{}{token}请\"}}", before.escape_default());
        assert!(redactor().may_change(entry.as_bytes()), "{entry}");
        let entry = format!("{{\"text\":\"{before}{token}请\"}}");
        assert!(redactor().may_change(entry.as_bytes()), "{entry}");
    }
}
