//! The look of custom messages in rows (protocol.md §14): one line of text, an icon and a style for each custom
//! type.
//!
//! This module has the templates and their limits, and decides which renderer of a type is used. A template only
//! selects members of the entry; it runs no code. The module is pure: it reads neither the file nor the clock. The
//! time of rendering is linear in the entry.

mod renderer;
mod table;
mod template;
#[cfg(test)]
mod tests;

pub use renderer::{BadRenderer, Renderer, check_type, usual_look};
pub use table::{MAX_RENDERERS, Renderers};
