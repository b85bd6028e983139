//! Texts with numbers about the open session or all sessions, and the text of the context.

use super::LONG;
use crate::model::document;
use crate::{text, time};
use serde_json::Value;
use std::time::Duration;
use treelined_client::{
    Client, Costs, Error, GetUsageResult, Message, ModelStats, Tokens, UsageBy,
};

/// The most bytes shown of the context.
const SHOWN: usize = 512 << 10;

/// The width of the column with the names of sums.
const NAMES: usize = 11;

/// The most rows of the usage of all sessions.
const ROWS: u64 = 200;

/// Describes the messages, tokens, cost and time of the session.
pub(super) async fn stats(client: &Client) -> Result<String, Error> {
    let stats = client.get_stats().await?;
    let mut lines = Vec::new();
    let mut row = |name: &str, value: String| lines.push(format!("{name:<NAMES$} {value}"));
    let by_role = stats.messages.iter();
    let by_role = by_role.map(|(role, count)| format!("{} {role}", grouped(*count)));
    row("messages", by_role.collect::<Vec<_>>().join(", "));
    row("tool calls", grouped(stats.tool_calls));
    row("tokens", tokens(&stats.tokens));
    row("cost", cost(&stats.costs));
    row(
        "context",
        format!("{} tokens", grouped(stats.context_tokens)),
    );
    let active = Duration::from_millis(stats.active_ms);
    row("active", time::elapsed(active));
    for (name, at) in [("began", &stats.started_at), ("ended", &stats.ended_at)] {
        if let Some(at) = at {
            row(name, time::local(at));
        }
    }
    for (at, model) in stats.models.iter().enumerate() {
        row(if at == 0 { "models" } else { "" }, of_model(model));
    }
    let shown: Vec<String> = lines.iter().map(|line| text::line(line)).collect();
    Ok(shown.join("\n"))
}

fn tokens(tokens: &Tokens) -> String {
    let parts = [
        (tokens.input, "read"),
        (tokens.output, "written"),
        (tokens.cache_read, "from the cache"),
        (tokens.cache_write, "to the cache"),
    ];
    let known = parts.into_iter().filter(|(count, _)| *count > 0);
    let named: Vec<String> = known
        .map(|(count, what)| format!("{} {what}", grouped(count)))
        .collect();
    match named.is_empty() {
        true => "unknown".to_owned(),
        false => named.join(", "),
    }
}

fn of_model(model: &ModelStats) -> String {
    let name = format!("{} {}", model.provider, model.model_id);
    let messages = grouped(model.messages);
    let cost = paid(&model.costs).map_or_else(String::new, |cost| format!(", cost {cost}"));
    format!("{}, {messages} messages{cost}", name.trim())
}

/// A cost in dollars: `1.40`; `~1.40` if a part of it is estimated, `1.40 + ?` if a part is
/// unknown, or `unknown`.
pub(super) fn cost(costs: &Costs) -> String {
    if costs.recorded.is_none() && costs.estimated.is_none() {
        return "unknown".to_owned();
    }
    let known = costs.recorded.unwrap_or_default() + costs.estimated.unwrap_or_default();
    let about = if costs.estimated.is_some() { "~" } else { "" };
    let more = if costs.unknown_answers > 0 {
        " + ?"
    } else {
        ""
    };
    match known < 0.01 && known > 0.0 {
        true => format!("{about}<0.01{more}"),
        false => format!("{about}{known:.2}{more}"),
    }
}

/// Like [`cost`]; `None` if no answer used tokens.
pub(super) fn paid(costs: &Costs) -> Option<String> {
    let says_something =
        costs.recorded.is_some() || costs.estimated.is_some() || costs.unknown_answers > 0;
    says_something.then(|| cost(costs))
}

/// The usage of all sessions: the sums, then one line for each row, the newest day or the highest
/// cost first. Tokens from the cache have their own column.
pub(super) async fn usage(client: &Client, by: &'static str) -> Result<String, Error> {
    let call = client.get_usage().by(UsageBy::from(by)).limit(ROWS);
    let mut usage = call.timeout(LONG).await?;
    if by == "day" {
        usage.rows.reverse();
    }
    Ok(of_usage(&usage, by))
}

/// The table of the usage, and the notes that explain it.
fn of_usage(usage: &GetUsageResult, by: &str) -> String {
    let total = &usage.total;
    let cost = |costs: &Costs| match total.answers {
        0 => "–".to_owned(),
        _ => cost(costs),
    };
    let line = |costs: &Costs, tokens: &Tokens, name: &str| {
        [
            cost(costs),
            short(sent_and_received(tokens)),
            short(tokens.cache_read),
            text::line(name),
        ]
    };
    let heads = ["cost", "tokens", "cached", by].map(str::to_owned);
    let mut table = vec![heads, line(&total.costs, &total.tokens, "all")];
    for row in &usage.rows {
        let name = match row.title.as_deref().unwrap_or(&row.key) {
            "" => "(none)",
            name => name,
        };
        let mark = if row.is_active == Some(true) {
            "• "
        } else {
            ""
        };
        table.push(line(&row.costs, &row.tokens, &format!("{mark}{name}")));
    }
    let mut lines = aligned(&table);
    let more = usage.more_rows.unwrap_or(0);
    let notes = [
        (more > 0).then(|| format!("… and {} more", grouped(more))),
        total
            .costs
            .estimated
            .map(|_| format!("~ estimated by prices, {}", usage.prices)),
        (total.costs.unknown_answers > 0)
            .then(|| format!("? {} of unknown cost", answers(total.costs.unknown_answers))),
        (total.answers_without_tokens > 0).then(|| {
            format!(
                "{} without recorded tokens",
                answers(total.answers_without_tokens)
            )
        }),
        (!usage.unread.is_empty())
            .then(|| format!("{} sessions could not be read", usage.unread.len())),
    ];
    let notes = notes.into_iter().flatten();
    lines.extend(notes.map(|note| text::line(&note)));
    lines.join("\n")
}

fn answers(count: u64) -> String {
    match count {
        1 => "1 answer".to_owned(),
        _ => format!("{} answers", grouped(count)),
    }
}

/// The cells of a table in columns. The last column is aligned to the left, the others to the right.
fn aligned(table: &[[String; 4]]) -> Vec<String> {
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| text::width(cell)).max().unwrap_or(0)
    };
    let widths = [0, 1, 2].map(width);
    let line = |row: &[String; 4]| {
        let [.., name] = row;
        let cells = row.iter().zip(widths);
        let cells = cells.map(|(cell, wide)| {
            let gap = " ".repeat(wide.saturating_sub(text::width(cell)));
            format!("{gap}{cell}  ")
        });
        cells.collect::<String>() + name
    };
    table.iter().map(line).collect()
}

/// The tokens without those that were read from the cache.
fn sent_and_received(tokens: &Tokens) -> u64 {
    let counts = [tokens.input, tokens.output, tokens.cache_write];
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A number of tokens in few characters, rounded, such as `46M`.
fn short(count: u64) -> String {
    let rounded = |unit: u64| grouped(count / unit + u64::from(count % unit >= unit / 2));
    match count {
        0..10_000 => grouped(count),
        10_000..9_999_500 => format!("{}k", rounded(1_000)),
        _ => format!("{}M", rounded(1_000_000)),
    }
}

/// A number with its thousands separated, such as `12,345`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes the messages of the context without cutting them, each below its role.
pub(super) async fn context(client: &Client) -> Result<String, Error> {
    let messages = client.get_context().await?.messages.unwrap_or_default();
    let count = messages.len();
    let mut out = match count {
        1 => "1 message".to_owned(),
        _ => format!("{count} messages"),
    };
    for (at, message) in messages.iter().enumerate() {
        if out.len() > SHOWN {
            out.push_str(&format!("\n\n… and {} more", count - at));
            break;
        }
        out.push_str(&of_message(message));
    }
    Ok(out)
}

fn of_message(message: &Message) -> String {
    let value = serde_json::to_value(message).unwrap_or_default();
    let role = value.get("role").and_then(Value::as_str).unwrap_or("?");
    let said = match value.get("content").and_then(Value::as_array) {
        Some(blocks) => blocks
            .iter()
            .filter_map(of_block)
            .collect::<Vec<_>>()
            .join("\n"),
        None => document::plain_text(&value),
    };
    let said: Vec<String> = text::lines(said.trim_end()).collect();
    format!("\n\n── {} ──\n{}", text::line(role), said.join("\n"))
}

/// Returns the text of a block. A call or an image becomes its name; `None` for other blocks.
fn of_block(block: &Value) -> Option<String> {
    match block.get("type")?.as_str()? {
        "text" => Some(block.get("text")?.as_str()?.to_owned()),
        "toolCall" => Some(format!("→ {}", document::call(block))),
        "image" => Some("[image]".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_of_the_context_are_whole_with_their_calls() {
        let content = json!([
            {"type": "text", "text": "one\ntwo"},
            {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}},
            {"type": "image", "mimeType": "image/png", "data": ""},
        ]);
        let message = Message::new("assistant", content);
        assert_eq!(
            of_message(&message),
            "\n\n── assistant ──\none\ntwo\n→ bash(command: ls)\n[image]"
        );
    }

    #[test]
    fn thousands_are_separated() {
        for (count, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(count), shown);
        }
    }

    #[test]
    fn tokens_are_rounded() {
        for (count, shown) in [
            (9_999, "9,999"),
            (12_500, "13k"),
            (9_999_499, "9,999k"),
            (9_999_500, "10M"),
            (45_678_901, "46M"),
        ] {
            assert_eq!(short(count), shown);
        }
    }

    /// Answers without tokens once had a dash for their cost, 0 tokens and no note.
    #[test]
    fn answers_without_tokens_are_counted() {
        let sums = |answers: u64, without: u64, recorded: Option<f64>| {
            json!({
                "answers": answers, "answersWithoutTokens": without,
                "tokens": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "costs": {"recorded": recorded, "estimated": null, "unknownAnswers": 0},
            })
        };
        let shown = |without: u64, recorded: Option<f64>| {
            let total = sums(1_200, without, recorded);
            let mut row = total.clone();
            row["key"] = json!("2026-11-22");
            let usage = json!({"rows": [row], "total": total, "prices": "today", "unread": []});
            of_usage(&serde_json::from_value(usage).unwrap(), "day")
        };
        let table = "unknown       0       0  all\nunknown       0       0  2026-11-22\n";
        let head = "   cost  tokens  cached  day\n";
        let expected = |note: &str| format!("{head}{table}{note}");
        let note = "1,200 answers without recorded tokens";
        assert_eq!(shown(1_200, None), expected(note));
        let one = "1 answer without recorded tokens";
        assert_eq!(shown(1, None), expected(one));
        assert!(!shown(0, Some(1.0)).contains("without"));
    }

    /// A cost that no tool has recorded once looked like a cost of 0.
    #[test]
    fn what_is_unknown_of_a_cost_is_said() {
        let costs = |recorded: Option<f64>, estimated: Option<f64>, unknown: u64| -> Costs {
            let json =
                json!({"recorded": recorded, "estimated": estimated, "unknownAnswers": unknown});
            serde_json::from_value(json).unwrap()
        };
        for (recorded, estimated, unknown, shown) in [
            (Some(1.4), None, 0, "1.40"),
            (Some(1.0), Some(0.4), 0, "~1.40"),
            (None, Some(0.001), 2, "~<0.01 + ?"),
            (None, None, 3, "unknown"),
        ] {
            assert_eq!(paid(&costs(recorded, estimated, unknown)).unwrap(), shown);
        }
        assert_eq!(paid(&costs(None, None, 0)), None);
    }
}
