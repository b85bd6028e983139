use super::*;
use crate::tests::random::Random;

fn redactor() -> Redactor {
    Redactor::new(true, None).unwrap()
}

/// The text after redaction, and the kinds that were found.
fn redacted(text: &str) -> (String, Vec<&'static str>) {
    let mut kinds = Vec::new();
    let out = redactor()
        .text(text, &mut |kind| kinds.push(kind))
        .into_owned();
    (out, kinds)
}

/// Characters of a token, which no scanner of repositories takes for a real one.
fn chars(alphabet: &str, count: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    (0..count)
        .map(|at| alphabet[at * 7 % alphabet.len()])
        .collect()
}

const ALNUM: &str = "a1B2c3D4e5F6g7H8j9K0LmNpQrStUvWxYz";
const HEX: &str = "0a1b2c3d4e5f6789";

/// A secret of each kind that is one word.
fn tokens() -> Vec<(&'static str, String)> {
    let alnum = |count| chars(ALNUM, count);
    let hex = |count| chars(HEX, count);
    vec![
        ("anthropic-key", format!("sk-ant-api03-{}", alnum(93))),
        ("openai-key", format!("sk-proj-{}", alnum(120))),
        ("openai-key", format!("sk-{}", alnum(48))),
        ("openrouter-key", format!("sk-or-v1-{}", hex(64))),
        ("aws-access-key", format!("AKIA{}", chars("A2BC3DEF4", 16))),
        ("github-token", format!("ghp_{}", alnum(36))),
        ("github-token", format!("github_pat_{}", alnum(82))),
        ("gitlab-token", format!("glpat-{}", alnum(20))),
        ("slack-token", format!("xoxb-123456789012-{}", alnum(24))),
        ("stripe-key", format!("sk_live_{}", alnum(24))),
        ("google-api-key", format!("AIza{}", alnum(35))),
        ("google-oauth-secret", format!("GOCSPX-{}", alnum(28))),
        ("npm-token", format!("npm_{}", alnum(36))),
        ("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", alnum(80))),
        ("huggingface-token", format!("hf_{}", alnum(34))),
        ("azure-client-secret", format!("abC7Q~{}", alnum(33))),
        ("digitalocean-token", format!("dop_v1_{}", hex(64))),
        ("sendgrid-key", format!("SG.{}.{}", alnum(22), alnum(43))),
        ("twilio-key", format!("SK{}", hex(32))),
        ("telegram-token", format!("123456789:AA{}", alnum(33))),
        (
            "jwt",
            format!("eyJ{}.eyJ{}.{}", alnum(30), alnum(90), alnum(43)),
        ),
    ]
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

/// The prefilter reads raw JSON, where a line break is two characters and any character may be escaped.
#[test]
fn strings_of_an_entry_are_redacted_however_they_are_escaped() {
    for (kind, token) in tokens() {
        let escaped: String = token
            .chars()
            .map(|char| format!("\\u{:04x}", char as u32))
            .collect();
        let slashes = format!("https:\\/\\/a:{}@b", "pw1");
        for text in [
            token.clone(),
            format!("line\\n{token}\\n"),
            format!("\\t{token}"),
            format!("\\u001b[1;31m{token}"),
            format!("\\\"{token}\\\""),
            escaped,
        ] {
            let entry = format!(
                "{{\"type\":\"message\",\"id\":\"a\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}"
            );
            let mut kinds = Vec::new();
            let out = redactor()
                .entry(entry.as_bytes(), &mut |kind| kinds.push(kind))
                .into_owned();
            assert_eq!(kinds, [kind], "{entry}");
            let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let content = out["message"]["content"].as_str().unwrap();
            assert!(
                content.contains("[redacted:") && !content.contains(&token),
                "{content}"
            );
        }
        let mut kinds = Vec::new();
        let entry =
            format!("{{\"a\":\"{slashes}\",\"b\":\"Authorization:\\tBearer\\u0020abcdefgh\"}}");
        let out = redactor()
            .entry(entry.as_bytes(), &mut |kind| kinds.push(kind))
            .into_owned();
        assert_eq!(
            kinds,
            ["url-credentials", "authorization"],
            "{}",
            String::from_utf8_lossy(&out)
        );
    }
}

#[test]
fn ids_stay_and_every_other_string_and_key_is_redacted() {
    let token = format!("ghp_{}", chars(ALNUM, 36));
    let entry = r#"{"type":"T","id":"T","parentId":"T","customType":"T","x":["T",{"toolCallId":"T","name":"T","arguments":{"id":"T","T":"T","deep":[{"parentId":"T"}]},"id":"T"}],"n":1.50}"#;
    let shown = r#"{"type":"R","id":"T","parentId":"T","customType":"R","x":["R",{"toolCallId":"T","name":"R","arguments":{"id":"R","R":"R","deep":[{"parentId":"R"}]},"id":"T"}],"n":1.50}"#;
    let entry = entry.replace("\"T\"", &format!("\"{token}\""));
    let shown = shown
        .replace("\"T\"", &format!("\"{token}\""))
        .replace("\"R\"", "\"[redacted:github-token]\"");
    let out = redactor().entry(entry.as_bytes(), &mut |_| {}).into_owned();
    assert_eq!(String::from_utf8(out).unwrap(), shown);
}

#[test]
fn only_paths_in_the_home_directory_are_shortened() {
    let redactor = Redactor::new(false, Some("/home/ada/")).unwrap();
    let shown = |text: &str| redactor.text(text, &mut |_| {}).into_owned();
    assert_eq!(shown("/home/ada/x /home/ada"), "~/x ~");
    assert_eq!(
        shown("cd '/home/ada'; /home/adam /mnt/home/ada/x"),
        "cd '~'; /home/adam /mnt~/x".replace("/mnt~", "/mnt/home/ada")
    );
    let entry = br#"{"id":"a","cwd":"\/home\/ada\/x"}"#;
    let out = redactor.entry(entry, &mut |_| {}).into_owned();
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"id":"a","cwd":"~/x"}"#);
}

/// A search from each literal to the end of the text would take quadratic time: minutes for each of these.
#[test]
fn hostile_text_takes_linear_time() {
    let began = std::time::Instant::now();
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
    ] {
        let text = part.repeat(400_000 / part.len());
        let _ = redactor().text(&text, &mut |_| {});
        let entry = format!("{{\"a\":{}}}", serde_json::to_string(&text).unwrap());
        let _ = redactor().entry(entry.as_bytes(), &mut |_| {});
    }
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

#[test]
fn random_entries_stay_json_and_without_secrets_stay_as_they_are() {
    let mut random = Random(7);
    let pieces = [
        "\\n",
        "\\\"",
        "ghp_",
        "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
        "://u:p@h",
        " ",
        "é",
        "\\ud83d\\ude00",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "\\u0041",
    ];
    for _ in 0..2000 {
        let text: String = (0..random.below(8))
            .map(|_| pieces[random.below(pieces.len())])
            .collect();
        let entry =
            format!("{{\"id\":\"a\",\"t\":\"{text}\",\"u\":[\"{text}\",{{\"k\":\"{text}\"}}]}}");
        let mut found = 0;
        let out = redactor_shared()
            .entry(entry.as_bytes(), &mut |_| found += 1)
            .into_owned();
        let parsed: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert!(parsed["t"].is_string());
        assert!(found > 0 || out == entry.as_bytes(), "{entry}");
    }
}

fn redactor_shared() -> &'static Redactor {
    static SHARED: std::sync::LazyLock<Redactor> = std::sync::LazyLock::new(redactor);
    &SHARED
}
