//! The rows that each filter shows, as arrays of numbers.

use std::collections::HashMap;
use treelined_core::json;
use treelined_core::view::{Folding, Guides, Outline, Render, Row, Visible, push_number};

/// The view of one filter. `all` has every row of the file, and `matched` says for each item
/// whether the file has it.
pub(super) fn view_json(outline: &Outline, matched: Option<&[bool]>, all: &Visible) -> Vec<u8> {
    let visible = Visible::new(outline, matched, &Folding::default());
    let hidden = all.total() - visible.total().min(all.total());
    let mut out = format!("{{\"hidden\":{hidden},\"rows\":").into_bytes();
    let rows = || visible.rows().iter();
    let number = |row: &Row| all.row_of(row.item()).unwrap_or_default();
    push_numbers(&mut out, rows().map(number));
    out.extend_from_slice(b",\"depth\":");
    push_numbers(&mut out, rows().map(|row| row.depth as usize));
    out.extend_from_slice(b",\"indent\":");
    push_numbers(&mut out, rows().map(|row| row.indent as usize));
    let mut prefixes: Vec<String> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    out.extend_from_slice(b",\"prefix\":");
    let mut last = (String::new(), None);
    let prefix = |row: &Row| {
        let prefix = row.prefix(Guides::new(Render::Unicode, None));
        // Most rows have the same guides as the row before.
        if let (known, Some(number)) = &last
            && *known == prefix
        {
            return *number;
        }
        let number = *numbers.entry(prefix.clone()).or_insert_with_key(|prefix| {
            prefixes.push(prefix.clone());
            prefixes.len() - 1
        });
        last = (prefix, Some(number));
        number
    };
    push_numbers(&mut out, rows().map(prefix));
    out.extend_from_slice(b",\"prefixes\":");
    json::push_strings(&mut out, &prefixes);
    out.push(b'}');
    out
}

fn push_numbers(out: &mut Vec<u8>, numbers: impl Iterator<Item = usize>) {
    out.push(b'[');
    for (at, number) in numbers.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_number(out, number as u64);
    }
    out.push(b']');
}
