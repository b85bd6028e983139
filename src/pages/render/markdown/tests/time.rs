use super::super::html;
use treelined_core::test_support::time::{check_linear, processor_time};

/// Makes a text of about as many bytes as asked.
type Source = Box<dyn Fn(usize) -> String>;

/// Texts for which parsers of Markdown take quadratic time.
fn repeated() -> Vec<(&'static str, Source)> {
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
    let mut texts: Vec<(&'static str, Source)> = Vec::new();
    for pattern in patterns {
        let text = move |bytes: usize| pattern.repeat(bytes / pattern.len());
        texts.push((pattern, Box::new(text)));
    }
    texts
}

/// Texts of several parts, each of which grows.
fn nested() -> Vec<(&'static str, Source)> {
    let mut texts: Vec<(&'static str, Source)> = Vec::new();
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
    for (name, text) in repeated().into_iter().chain(nested()) {
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
        check_linear(name, [1 << 14, long], |bytes| {
            let text = text(bytes);
            processor_time(|| {
                let html = html(&text);
                assert!(
                    html.is_none_or(|html| html.len() <= 16 * text.len()),
                    "{name}"
                );
            })
        });
    }
}
