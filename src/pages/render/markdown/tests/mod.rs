mod checker;
mod payloads;
mod time;

use self::checker::check;
use self::payloads::PAYLOADS;
use super::part::Part;
use super::{LAST_COLUMN, html, parts};

/// The payload in several positions: alone, and inside of other Markdown.
fn placed(payload: &str) -> Vec<String> {
    let indented = payload.replace('\n', "\n  ");
    vec![
        payload.to_owned(),
        format!("text {payload} text"),
        format!("- {indented}\n- x"),
        format!("> {}\n\nafter", payload.replace('\n', "\n> ")),
        format!("**{payload}** _{payload}_"),
        format!("# {payload}"),
        format!("| a | {payload} |\n|---|---|\n| {payload} | b |"),
        format!("[{payload}](http://a/{payload} \"{payload}\")"),
        format!("![{payload}]({payload})"),
        format!("```{payload}\n{payload}\n```"),
        format!("{payload}{payload}"),
    ]
}

#[test]
fn html_of_hostile_text_has_only_known_elements_and_attributes() {
    assert!(PAYLOADS.len() >= 100);
    for text in PAYLOADS.iter().flat_map(|payload| placed(payload)) {
        let whole = html(&text).expect("short");
        check(&whole).unwrap_or_else(|why| panic!("{why}\n{text}\n{whole}"));
        for part in parts(&text).expect("short") {
            if let Part::Html(html) = part {
                check(&html).unwrap_or_else(|why| panic!("{why}\n{text}\n{html}"));
            }
        }
    }
}

/// This test shows that the check itself refuses wrong HTML.
#[test]
fn the_check_of_this_test_refuses_other_html() {
    for wrong in [
        "<script>",
        "<p>",
        "</p>",
        "<p></em></p>",
        "<P></P>",
        "<p onclick=\"x\"></p>",
        "<a href=\"javascript:x\" rel=\"noopener noreferrer\"></a>",
        "<a href=\"http://a\"></a>",
        "<a href='http://a' rel=\"noopener noreferrer\"></a>",
        "<a href=\"http://a\" rel=\"noopener noreferrer\"><a href=\"http://a\" rel=\"noopener noreferrer\"></a></a>",
        "<code class=\"x\"></code>",
        "<ol start=\"x\"></ol>",
        "a & b",
        "a < b",
        "&copy;",
        "<!-- x -->",
        "<br/>",
        "<img src=\"x\">",
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
    check("<p>a &amp; b<br><code class=\"language-c++\">x</code></p><hr>").unwrap();
}

#[track_caller]
fn check_html(markdown: &str, expected: &str) {
    assert_eq!(html(markdown).unwrap(), expected, "{markdown}");
    check(expected).unwrap();
}

#[test]
fn common_markdown_becomes_html() {
    check_html(
        "# A *b* **c** ~~d~~ `e`",
        "<h1>A <em>b</em> <strong>c</strong> <del>d</del> <code>e</code></h1>",
    );
    check_html("a\nb  \nc", "<p>a<br>b<br>c</p>");
    check_html("> a\n\n---", "<blockquote><p>a</p></blockquote><hr>");
    check_html("- a\n- b", "<ul><li>a</li><li>b</li></ul>");
    check_html("3. a\n4. b", "<ol start=\"3\"><li>a</li><li>b</li></ol>");
    check_html("1. a\n   - b", "<ol><li>a<ul><li>b</li></ul></li></ol>");
    check_html("- [ ] a\n- [x] b", "<ul><li>☐ a</li><li>☑ b</li></ul>");
    check_html(
        "|a|b|\n|:-|-|\n|c|d|",
        "<table><thead><tr><th class=\"left\">a</th><th>b</th></tr></thead><tbody>\
         <tr><td class=\"left\">c</td><td>d</td></tr></tbody></table>",
    );
    check_html(
        "```Rust,ignore\na<b\n```",
        "<pre><code class=\"language-rust\">a&lt;b\n</code></pre>",
    );
    check_html(
        "[a](https://b.c/?d&e \"f\")",
        "<p><a href=\"https://b.c/?d&amp;e\" title=\"f\" rel=\"noopener noreferrer\">a</a></p>",
    );
    check_html(
        "<a@b.c>",
        "<p><a href=\"mailto:a@b.c\" rel=\"noopener noreferrer\">a@b.c</a></p>",
    );
}

#[test]
fn raw_html_is_shown_as_text() {
    check_html("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>");
    check_html(
        "<div>\na & b\n</div>\n\nc",
        "<p>&lt;div&gt;<br>a &amp; b<br>&lt;/div&gt;</p><p>c</p>",
    );
}

#[test]
fn links_to_other_schemes_are_their_text_and_images_are_links() {
    check_html("[a](javascript:b)", "<p>a</p>");
    check_html("[*a*](x.md)", "<p><em>a</em></p>");
    let link = "href=\"http://b\" rel=\"noopener noreferrer\"";
    check_html("![a](http://b)", &format!("<p><a {link}>a</a></p>"));
    check_html("![](http://b)", &format!("<p><a {link}>link</a></p>"));
    check_html("![a](data:image/png;base64,AA==)", "<p>a</p>");
    check_html(
        "[![a](http://c)](http://b)",
        &format!("<p><a {link}>a</a></p>"),
    );
}

#[test]
fn code_outside_of_lists_and_quotes_is_a_part_by_itself() {
    let html = |text: &str| Part::Html(text.to_owned());
    let code = |language: Option<&str>, text: &str| Part::Code {
        language: language.map(str::to_owned),
        text: text.to_owned(),
    };
    let text = "a\n\n```rs\n<b>\n```\n- c\n\n      d\n\n```\n\n    e\n";
    let found = parts(text).unwrap();
    assert_eq!(
        found,
        [
            html("<p>a</p>"),
            code(Some("rs"), "<b>\n"),
            html("<ul><li><p>c</p><pre><code>d\n</code></pre></li></ul>"),
            code(None, "\n    e\n"),
        ]
    );
    assert_eq!(parts("").unwrap(), []);
}

// The lines of an answer, such as a poem or a list of steps without markers, were once joined to one line.
#[test]
fn line_breaks_stay() {
    let text = "one\ntwo  \nthree\\\nfour\n\n- a\n  b\n\n> c\nd";
    let broken = "<p>one<br>two<br>three<br>four</p><ul><li>a<br>b</li></ul><blockquote><p>c<br>d</p></blockquote>";
    assert_eq!(html(text).unwrap(), broken);
    assert_eq!(parts(text).unwrap(), [Part::Html(broken.to_owned())]);
}

#[test]
fn deep_elements_are_left_out_and_their_content_stays() {
    let quotes = format!("{}a", ">".repeat(LAST_COLUMN));
    let whole = html(&quotes).unwrap();
    check(&whole).unwrap();
    assert!(
        whole.matches("<blockquote>").count() < 64 && whole.contains('a'),
        "{whole}"
    );
    let table = format!(
        "{}|a|\n{}|-|\n{}|b|",
        ">".repeat(61),
        ">".repeat(61),
        ">".repeat(61)
    );
    let whole = html(&table).unwrap();
    check(&whole).unwrap();
    assert!(!whole.contains("<t"), "{whole}");
    let emphasis = "*a **b ".repeat(500) + &"c** d* ".repeat(500);
    check(&html(&emphasis).unwrap()).unwrap();
    assert_eq!(html(&format!("{}a", ">".repeat(LAST_COLUMN + 2))), None);
    assert_eq!(
        html(&format!("a\n{}- b", " ".repeat(LAST_COLUMN + 1))),
        None
    );
    // Indented text without a marker is not nested.
    assert!(html(&format!("a\n\n{}b", " ".repeat(1000))).is_some());
}
