use super::{LAST_COLUMN, Part, SoftBreak, html, parts};
use std::time::{Duration, Instant};

/// A start or end tag, or text, as a browser reads them.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Start(&'a str, Vec<(&'a str, String)>),
    End(&'a str),
    Text(String),
}

/// Reads HTML by rules of its own: tags only of lower-case letters and digits, attributes only with double quotes.
/// Anything else beside text is an error.
fn tokens(html: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = html;
    while !rest.is_empty() {
        let Some(inner) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            tokens.push(Token::Text(unescaped(&rest[..end])?));
            rest = &rest[end..];
            continue;
        };
        let is_name = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
        if let Some(inner) = inner.strip_prefix('/') {
            let (name, after) = inner.split_once('>').ok_or("an end tag without an end")?;
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(format!("</{name}>"));
            }
            tokens.push(Token::End(name));
            rest = after;
            continue;
        }
        let end = inner.find(|char| !is_name(char)).ok_or("a tag")?;
        let (name, mut inner) = inner.split_at(end);
        let mut attributes = Vec::new();
        while let Some(after) = inner.strip_prefix(' ') {
            let (key, after) = after.split_once("=\"").ok_or("an attribute")?;
            let (value, after) = after.split_once('"').ok_or("a value without an end")?;
            if !key.chars().all(is_name) || value.contains(['<', '>']) {
                return Err(format!("{key}={value}"));
            }
            attributes.push((key, unescaped(value)?));
            inner = after;
        }
        if name.is_empty() || !inner.starts_with('>') {
            return Err(format!("<{name} {inner:.40}"));
        }
        tokens.push(Token::Start(name, attributes));
        rest = &inner[1..];
    }
    Ok(tokens)
}

/// The text of escaped text. Each `&` must begin one of five references.
fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (name, after) = after.split_once(';').ok_or("a bare &")?;
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            _ => return Err(format!("&{name};")),
        });
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

const VOID: &[&str] = &["br", "hr"];
const ELEMENTS: &[&str] = &[
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
    "del",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "hr",
    "br",
];

/// Fails unless the HTML consists of allowed elements and attributes, each closed in its place.
fn check(html: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for token in tokens(html)? {
        match token {
            Token::Text(_) => {}
            Token::End(name) if open.pop() == Some(name) => {}
            Token::End(name) => return Err(format!("</{name}> closes nothing")),
            Token::Start(name, attributes) => {
                if !ELEMENTS.contains(&name) {
                    return Err(format!("<{name}>"));
                }
                let names: Vec<_> = attributes.iter().map(|(key, _)| *key).collect();
                let ok = match (name, &*names) {
                    (_, []) => name != "a",
                    ("a", ["href", "rel"] | ["href", "title", "rel"]) => is_link(&attributes),
                    ("ol", ["start"]) => attributes[0].1.parse::<u64>().is_ok(),
                    ("code", ["class"]) => is_language(&attributes[0].1),
                    ("th" | "td", ["class"]) => {
                        ["left", "center", "right"].contains(&&*attributes[0].1)
                    }
                    _ => false,
                };
                if !ok || (name == "a" && open.contains(&"a")) {
                    return Err(format!("<{name} {attributes:?}> in {open:?}"));
                }
                if !VOID.contains(&name) {
                    open.push(name);
                }
            }
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("{open:?} are not closed")),
    }
}

fn is_link(attributes: &[(&str, String)]) -> bool {
    let href = &attributes[0].1;
    let is_allowed = ["http://", "https://", "mailto:"].iter().any(|scheme| {
        let start = href.get(..scheme.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(scheme)
    });
    let is_clean = !href
        .chars()
        .any(|char| char.is_control() || char.is_whitespace());
    is_allowed && is_clean && attributes.last().unwrap().1 == "noopener noreferrer"
}

fn is_language(class: &str) -> bool {
    let name = class.strip_prefix("language-").unwrap_or_default();
    let is_known =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+#._-".contains(&byte);
    !name.is_empty() && name.len() <= 32 && name.bytes().all(is_known)
}

/// Texts that became scripts, requests or foreign elements in renderers of Markdown and in sanitizers.
const PAYLOADS: &[&str] = &[
    "<script>alert(1)</script>",
    "<script src=//evil.example/x.js></script>",
    "<ScRiPt>alert(1)</sCrIpT>",
    "<script\n>alert(1)</script\n>",
    "</script><script>alert(1)</script>",
    "<<script>script>alert(1)</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)//",
    "<img/src/onerror=alert(1)>",
    "<img src=`x`onerror=alert(1)>",
    "<img \"\"\"><script>alert(1)</script>\">",
    "<IMG SRC=\"javascript:alert(1)\">",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<math><mi//xlink:href=\"data:x,<script>alert(1)</script>\">",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<template><script>alert(1)</script></template>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc=\"<script>alert(1)</script>\"></iframe>",
    "<object data=data:text/html,<script>alert(1)</script>></object>",
    "<embed src=//evil.example/x.swf>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=\"0;url=//evil.example\">",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example/x.css';</style>",
    "<style>*{background:url(//evil.example)}</style>",
    "<div style=\"background:url(javascript:alert(1))\">x</div>",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<a href=\"java\tscript:alert(1)\">x</a>",
    "<a href=x onclick=alert(1)>x</a>",
    "<form action=javascript:alert(1)><input type=submit>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<body onload=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<isindex type=image src=1 onerror=alert(1)>",
    "<textarea><script>alert(1)</script></textarea>",
    "<title><script>alert(1)</script></title>",
    "<xmp><script>alert(1)</script></xmp>",
    "<plaintext><script>alert(1)</script>",
    "<!--><script>alert(1)</script>-->",
    "<!-- --!><script>alert(1)</script>-->",
    "<?xml version=\"1.0\"?><x onload=alert(1)>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<!DOCTYPE x [<!ENTITY e \"<script>\">]>&e;",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "&#x3c;script&#x3e;alert(1)",
    "\\<script>alert(1)\\</script>",
    "`<script>alert(1)</script>`",
    "```\n<script>alert(1)</script>\n```",
    "```\"><script>alert(1)</script>\nx\n```",
    "```html onload=alert(1)\n<b>\n```",
    "~~~ x\" onmouseover=\"alert(1)\ny\n~~~",
    "- ```js\" onclick=\"alert(1)\n  x\n  ```",
    "> ```\"><img src=x onerror=alert(1)>\n> x\n> ```",
    "- ```c++\n  x\n  ```",
    "    <script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](javascript&#58;alert(1))",
    "[x](java&#x0A;script:alert(1))",
    "[x](java&Tab;script:alert(1))",
    "[x](&#1;javascript:alert(1))",
    "[x](\u{1}javascript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](< javascript:alert(1)>)",
    "[x](\u{a0}javascript:alert(1))",
    "[x](\u{feff}javascript:alert(1))",
    "[x](\u{202e}javascript:alert(1))",
    "[x](java\u{ad}script:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[x](file:///etc/passwd)",
    "[x](blob:https://a/b)",
    "[x](view-source:javascript:alert(1))",
    "[x](feed:javascript:alert(1))",
    "[x](jar:https://a!/b)",
    "[x](//evil.example)",
    "[x](/relative)",
    "[x](#fragment)",
    "[x](?query)",
    "[x](http:evil.example)",
    "[x](https:/\\evil.example)",
    "[x](javascript://evil.example/%0aalert(1))",
    "[x](http://a\"onmouseover=\"alert(1))",
    "[x](http://a'onmouseover='alert(1))",
    "[x](http://a/><script>alert(1)</script>)",
    "[x](<http://a/\"><script>alert(1)</script>>)",
    "[x](http://a \"t\\\" onclick=alert(1) \\\"\")",
    "[x](http://a '\"><script>alert(1)</script>')",
    "[x](http://a&quot;onclick=&quot;alert(1))",
    "[x](mailto:a@b?subject=\"><script>)",
    "[<img src=x onerror=alert(1)>](http://a)",
    "[![x](http://a/y.png)](javascript:alert(1))",
    "[![x](javascript:alert(1))](http://a)",
    "![<script>alert(1)</script>](http://a)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![x](http://a\"onerror=\"alert(1))",
    "![a [b](http://c) d](http://e)",
    "![](http://a/tracker.png)",
    "[](http://a)",
    "<javascript:alert(1)>",
    "<http://a\"onclick=alert(1)>",
    "<https://a/?<script>>",
    "<user@example.com>",
    "<user@example.com\"onclick=alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    "[x]: http://a \"\\\"><script>alert(1)</script>\"\n\n[x]",
    "[x][y]\n\n[y]: data:text/html,x",
    "| <script> | `a|b` |\n|:--|--:|\n| <img src=x onerror=alert(1)> | \" onclick=alert(1) |",
    "|a|\n|:-:|\n|</table><script>alert(1)</script>|",
    "1000000000. x\n2. y",
    "7. x\n\n8. y",
    "- [ ] <script>alert(1)</script>\n- [x] done",
    "# <script>alert(1)</script> {#id onclick=alert(1)}",
    "<script>alert(1)\n# x\n===\n</script>",
    "Setext <b>\n---",
    "*a **b _c __d ~~e `f [g](http://h",
    "***a** b* __c _d__ e_",
    "~~<del onclick=alert(1)>~~",
    "a  \n<br onclick=alert(1)>\\\nb",
    "\0<script>\0alert(1)</script>",
    "\u{202e}<script>\u{2066}alert(1)</script>\u{2069}",
    "\u{2028}<script>\u{2029}",
    "\u{fffd}\u{feff}<\u{200b}script>alert(1)",
    "<a\r\nhref=javascript:alert(1)>x</a>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)} #{alert(1)} <%= alert(1) %>",
    "$$\\href{javascript:alert(1)}{x}$$ [^1]\n\n[^1]: <script>",
    "> [!NOTE]\n> <script>alert(1)</script>",
    "---\nx: <script>\n---\n<script>",
    "Term\n: <script>alert(1)</script>",
    "[__proto__](http://__proto__) constructor",
];

/// One payload for each way of placing a text among others.
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
        for soft_break in [SoftBreak::Space, SoftBreak::Line] {
            for part in parts(&text, soft_break).expect("short") {
                if let Part::Html(html) = part {
                    check(&html).unwrap_or_else(|why| panic!("{why}\n{text}\n{html}"));
                }
            }
        }
    }
}

/// The check itself must see what is wrong.
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
    check_html("a\nb  \nc", "<p>a\nb<br>c</p>");
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
    let found = parts(text, SoftBreak::Space).unwrap();
    assert_eq!(
        found,
        [
            html("<p>a</p>"),
            code(Some("rs"), "<b>\n"),
            html("<ul><li><p>c</p><pre><code>d\n</code></pre></li></ul>"),
            code(None, "\n    e\n"),
        ]
    );
    assert_eq!(parts("", SoftBreak::Space).unwrap(), []);
    assert_eq!(
        parts("a\nb", SoftBreak::Line).unwrap(),
        [html("<p>a<br>b</p>")]
    );
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

/// Texts of about as many bytes as asked, for which parsers of Markdown take quadratic time.
fn growing() -> Vec<(&'static str, Box<dyn Fn(usize) -> String>)> {
    let patterns = [
        "[",
        "]",
        "[]",
        "[a](",
        "![",
        "![](",
        "[a](<b",
        "[a]: b\n",
        "*",
        "**a ",
        "*a_ ",
        "_",
        "~~",
        "~a ",
        "`",
        "`a``b",
        "> ",
        ">",
        "- ",
        "1. ",
        "- a\n",
        "\n",
        "#",
        "|",
        "|-|\n",
        "a|b\n-|-\n",
        "<",
        "<a ",
        "<!--",
        "<?",
        "<a@",
        "<![CDATA[",
        "&",
        "&#",
        "&amp",
        "\\",
        "***a",
        "a**b",
        "[![a](b)](",
        "- [ ] ",
        "\t",
        "    a\n",
        "```\n",
        "~~~\n",
        "=\n",
        "a\n=\n",
        "<div>\n",
        "[^a]",
        "[a][b]",
        "\r",
        "x\u{0}",
        "é",
        "\"",
        "('",
        "http://a ",
        "www.",
        "[a]:<",
    ];
    let mut texts: Vec<(&'static str, Box<dyn Fn(usize) -> String>)> = Vec::new();
    for pattern in patterns {
        let text = move |bytes: usize| pattern.repeat(bytes / pattern.len());
        texts.push((pattern, Box::new(text)));
    }
    let halves = |one: &'static str, other: &'static str| {
        move |bytes: usize| {
            let (one, other) = (
                one.repeat(bytes / 2 / one.len()),
                other.repeat(bytes / 2 / other.len()),
            );
            format!("{one}a{other}")
        }
    };
    texts.push(("[…]", Box::new(halves("[", "]"))));
    texts.push(("[…](a)", Box::new(halves("[", "](a)"))));
    texts.push(("*a … a*", Box::new(halves("*a ", "a* "))));
    texts.push(("**a … *b", Box::new(halves("**a ", "b* "))));
    texts.push((
        "`…",
        Box::new(|bytes| {
            (1..)
                .map(|count| "`".repeat(count) + "a")
                .take(bytes.isqrt())
                .collect()
        }),
    ));
    texts.push((
        "items and blank lines",
        Box::new(|bytes| "- ".repeat(49) + "a\n" + &"\n".repeat(bytes)),
    ));
    texts.push((
        "quotes and lines",
        Box::new(|bytes| ">".repeat(99) + "a\n" + &"b\n".repeat(bytes / 2)),
    ));
    texts.push((
        "a wide table",
        Box::new(|bytes| {
            let row = "|a".repeat(bytes / 8);
            format!(
                "{row}|\n{}|\n{}",
                "|-".repeat(bytes / 8),
                "|b|\n".repeat(bytes / 8)
            )
        }),
    ));
    texts.push((
        "a long address",
        Box::new(|bytes| {
            format!(
                "[a]: http://{}\n\n{}",
                "b".repeat(bytes / 2),
                "[a] ".repeat(bytes / 8)
            )
        }),
    ));
    texts.push((
        "indented items",
        Box::new(|bytes| {
            let items = (0..49).map(|depth| " ".repeat(2 * depth) + "- a\n");
            items.collect::<String>()
                + &"\n".repeat(bytes / 2)
                + &format!("{}b\n", " ".repeat(98)).repeat(bytes / 200)
        }),
    ));
    texts
}

#[test]
fn a_megabyte_of_any_marker_takes_linear_time() {
    let time = |name: &str, text: &str| {
        let start = Instant::now();
        let html = html(text);
        assert!(
            html.is_none_or(|html| html.len() <= 16 * text.len()),
            "{name}"
        );
        start.elapsed()
    };
    for (name, text) in growing() {
        let short = time(name, &text(1 << 14));
        let is_usual = [
            "[",
            "*",
            "_",
            "`",
            "> ",
            ">",
            "- ",
            "|",
            "<",
            "a wide table",
        ]
        .contains(&name);
        let long = if is_usual { (1 << 20) - 1000 } else { 1 << 18 };
        let long = time(name, &text(long));
        // Quadratic time would be 256 or 4096 times as long.
        let most = short * 128 + Duration::from_secs(1);
        assert!(long < most, "{name:?}: {short:?}, {long:?}");
    }
}
