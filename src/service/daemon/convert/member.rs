//! Members of JSON objects that this crate writes as text, without a type.

use treelined_core::json;

/// Writes raw JSON values as an array, `[…]`.
pub(crate) fn push_array(out: &mut Vec<u8>, values: impl IntoIterator<Item = impl AsRef<[u8]>>) {
    out.push(b'[');
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::push_raw(out, value.as_ref());
    }
    out.push(b']');
}

/// Writes `,"name":"text"` or `,"name":null`.
pub(crate) fn push_id_member(out: &mut Vec<u8>, name: &str, id: Option<&str>) {
    out.push(b',');
    json::push_string(out, name);
    out.push(b':');
    match id {
        Some(id) => json::push_string(out, id),
        None => out.extend_from_slice(b"null"),
    }
}

/// Writes `,"name":count`, or nothing if it is 0.
pub(crate) fn push_count(out: &mut Vec<u8>, name: &str, count: usize) {
    if count > 0 {
        push_number_member(out, name, count as u64);
    }
}

/// Writes `,"name":number`.
pub(crate) fn push_number_member(out: &mut Vec<u8>, name: &str, number: u64) {
    out.push(b',');
    json::push_string(out, name);
    out.push(b':');
    out.extend_from_slice(number.to_string().as_bytes());
}
