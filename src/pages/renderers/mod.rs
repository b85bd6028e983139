//! How custom messages look in rows (protocol.md §14): one line of text, an icon and a style for each custom type.
//!
//! Owns the templates, their limits, and the order among renderers of one type. A template only selects members of
//! the entry; it runs no code. Pure: it reads neither the file nor the clock. Rendering is linear in the entry.

mod renderer;
mod table;
mod template;
#[cfg(test)]
mod tests;

pub use renderer::{BadRenderer, Renderer, check_type, usual_look};
pub use table::{MAX_RENDERERS, Renderers};
