//! A renderer: the look of the rows of one custom type.

use super::template::{BadTemplate, Template};
use treelined_core::view::{RowLook, RowStyle, Subject};
use treelined_core::{json, terminal};

/// Most bytes of a custom type that has a renderer.
pub(crate) const MAX_TYPE_BYTES: usize = 256;

/// Most characters of an icon.
pub(crate) const MAX_ICON_CHARS: usize = 16;

/// The look of the custom messages of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renderer {
    pub(super) preview: Template,
    pub(super) icon: Option<String>,
    pub(super) style: Option<RowStyle>,
}

/// The reason why a renderer is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadRenderer {
    Template(BadTemplate),
    Icon(String),
}

impl Renderer {
    pub fn new(
        preview: &str,
        icon: Option<String>,
        style: Option<RowStyle>,
    ) -> Result<Self, BadRenderer> {
        if let Some(icon) = &icon
            && let Err(why) = check_icon(icon)
        {
            return Err(BadRenderer::Icon(why));
        }
        Ok(Self {
            preview: Template::parse(preview).map_err(BadRenderer::Template)?,
            icon,
            style,
        })
    }

    /// The look of an entry with the custom type of this renderer. `line` is the stored line of the entry.
    pub fn look(&self, line: &[u8], subject: Subject) -> RowLook {
        let members = match subject.is_message() {
            true => json::get(line, "message").unwrap_or_default(),
            false => line,
        };
        RowLook {
            preview: Some(self.preview.fill(members)),
            icon: self.icon.clone(),
            style: self.style.or(usual_look(subject).style),
        }
    }
}

/// The look of an entry without a renderer. Displayed custom messages look different from the messages of the
/// conversation.
pub fn usual_look(subject: Subject) -> RowLook {
    let style = subject
        .is_displayed_custom_message()
        .then_some(RowStyle::Accent);
    RowLook {
        style,
        ..RowLook::default()
    }
}

pub(super) fn check_icon(icon: &str) -> Result<(), String> {
    if icon.trim().is_empty() || icon.chars().count() > MAX_ICON_CHARS {
        return Err(format!("must have 1 to {MAX_ICON_CHARS} characters"));
    }
    match icon.contains(terminal::is_control) {
        true => Err("must not have control characters".to_owned()),
        false => Ok(()),
    }
}

/// Fails for a custom type that cannot have a renderer.
pub fn check_type(custom_type: &str) -> Result<(), String> {
    match custom_type.trim().is_empty() || custom_type.len() > MAX_TYPE_BYTES {
        true => Err(format!("must have 1 to {MAX_TYPE_BYTES} bytes")),
        false => Ok(()),
    }
}
