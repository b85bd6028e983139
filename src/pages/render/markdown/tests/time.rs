use super::super::html;
use std::time::Duration;

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

/// The time in which this thread has used a processor. The time of the clock would also have the time in which the
/// thread waits for one.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = stat.split(' ').next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

/// How often a time is measured until it is linear.
const TRIES: usize = 10;

#[test]
fn a_megabyte_of_any_marker_takes_linear_time() {
    let time = |name: &str, text: &str| {
        let start = processor_time();
        let html = html(text);
        assert!(
            html.is_none_or(|html| html.len() <= 16 * text.len()),
            "{name}"
        );
        processor_time() - start
    };
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
        let (short_text, long_text) = (text(1 << 14), text(long));
        let mut measured = Vec::new();
        // Other programs make a processor slower for a while. Quadratic time is 256 or 4096 times as long in each try.
        let is_linear = (0..TRIES).any(|_| {
            let (short, long) = (time(name, &short_text), time(name, &long_text));
            measured.push((short, long));
            long < short * 128 + Duration::from_secs(1)
        });
        assert!(is_linear, "{name:?}: {measured:?}");
    }
}
