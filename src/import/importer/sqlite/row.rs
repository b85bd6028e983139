//! Writes a row of a database as a line of JSON.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::io::Write;
use treelined_core::json;

/// Appends `{"table":…,"rowid":…,"row":{column:value,…}}` and a line break. Invalid UTF-8 in texts becomes U+FFFD.
/// Numbers are exact. A blob becomes `{"$blob":base64}`.
pub(super) fn push(
    out: &mut Vec<u8>,
    table: &str,
    rowid: i64,
    columns: &[String],
    row: &Row<'_>,
) -> rusqlite::Result<()> {
    out.extend_from_slice(b"{\"table\":");
    json::push_string(out, table);
    out.extend_from_slice(format!(",\"rowid\":{rowid},\"row\":{{").as_bytes());
    for (index, name) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::push_string(out, name);
        out.push(b':');
        value(out, row.get_ref(index)?);
    }
    out.extend_from_slice(b"}}\n");
    Ok(())
}

fn value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Integer(number) => drop(write!(out, "{number}")),
        // JSON has no infinity. This number is too large, so readers take it for infinity.
        ValueRef::Real(number) if number.is_infinite() => {
            out.extend_from_slice(if number > 0.0 { b"1e999" } else { b"-1e999" });
        }
        // `{:?}` gives the shortest text that is read as the same number.
        ValueRef::Real(number) => drop(write!(out, "{number:?}")),
        ValueRef::Text(text) => json::push_string(out, &String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => {
            out.extend_from_slice(b"{\"$blob\":\"");
            push_base64(out, bytes);
            out.extend_from_slice(b"\"}");
        }
    }
}

fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let is_used = digit <= group.len();
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            let letter = DIGITS.get(index).filter(|_| is_used);
            out.push(letter.copied().unwrap_or(b'='));
        }
    }
}
