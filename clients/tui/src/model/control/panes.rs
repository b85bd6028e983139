//! The keys of the preview, of a comparison and of the editor.

use crate::keys::{Action, Context, Key};
use crate::message::Effect;
use crate::model::{Model, layout};
use crossterm::event::KeyCode;

impl Model {
    pub(super) fn key_in_preview(&mut self, key: Key) -> Vec<Effect> {
        let page = isize::try_from(self.preview.height).unwrap_or(1).max(2) - 1;
        match self.action(Context::Preview, key) {
            Some(Action::Up) => self.preview.scroll(-1),
            Some(Action::Down) => self.preview.scroll(1),
            Some(Action::PageUp) => self.preview.scroll(-page),
            Some(Action::PageDown) => self.preview.scroll(page),
            Some(Action::First) => self.preview.top = 0,
            Some(Action::Last) => self.preview.top = self.preview.last_top(),
            Some(Action::FocusPreview) => self.preview_focused = false,
            Some(Action::TogglePreview) => self.half = !self.half,
            Some(action @ (Action::ToggleTools | Action::ToggleThinking)) => {
                return self.close_parts(action);
            }
            Some(Action::Copy) => return self.copy_selected(),
            Some(Action::Command) => return self.begin_command(),
            Some(Action::Answer) => return self.answer_waiting(),
            Some(Action::Help) => return self.help(),
            Some(Action::Suspend) => return vec![Effect::Suspend],
            Some(Action::Quit) => return vec![Effect::Quit],
            _ => {}
        }
        Vec::new()
    }

    /// Opens or closes all tool calls, or all thinking. Also notifies the user, since the shown entry may have no such
    /// parts.
    pub(super) fn close_parts(&mut self, action: Action) -> Vec<Effect> {
        let (what, is_closed) = match action {
            Action::ToggleTools => ("Tool calls are", self.preview.toggle_tools()),
            _ => ("Thinking is", self.preview.toggle_thinking()),
        };
        let key = self.hint(action);
        self.say(match is_closed {
            true => format!("{what} closed in the preview. {key} opens them all."),
            false => format!("{what} open."),
        });
        Vec::new()
    }

    pub(super) fn key_in_comparison(&mut self, key: Key) -> Vec<Effect> {
        let action = self.action(Context::Compare, key);
        let Some(compare) = &mut self.compare else {
            return Vec::new();
        };
        let page = isize::try_from(compare.height).unwrap_or(1).max(2) - 1;
        match action {
            Some(Action::Up) => compare.scroll(-1),
            Some(Action::Down) => compare.scroll(1),
            Some(Action::PageUp) => compare.scroll(-page),
            Some(Action::PageDown) => compare.scroll(page),
            Some(Action::First) => compare.top = 0,
            Some(Action::Last) => compare.scroll(isize::MAX),
            Some(Action::Back) => self.compare = None,
            Some(Action::Answer) => return self.answer_waiting(),
            Some(Action::Help) => return self.help(),
            Some(Action::Suspend) => return vec![Effect::Suspend],
            Some(Action::Quit) => return vec![Effect::Quit],
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn key_in_editor(&mut self, key: Key) -> Vec<Effect> {
        let action = self.action(Context::Editor, key);
        let columns = usize::from(layout::panes(self).editor.width);
        let Some(editor) = self.editor.as_mut().filter(|editor| !editor.sending) else {
            return Vec::new();
        };
        match action {
            Some(Action::Send) if editor.is_empty() => self.say("There is nothing to send."),
            Some(Action::Send) => {
                editor.sending = true;
                return vec![Effect::Send(editor.draft())];
            }
            Some(Action::Newline) => editor.input.insert("\n"),
            Some(Action::Copy) => {
                let text = editor.input.text().to_owned();
                self.say(format!("Copied: {}", crate::time::bytes(text.len())));
                return vec![Effect::Copy(text)];
            }
            Some(Action::Back) => {
                let kept = (!editor.is_empty()).then(|| editor.draft());
                self.editor = None;
                if kept.is_some() {
                    let compose = self.hint(Action::Compose);
                    self.say(format!("The draft is kept; {compose} opens it again."));
                }
                self.kept_draft = kept;
            }
            Some(Action::Answer) => return self.answer_waiting(),
            Some(Action::Quit) => return vec![Effect::Quit],
            _ => match key.code() {
                KeyCode::Up => editor.input.vertical(columns, false),
                KeyCode::Down => editor.input.vertical(columns, true),
                _ => {
                    editor.input.key(key);
                }
            },
        }
        Vec::new()
    }
}
