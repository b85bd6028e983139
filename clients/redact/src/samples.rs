//! Secrets for the tests of this crate, and of crates that use it.

/// The characters of a token. Scanners of repositories do not take the token for a real one.
pub(crate) fn chars(alphabet: &str, count: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    (0..count)
        .map(|at| alphabet[at * 7 % alphabet.len()])
        .collect()
}

pub(crate) const ALNUM: &str = "a1B2c3D4e5F6g7H8j9K0LmNpQrStUvWxYz";
pub(crate) const HEX: &str = "0a1b2c3d4e5f6789";

/// One secret of each kind that is a single word.
pub(crate) fn tokens() -> Vec<(&'static str, String)> {
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

/// A token as JSON writes it in strings: plain, after escapes and colours, and with escapes in it.
pub(crate) fn escaped_forms(token: &str) -> [String; 6] {
    let escape = |char| format!("\\u{:04x}", u32::from(char));
    [
        token.to_owned(),
        format!("line\\n{token}\\n"),
        format!("\\t{token}"),
        format!("\\u001b[1;31m{token}"),
        format!("\\\"{token}\\\""),
        token.chars().map(escape).collect(),
    ]
}
