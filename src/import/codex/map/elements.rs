//! Reads elements of arrays.

use treelined_core::json::Elements;

/// The elements of a raw array, up to the first one that is not JSON.
pub(super) fn array_elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut elements = Elements::open(array, 0).ok();
    std::iter::from_fn(move || array.get(elements.as_mut()?.next_value().ok()??))
}
