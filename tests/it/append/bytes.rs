//! The bytes of the message or the entry that a client sends are stored unchanged.

use super::*;

const AWKWARD: &str = concat!(
    r#"{"role":"user","zeta":1.0,"alpha":12345678901234567890123,"content":"a\/b\u0041 \ud83d lone","#,
    r#""dup":1,"dup":2,"exp":1E+2,"neg":-0.0,"small":1e-400,"n" : [ 1 ,2 ],"é":"ü","nul":"\u0000"}"#
);

#[test]
fn the_bytes_of_a_message_are_kept() {
    let (mut d, path) = begun();
    let id = d.send_text(
        "append_message",
        &format!(r#"{{"entryId":"raw","message":{AWKWARD}}}"#),
    );
    assert_eq!(d.response(&id).unwrap()["entryId"], "raw");
    let file = fs::read_to_string(&path).unwrap();
    assert!(file.contains(AWKWARD), "{file}");
    for (method, params) in [
        ("get_entry", json!({"entryId": "raw"})),
        ("get_entries", json!({})),
        ("get_path", json!({})),
        ("get_tree", json!({"format": "nested"})),
    ] {
        let id = d.send(method, params);
        let text = d.response_text(&id);
        assert!(text.contains(AWKWARD), "{method}: {text}");
    }
}

#[test]
fn the_bytes_of_entries_are_kept_with_unknown_members() {
    let (mut d, path) = begun();
    let extra = r#""zz":1.0,"big":98765432109876543210,"message":{"role":"user","content":"x","k":1.50},"aa":{"b":1,"a":2,"b":3}"#;
    let id = d.send_text(
        "append_entries",
        &format!(r#"{{"entries":[{{"type":"message","id":"raw",{extra}}}]}}"#),
    );
    assert_eq!(d.response(&id).unwrap()["entryIds"], json!(["raw"]));
    let file = fs::read_to_string(&path).unwrap();
    let line = file.lines().last().unwrap();
    assert!(
        line.starts_with(r#"{"type":"message","id":"raw","parentId":"a1","timestamp":"#),
        "{line}"
    );
    assert!(line.ends_with(&format!("{extra}}}")), "{line}");
}

#[test]
fn line_breaks_between_tokens_become_spaces() {
    let home = Home::new();
    let framed = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let create = request(&json!(1), "create_session", &json!({}));
    let append = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"append_message\",\"params\":{\"entryId\":\"u1\",\n\"message\":{\n  \"role\": \"user\",\n  \"content\": \"line\\nbreak\"\n}}}";
    let input = format!("{}{}", framed(&create), framed(append));
    home.run(&[], &[], input).clean();
    let lines = file_lines(&home.only_file());
    assert_eq!(lines.len(), 2, "one entry, one line");
    assert_eq!(
        lines[1]["message"],
        json!({"role": "user", "content": "line\nbreak"})
    );
    let file = fs::read_to_string(home.only_file()).unwrap();
    assert!(
        file.contains(r#"  "role": "user","#),
        "spaces, and nothing else changed: {file}"
    );
}
