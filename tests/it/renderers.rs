//! How custom messages look: `register_renderer` and the renderers of the configuration. protocol.md §14.

use crate::config::file;
use crate::harness::*;

/// Appends a todo list with this number of done items, and returns the id of its entry.
fn todo(d: &mut Daemon, done: u32) -> String {
    let sent = d.ok(
        "send_message",
        json!({
            "customType": "todo", "content": "Ship\nit", "display": true,
            "details": {"done": done, "total": 5},
        }),
    );
    sent["entryId"].as_str().unwrap().to_owned()
}

fn register(d: &mut Daemon, preview: &str) {
    let params = json!({"customType": "todo", "preview": preview});
    assert_eq!(d.ok("register_renderer", params), json!({}));
}

fn row(d: &mut Daemon, id: &str) -> Json {
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let mut rows = tree["nodes"].as_array().unwrap().iter();
    rows.find(|row| row["id"] == id).unwrap().clone()
}

#[test]
fn rows_of_a_custom_type_have_preview_icon_and_style_of_its_renderer() {
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "hello");
    let id = todo(&mut d, 2);
    let params = json!({
        "customType": "todo", "preview": "{{{details.done}/{details.total}}} {content} {no.such}",
        "icon": "☑", "style": "success",
    });
    assert_eq!(d.ok("register_renderer", params), json!({}));
    let entries = json!([
        {"type": "custom", "id": "c1", "customType": "todo", "content": "kept", "data": {}},
        {"type": "custom_message", "id": "h1", "customType": "todo", "content": "hidden", "display": false},
        {"type": "custom_message", "id": "o1", "customType": "other", "content": "as it is", "display": true},
        {"type": "message", "id": "m1", "message": {"role": "custom", "customType": "todo", "content": "old", "details": {"done": 1}}},
    ]);
    d.ok("append_entries", json!({"entries": entries}));
    for (id, preview) in [
        (id.as_str(), "{2/5} Ship it"),
        ("c1", "{/} kept"),
        ("h1", "{/} hidden"),
        ("m1", "{1/} old"),
    ] {
        let row = row(&mut d, id);
        assert_eq!(row["preview"], preview);
        assert_eq!(
            (&row["icon"], &row["style"]),
            (&json!("☑"), &json!("success"))
        );
    }
    let other = row(&mut d, "o1");
    assert_eq!(
        (&other["preview"], &other["style"]),
        (&json!("as it is"), &json!("accent"))
    );
    let said = row(&mut d, "u1");
    assert!(
        said.get("style").is_none() && said.get("icon").is_none(),
        "{said}"
    );
    let tip = d.ok("list_branches", json!({}))["branches"][0].clone();
    assert_eq!(tip["tipId"], "m1");
    assert_eq!(
        (&tip["preview"], &tip["icon"], &tip["style"]),
        (&json!("{1/} old"), &json!("☑"), &json!("success"))
    );
}

/// Rows must not come from a cache that another renderer has filled.
#[test]
fn a_registration_changes_the_next_rows() {
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "hello");
    let id = todo(&mut d, 2);
    assert_eq!(row(&mut d, &id)["preview"], "Ship it");
    register(&mut d, "{details.done} done");
    assert_eq!(row(&mut d, &id)["preview"], "2 done");
    register(&mut d, "{details.total} in all");
    assert_eq!(row(&mut d, &id)["preview"], "5 in all");
}

#[test]
fn a_message_larger_than_the_first_read_is_rendered_whole() {
    let mut d = Daemon::quiet();
    d.create();
    d.ok(
        "append_entries",
        json!({"entries": [{
            "type": "custom_message", "id": "m1", "content": "x".repeat(1 << 16), "display": true,
            "details": {"long": "y".repeat(1 << 16), "done": 3}, "customType": "todo",
        }]}),
    );
    register(&mut d, "{details.done} {content}");
    let expect = format!("3 {}", "x".repeat(198));
    assert_eq!(row(&mut d, "m1")["preview"], expect);
}

#[test]
fn a_bad_renderer_is_refused_with_its_field_and_position() {
    let mut d = Daemon::quiet();
    let long = "x".repeat(300);
    for (params, field) in [
        (json!({"customType": "", "preview": "x"}), "customType"),
        (json!({"customType": long, "preview": "x"}), "customType"),
        (json!({"customType": "t"}), "preview"),
        (
            json!({"customType": "t", "preview": "x", "icon": long}),
            "icon",
        ),
        (
            json!({"customType": "t", "preview": "x", "icon": "\u{1b}["}),
            "icon",
        ),
        (
            json!({"customType": "t", "preview": "x", "style": "red"}),
            "style",
        ),
        (
            json!({"customType": "t", "preview": "x".repeat(2000)}),
            "preview",
        ),
    ] {
        let error = d.err_kind("register_renderer", params, "invalidParams");
        assert_eq!(error.details("field"), field);
    }
    let params = json!({"customType": "t", "preview": "äb {content"});
    let error = d.err_kind("register_renderer", params, "invalidParams");
    assert_eq!(
        (error.details("field"), error.details("position")),
        (&json!("preview"), &json!(3))
    );
    assert_eq!(error.code, -32602);
}

#[test]
fn a_renderer_serves_all_connections_and_goes_with_its_own() {
    let shared = SharedDaemon::start();
    let mut reader = shared.client("reader", json!({}));
    reader.create();
    let id = todo(&mut reader, 2);
    let [mut first, mut second] = ["first", "second"].map(|name| shared.client(name, json!({})));
    register(&mut first, "{details.done} first");
    register(&mut second, "{details.done} second");
    assert_eq!(row(&mut reader, &id)["preview"], "2 second");
    drop(second);
    assert_eq!(row(&mut reader, &id)["preview"], "2 first");
    drop(first);
    assert_eq!(row(&mut reader, &id)["preview"], "Ship it");
}

const CONFIGURED: &str = "[renderers.\"todo\"]\npreview = \"{details.done} of {details.total}\"\n\
                          icon = \"☑\"\nstyle = \"warning\"\n";

#[test]
fn a_configured_renderer_wins_over_a_registered_one() {
    let home = Home::new();
    let config = file(&home, CONFIGURED);
    let mut d = Daemon::start_in(&home, &["--config", &config], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.user("u1", "hello");
    let id = todo(&mut d, 4);
    register(&mut d, "registered");
    let row = row(&mut d, &id);
    assert_eq!(
        (&row["preview"], &row["style"]),
        (&json!("4 of 5"), &json!("warning"))
    );
}

#[test]
fn treelined_tree_draws_with_the_configured_renderers() {
    let home = Home::new();
    let config = file(&home, CONFIGURED);
    let mut d = Daemon::quiet_in(&home);
    let session = d.create();
    d.user("u1", "hello");
    todo(&mut d, 4);
    drop(d);
    let tree = |args: &[&str]| {
        home.run(&[args, &["tree", &session]].concat(), &[], "")
            .clean()
            .text()
    };
    let text = tree(&["--config", &config]);
    assert!(text.contains("note       ☑ 4 of 5"), "{text}");
    let plain = tree(&[]);
    assert!(plain.contains("note       Ship it"), "{plain}");
    let ascii = home.run(&["--config", &config, "tree", &session, "--ascii"], &[], "");
    assert!(ascii.clean().text().contains("note       4 of 5"));
}

#[test]
fn a_bad_template_in_the_configuration_is_reported_with_its_position() {
    let home = Home::new();
    for (text, naming) in [
        (
            "[renderers.\"a b\"]\npreview = \"x {\"",
            "renderers.\"a b\".preview: ",
        ),
        ("[renderers.todo]\npreview = \"x {\"", "(position 2)"),
        (
            "[renderers.todo]\npreview = \"\"\nicon = \"\"",
            "renderers.todo.icon: ",
        ),
        (
            "[renderers.todo]\npreview = \"\"\nstyle = \"red\"",
            "renderers.todo.style",
        ),
        ("[renderers.todo]\nicon = \"x\"", "preview"),
    ] {
        let output = home.run(&["--config", &file(&home, text), "config"], &[], "");
        assert_eq!(output.code, Some(1), "{text}");
        assert!(
            output.stderr.contains(naming),
            "{naming} in {}",
            output.stderr
        );
    }
    let printed = home.run(&["--config", &file(&home, CONFIGURED), "config"], &[], "");
    let printed = printed.clean().text();
    assert!(
        printed.contains("[renderers.todo]\npreview = \"{details.done} of"),
        "{printed}"
    );
}
