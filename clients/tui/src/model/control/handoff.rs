//! The keys of a handoff to another agent.

use crate::keys::{Context, Key};
use crate::message::{Effect, Failure, HandoffPreview, HandoffRequest};
use crate::model::Model;
use crate::model::dialog::Dialog;
use crate::model::handoff::{Handoff, HandoffSize, HandoffState};
use crate::operation::Agent;
use crate::shell;
use crossterm::event::KeyCode;

/// The reason why a command is neither copied nor run.
const UNSAFE: &str = "The command is not used: a name in it has control characters.";

impl Model {
    /// Requests the preview of what an agent gets, up to the selected entry.
    pub(super) fn preview_handoff(&mut self, agent: Agent) -> Vec<Effect> {
        let (Some(row), Some(session)) = (self.tree.selected(), &self.session) else {
            return Vec::new();
        };
        let handoff = Handoff::new(agent, row.id.clone(), row.preview.clone(), session);
        let request = handoff.request();
        self.dialog = Some(Dialog::Handoff(handoff));
        vec![Effect::PreviewHandoff(request)]
    }

    pub(in crate::model) fn previewed(
        &mut self,
        request: &HandoffRequest,
        result: Result<HandoffPreview, Failure>,
    ) -> Vec<Effect> {
        if let Some(Dialog::Handoff(handoff)) = &mut self.dialog
            && matches!(handoff.preview, HandoffState::Asked)
            && handoff.request() == *request
        {
            handoff.preview = match result {
                Ok(preview) => HandoffState::Known(preview),
                Err(failure) => HandoffState::Failed(failure),
            };
        }
        Vec::new()
    }

    pub(super) fn key_in_handoff(&mut self, key: Key) -> Vec<Effect> {
        let last = crate::view::dialog_last(self);
        let Some(Dialog::Handoff(handoff)) = &mut self.dialog else {
            return Vec::new();
        };
        let is_large = handoff.is_too_large() || handoff.size != HandoffSize::Limited;
        match (key.text(), key.code()) {
            (Some('q'), _) | (_, KeyCode::Esc) => self.dialog = None,
            (Some('l'), _) => {
                handoff.learned = !handoff.learned;
                if handoff.is_text() {
                    return ask_again(handoff);
                }
            }
            (Some('c'), _) if is_large && !handoff.is_text() => {
                handoff.size = HandoffSize::Compacted;
                handoff.preview = HandoffState::Unknown;
            }
            (Some('0'), _) if is_large => {
                handoff.size = HandoffSize::Whole;
                return ask_again(handoff);
            }
            (Some('y'), _) if handoff.is_text() => {
                let Some(text) = handoff.text().map(str::to_owned) else {
                    self.say("The text has not come.");
                    return Vec::new();
                };
                self.say("The text is copied.");
                return vec![Effect::Copy(text)];
            }
            (Some('y'), _) => {
                let words = handoff.command(&self.settings.program);
                if !shell::is_safe(&words) {
                    self.say_error(UNSAFE);
                    return Vec::new();
                }
                self.say("The command is copied.");
                return vec![Effect::Copy(shell::command_line(&words))];
            }
            (_, KeyCode::Enter) if handoff.can_run() => return self.go_on_elsewhere(),
            _ => {
                let action = self.settings.keymap.action(Context::Preview, key);
                super::dialogs::scroll(action, &mut handoff.top, last, self.size.1);
            }
        }
        Vec::new()
    }

    /// Shows the text, or runs the command that continues in the agent.
    fn go_on_elsewhere(&mut self) -> Vec<Effect> {
        let Some(Dialog::Handoff(handoff)) = &self.dialog else {
            return Vec::new();
        };
        let Some(text) = handoff.text() else {
            let argv = handoff.command(&self.settings.program);
            if !shell::is_safe(&argv) {
                self.say_error(UNSAFE);
                return Vec::new();
            }
            let agent = handoff.agent;
            self.dialog = None;
            return vec![Effect::Run { agent, argv }];
        };
        let lines: Vec<String> = crate::text::lines(text).collect();
        self.dialog = Some(Dialog::Pager {
            title: "The conversation as a text".to_owned(),
            text: lines.join("\n"),
            top: 0,
        });
        Vec::new()
    }

    /// After the agent has ended, says what the user can do next.
    pub(in crate::model) fn ran(
        &mut self,
        agent: Agent,
        result: Result<(), String>,
    ) -> Vec<Effect> {
        match result {
            Ok(()) => self.say(format!(
                "Back from {}. :import {} brings what was said there.",
                agent.name, agent.tool
            )),
            Err(why) => self.say_error(format!("The command for {} {why}.", agent.name)),
        }
        Vec::new()
    }
}

fn ask_again(handoff: &mut Handoff) -> Vec<Effect> {
    handoff.preview = HandoffState::Asked;
    vec![Effect::PreviewHandoff(handoff.request())]
}
