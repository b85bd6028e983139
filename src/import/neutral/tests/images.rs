//! Images are either kept, or described in words.

use super::*;

const DESCRIBED: &str = "[An image is not part of this session: ";

fn image(mime: &str, data: &str) -> Value {
    json!({ "type": "image", "mimeType": mime, "data": data })
}

fn clean_for(tool: Option<Tool>, messages: &[Value]) -> NeutralPath {
    let options = Options {
        tool,
        ..Options::default()
    };
    NeutralPath::of(path(messages), options)
}

/// Once the handoff as a text left images out, did not say so, and did not count them.
#[test]
fn a_text_describes_all_images() {
    let shown = json!({ "role": "toolResult", "toolCallId": "c", "isError": false,
        "content": [image("image/png", "iVBORw0K")] });
    let messages = [
        json!({ "role": "user", "content": [image("image/png", "iVBORw0K")] }),
        model(json!([call("c", "show", json!({}))])),
        shown,
        said("I see."),
    ];
    let path = clean_for(None, &messages);
    let shape = shape(&path);
    let described = format!("{DESCRIBED}image/png, 6 bytes, SHA-256");
    assert!(
        shape[0].starts_with(&format!("user {described}")),
        "{shape:?}"
    );
    assert!(
        shape[2].starts_with(&format!("results c={described}")),
        "{shape:?}"
    );
    assert_eq!(path.losses.count(Loss::Images), 2);
}

/// Once the image of the prompt was lost, because the prompt had only the text.
#[test]
fn an_image_of_the_prompt_is_described() {
    let question = json!({ "role": "user", "content": [
        { "type": "text", "text": "What is this?" }, image("image/png", "iVBORw0K"),
    ]});
    for tool in [Some(Tool::Pi), None] {
        let path = clean_for(tool, &[user("Hello."), said("Yes?"), question.clone()]);
        let prompt = path.prompt.unwrap_or_default();
        let expected = format!("What is this?\n{DESCRIBED}image/png, 6 bytes, SHA-256");
        assert!(prompt.starts_with(&expected), "{prompt}");
        assert_eq!(path.losses.count(Loss::Images), 1);
    }
}

/// Once data that is not Base64 was written into a file, which the agent's provider then refused.
#[test]
fn an_image_without_base64_is_described() {
    let is_kept = |data: &str| {
        let said_ = json!({ "role": "user", "content": [image("image/png", data)] });
        let path = clean_for(Some(Tool::Codex), &[said_, said("I see.")]);
        let is_kept = shape(&path)[0] == "user <image/png>";
        assert_eq!(path.losses.count(Loss::Images), u64::from(!is_kept));
        is_kept
    };
    for data in ["AAAA", "AA+/", "AAA", "AAA=", "AA=="] {
        assert!(is_kept(data), "{data}");
    }
    for data in [
        "", "====", "A", "AAAAA", "A===", "AA=A", "AA A", "AA\nA", "\"AA", "AA-_", "ä",
    ] {
        assert!(!is_kept(data), "{data}");
    }
}

/// Once the size of an image was counted in two ways, so an image of 5 MB and one byte was accepted.
#[test]
fn the_largest_image_has_five_megabytes() {
    // Each digit stands for six bits.
    let whole = (5 << 20) / 3 * 4;
    let is_kept = |digits: usize| {
        let data = "A".repeat(digits);
        let said_ = json!({ "role": "user", "content": [image("image/png", &data)] });
        let path = clean_for(Some(Tool::Codex), &[said_, said("I see.")]);
        path.losses.count(Loss::Images) == 0
    };
    // 5 MiB is 3 n + 2 bytes. The last two bytes have three digits.
    assert!(is_kept(whole + 3));
    assert!(!is_kept(whole + 4));
}
