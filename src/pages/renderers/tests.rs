use super::*;
use std::collections::BTreeMap;
use treelined_core::entry::{Kind, Role};
use treelined_core::id::ConnectionId;
pub(crate) use treelined_core::tree::Flags;
use treelined_core::view::{RowStyle, Subject};

const TODO: &str = r#"{"type":"custom_message","id":"m1","customType":"todo","content":"Ship it","display":true,"details":{"done":2,"total":5,"title":"A \"b\"\n c","open":true,"tags":["x","y",3,null,{"type":"text","text":"z"},{"type":"image"},{"n":1}],"nothing":null,"deep":{"a":{"b":"c"}}}}"#;

fn subject(kind: Kind, role: Role) -> Subject {
    Subject {
        kind,
        role,
        flags: Flags::NONE,
        calls: false,
    }
}

fn custom_message() -> Subject {
    subject(Kind::CustomMessage, Role::None)
}

fn renderer(preview: &str) -> Renderer {
    Renderer::new(preview, None, None).unwrap()
}

#[track_caller]
fn check(template: &str, line: &str, expect: &str) {
    let look = renderer(template).look(line.as_bytes(), custom_message());
    assert_eq!(look.preview.as_deref(), Some(expect), "{template}");
}

#[test]
fn a_template_shows_members_of_the_entry() {
    for (template, expect) in [
        ("{details.done}/{details.total} {content}", "2/5 Ship it"),
        ("{details.open} {display}", "true true"),
        ("{details.title}", "A \"b\" c"),
        ("{details.tags}", "x y 3 z [image]"),
        ("{details.deep.a.b}", "c"),
        ("{content}{content}", "Ship itShip it"),
        ("no member", "no member"),
        ("", ""),
    ] {
        check(template, TODO, expect);
    }
}

#[test]
fn a_missing_member_an_object_and_null_are_empty() {
    for template in [
        "{details.x}",
        "{details.done.x}",
        "{nothing.at.all}",
        "{details}",
        "{details.nothing}",
        "{details.deep.a}",
        "{Content}",
    ] {
        check(template, TODO, "");
        check(&format!("a{template}b"), TODO, "ab");
    }
}

#[test]
fn doubled_braces_are_braces() {
    check("{{{content}}} }}{{", TODO, "{Ship it} }{");
    check("{{content}}", TODO, "{content}");
}

#[test]
fn the_result_is_one_clean_line_of_at_most_200_characters() {
    let long = "words ".repeat(100);
    let line = format!(r#"{{"content":"\u0007\u001b[31m {long}","customType":"todo"}}"#);
    let look = renderer("  {content}\n\t!").look(line.as_bytes(), custom_message());
    let preview = look.preview.unwrap();
    assert_eq!(preview.chars().count(), 200);
    assert!(preview.starts_with("[31m words words"), "{preview}");
    check("a\u{9b}\n\n b", TODO, "a b");
}

/// Members of JSON objects may be repeated and escaped.
#[test]
fn the_last_member_of_a_name_counts_whatever_its_spelling() {
    let line = r#"{"details":{"a":1,"b":1},"details":{"\u0061":2},"content":"x","content":"y"}"#;
    check("{details.a}|{details.b}|{content}", line, "2||y");
}

#[test]
fn a_damaged_line_shows_the_members_before_the_damage() {
    check("{a} {b}", r#"{"a":"x","b":"y"#, "x");
    check("{a}", "", "");
    check("{a}", "[1]", "");
}

#[test]
fn a_bad_template_names_the_position_of_its_fault() {
    let many = (0..40).map(|number| format!("{{m{number}}}"));
    for (template, position) in [
        ("{", 0),
        ("ab}", 2),
        ("é{content", 1),
        ("{a{b}", 0),
        ("{}", 0),
        ("x {a..b}", 2),
        ("{.a}", 0),
        ("{a.}", 0),
        (&format!("{{{}}}", "a.".repeat(16) + "a"), 0),
        (&many.collect::<String>(), 4 * 10 + 5 * 22),
        (&"é".repeat(600), 512),
    ] {
        match Renderer::new(template, None, None) {
            Err(BadRenderer::Template(bad)) => assert_eq!(bad.position, position, "{template}"),
            other => panic!("{template}: {other:?}"),
        }
    }
}

#[test]
fn an_icon_is_a_few_visible_characters() {
    let icon = |icon: &str| Renderer::new("", Some(icon.to_owned()), None);
    for good in ["☑", "👩‍👩‍👧", "todo"] {
        assert!(icon(good).is_ok(), "{good}");
    }
    for bad in ["", " ", "\u{1b}[1m", "a\nb", "\u{202e}x", &"x".repeat(17)] {
        assert!(matches!(icon(bad), Err(BadRenderer::Icon(_))), "{bad:?}");
    }
}

#[test]
fn displayed_custom_messages_have_a_style_of_their_own() {
    let hidden = Subject {
        flags: Flags::HIDDEN,
        ..custom_message()
    };
    for (subject, style) in [
        (custom_message(), Some(RowStyle::Accent)),
        (hidden, None),
        (subject(Kind::Custom, Role::None), None),
        (subject(Kind::Message, Role::Custom), Some(RowStyle::Accent)),
        (subject(Kind::Message, Role::User), None),
    ] {
        assert_eq!(usual_look(subject).style, style, "{subject:?}");
        let plain = renderer("x").look(TODO.as_bytes(), subject);
        assert_eq!(plain.style, style, "{subject:?}");
    }
    let warning = Renderer::new("x", Some("!".into()), Some(RowStyle::Warning)).unwrap();
    let look = warning.look(TODO.as_bytes(), custom_message());
    assert_eq!(
        (look.style, look.icon.as_deref()),
        (Some(RowStyle::Warning), Some("!"))
    );
}

fn found(renderers: &Renderers, line: &str, subject: Subject) -> Option<String> {
    let found = renderers.find(line.as_bytes(), subject).unwrap();
    found.and_then(|renderer| renderer.look(line.as_bytes(), subject).preview)
}

#[test]
fn a_configured_renderer_wins_over_connections_and_the_latest_over_earlier_ones() {
    let (first, second) = (ConnectionId(1), ConnectionId(2));
    let mut renderers = Renderers::default();
    let shown = |renderers: &Renderers| found(renderers, TODO, custom_message());
    assert_eq!(shown(&renderers), None);
    assert!(renderers.register(first, "todo", renderer("first")));
    assert!(renderers.register(second, "todo", renderer("second")));
    assert_eq!(shown(&renderers).as_deref(), Some("second"));
    assert!(renderers.register(first, "todo", renderer("first again")));
    assert_eq!(shown(&renderers).as_deref(), Some("first again"));
    renderers.remove_all(first);
    assert_eq!(shown(&renderers).as_deref(), Some("second"));
    renderers.remove_all(second);
    assert!(renderers.is_empty());
    let configured = BTreeMap::from([("todo".to_owned(), renderer("configured"))]);
    let mut renderers = Renderers::configured(&configured);
    assert!(renderers.register(second, "todo", renderer("second")));
    assert_eq!(shown(&renderers).as_deref(), Some("configured"));
}

#[test]
fn a_connection_has_a_limited_number_of_renderers() {
    let mut renderers = Renderers::default();
    for number in 0..MAX_RENDERERS {
        assert!(renderers.register(ConnectionId(1), &number.to_string(), renderer("")));
    }
    assert!(!renderers.register(ConnectionId(1), "one more", renderer("")));
    assert!(renderers.register(ConnectionId(1), "0", renderer("again")));
    assert!(renderers.register(ConnectionId(2), "one more", renderer("")));
}

#[test]
fn the_custom_type_is_that_of_the_entry_or_of_its_message() {
    let mut renderers = Renderers::default();
    assert!(renderers.register(ConnectionId(1), "todo", renderer("{details.n}")));
    let message =
        r#"{"type":"message","message":{"role":"custom","details":{"n":7},"customType":"todo"}}"#;
    let custom = subject(Kind::Message, Role::Custom);
    assert_eq!(found(&renderers, message, custom).as_deref(), Some("7"));
    assert_eq!(found(&renderers, message, custom_message()), None);
    assert_eq!(
        found(&renderers, r#"{"customType":7}"#, custom_message()),
        None
    );
    // The beginning of a line is enough once it has the custom type.
    let (head, _) = TODO.split_at(60);
    assert!(renderers.find(head.as_bytes(), custom_message()).is_ok());
    assert!(
        renderers
            .find(&TODO.as_bytes()[..30], custom_message())
            .is_err()
    );
}
