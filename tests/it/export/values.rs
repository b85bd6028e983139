//! Secrets that are recognized by their values.

use super::*;
use treelined_redact::ValueHash;

/// This value does not have the form of a token.
const VALUE: &str = "tangerine-boat-sails";

fn said() -> Log {
    Log::new("s1").user("u1", "", &format!("It answered {VALUE}. Ask Acme."))
}

fn hashed(salt: &str, value: &str) -> Json {
    let hash = ValueHash::of(salt.as_bytes(), value).unwrap();
    json!({"salt": salt, "hashes": [{"length": hash.length, "check": hash.check, "sha256": hash.digits()}]})
}

#[test]
fn values_that_a_client_sends_as_hashes_are_replaced() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &said());
    let plain = content(&mut d, json!({"format": "text"}));
    assert!(plain.contains(VALUE), "{plain}");
    let values = hashed("a salt of 16 bytes", VALUE);
    for format in ["text", "markdown", "trace"] {
        let log = d.ok(
            "export_session",
            json!({"format": format, "values": values, "scope": "branch"}),
        );
        let text = log["content"].as_str().unwrap();
        assert!(!text.contains("tangerine"), "{format}: {text}");
        assert!(text.contains("[redacted:variable]"), "{format}: {text}");
        assert_eq!(log["redactions"][0]["kind"], "variable", "{format}");
    }
    let kept = json!({"format": "text", "values": values, "redact": false});
    assert!(content(&mut d, kept).contains(VALUE));
}

#[test]
fn wrong_hashes_are_refused_with_what_they_need() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &said());
    let right = hashed("a salt of 16 bytes", VALUE);
    let change = |pointer: &str, value: Json| {
        let mut wrong = right.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        wrong
    };
    let many: Vec<Json> = vec![right["hashes"][0].clone(); 65];
    for (wrong, says) in [
        (change("/salt", json!("short")), "16 to 128"),
        (change("/hashes", json!(many)), "64 hashes"),
        (change("/hashes/0/length", json!(11)), "12 to 512"),
        (change("/hashes/0/check", json!(65536)), "16 bits"),
        (change("/hashes/0/sha256", json!("zz")), "hexadecimal"),
    ] {
        let params = json!({"format": "text", "values": wrong});
        let error = d.err_kind("export_session", params, "invalidParams");
        assert!(
            error.message.contains("values") && error.message.contains(says),
            "{error:?}"
        );
    }
}

#[test]
fn values_of_the_daemons_and_of_the_commands_variables_are_replaced() {
    let home = Home::new();
    said().store(&home, "2025-01-01_s1.jsonl");
    let export = |variables: &[(&str, &str)]| {
        let output = home.run(&["export", "s1", "--text"], variables, "");
        (output.text(), output.stderr)
    };
    let (text, _) = export(&[("TOUR_NAME", VALUE)]);
    assert!(text.contains(VALUE), "{text}");
    let (text, report) = export(&[("TOUR_TOKEN", VALUE)]);
    assert!(
        text.contains("It answered [redacted:variable]. Ask"),
        "{text}"
    );
    assert_eq!(report, "redacted 1 \u{d7} variable in 1 entry\n");
    // The command does not start this daemon, which has the variable in its own environment.
    let path = said().save(&home);
    let mut d = Daemon::start_in(&home, &[], &[("TOUR_TOKEN", VALUE)]);
    d.ignore_bookkeeping();
    d.ignore("progress");
    d.open(&path);
    assert!(!content(&mut d, json!({"format": "text"})).contains(VALUE));
}

#[test]
fn words_of_the_configuration_are_replaced_and_not_shown() {
    let home = Home::new();
    said().store(&home, "2025-01-01_s1.jsonl");
    let key = "[summarizer.llm.providers.own]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:9/\"\nkey_env = \"MY_LLM\"\n";
    let config = crate::config::file(&home, &format!("[redact]\nwords = [\"acme\"]\n{key}"));
    let args = ["--config", &config, "export", "s1", "--text"];
    let output = home.run(&args, &[("MY_LLM", VALUE)], "");
    let text = output.text();
    assert!(
        text.contains("It answered [redacted:variable]. Ask [redacted:word]."),
        "{text}"
    );
    let shown = home.run(&["--config", &config, "config"], &[], "").text();
    assert!(
        !shown.contains("acme") && shown.contains("words = [\"***\"]"),
        "{shown}"
    );
    for wrong in ["[\"ab\"]", "[\" acme\"]", "[\"a\\tb c\"]"] {
        let config = crate::config::file(&home, &format!("[redact]\nwords = {wrong}\n"));
        let output = home.run(&["--config", &config, "config"], &[], "");
        assert!(
            output.code == Some(1)
                && output
                    .stderr
                    .contains("redact.words: word 1 must have 3 to 512 bytes"),
            "{wrong}: {}",
            output.stderr
        );
    }
}
