//! The mouse, and pasted text.

use crate::message::Effect;
use crate::model::dialog::Dialog;
use crate::model::{Model, Screen, layout};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use std::time::Duration;

/// The number of lines for one step of the wheel.
const WHEEL: isize = 3;

/// The longest time between the two clicks of a double click.
const DOUBLE_CLICK: Duration = Duration::from_millis(400);

impl Model {
    pub(in crate::model) fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.withdraw_unread() {
            return Vec::new();
        }
        if let Some(Dialog::Question(question)) = &mut self.dialog {
            if let Some(input) = question.field.input() {
                input.insert(text);
            }
            return Vec::new();
        }
        if !self.is_ready() || self.is_busy() {
            return Vec::new();
        }
        if let Some(dialog) = &mut self.dialog {
            match dialog {
                Dialog::Label { input, .. }
                | Dialog::NameBranch { input, .. }
                | Dialog::Rename { input, .. }
                | Dialog::Tags { input, .. }
                | Dialog::Reason { input, .. }
                | Dialog::Aside { input }
                | Dialog::Create { input }
                | Dialog::Focus { input, .. } => input.insert(text),
                Dialog::Picker(picker) => picker.filter.insert(text),
                Dialog::Choose(choose) => {
                    if let Some(focus) = &mut choose.focus {
                        focus.insert(text);
                    }
                }
                _ => {}
            }
        } else if let Some(line) = &mut self.command_line {
            line.input.insert(text);
        } else if let Some(editor) = &mut self.editor {
            editor.input.insert(text);
        } else if self.compare.is_none() && self.screen == Screen::Sessions {
            self.sessions.typing = true;
            self.sessions.search.insert(text);
            return self.sessions.restart();
        } else if self.compare.is_none() && self.screen == Screen::Search {
            self.search.input.insert(text);
            return self.search.changed();
        } else if self.compare.is_none() {
            self.tree.typing = true;
            self.tree.search.insert(text);
            return self.tree.searched();
        }
        Vec::new()
    }

    pub(in crate::model) fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(at, -WHEEL),
            MouseEventKind::ScrollDown => self.wheel(at, WHEEL),
            MouseEventKind::Down(MouseButton::Left) => return self.click(at),
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn wheel(&mut self, at: Position, lines: isize) {
        let panes = layout::panes(self);
        let last = crate::view::dialog_last(self);
        let top = match &mut self.dialog {
            Some(Dialog::Help { top } | Dialog::Pager { top, .. }) => Some(top),
            Some(Dialog::Handoff(handoff)) => Some(&mut handoff.top),
            Some(Dialog::Failed(failed)) => Some(&mut failed.top),
            _ => None,
        };
        if let Some(top) = top {
            *top = top.saturating_add_signed(lines).min(last);
        } else if self.dialog.is_some() || self.is_busy() {
        } else if let Some(compare) = &mut self.compare {
            compare.scroll(lines);
        } else if panes.preview.contains(at) {
            self.preview.scroll(lines);
        } else if panes.tree.contains(at) {
            self.tree.scroll(lines);
        } else if panes.list.contains(at) {
            let to = self.sessions.cursor.saturating_add_signed(lines);
            self.sessions.move_to(to);
        } else if panes.hits.contains(at) {
            let to = self.search.cursor.saturating_add_signed(lines);
            self.search.move_to(to);
        }
    }

    pub(super) fn click(&mut self, at: Position) -> Vec<Effect> {
        if !self.is_ready() || self.is_busy() {
            return Vec::new();
        }
        self.remove_notice();
        let now = self.now;
        let double = self.last_click.take().is_some_and(|(column, row, then)| {
            (column, row) == (at.x, at.y) && now.saturating_sub(then) <= DOUBLE_CLICK
        });
        if !double {
            self.last_click = Some((at.x, at.y, now));
        }
        if self.dialog.is_some() {
            return self.click_in_dialog(at);
        }
        let panes = layout::panes(self);
        let line = |pane: Rect| pane.contains(at).then(|| usize::from(at.y - pane.y));
        if self.editor.is_some() || self.compare.is_some() || self.command_line.is_some() {
            return Vec::new();
        }
        if let Some(line) = line(panes.list) {
            let Some(row) = self.sessions.row_at(line) else {
                return Vec::new();
            };
            self.sessions.move_to(row);
            return if double {
                self.open_selected()
            } else {
                Vec::new()
            };
        }
        if let Some(line) = line(panes.hits) {
            return match self.search.click(line) {
                true if double => self.accept_line(),
                _ => Vec::new(),
            };
        }
        if let Some(line) = line(panes.tree) {
            let row = self.tree.top + line;
            if row >= self.tree.rows.total() {
                return Vec::new();
            }
            self.preview_focused = false;
            self.tree.move_to(row);
            let on_mark = crate::view::fold_mark_columns(self)
                .is_some_and(|columns| columns.contains(&at.x.saturating_sub(panes.tree.x)));
            if on_mark {
                return self.toggle_fold();
            }
            return if double && self.tree.is_at_folded() {
                self.toggle_fold()
            } else if double {
                self.navigate_to_cursor(false)
            } else {
                Vec::new()
            };
        }
        if panes.preview.contains(at) {
            self.preview_focused = true;
        }
        Vec::new()
    }

    pub(super) fn click_in_dialog(&mut self, at: Position) -> Vec<Effect> {
        let choice = crate::view::choice_at(self, at);
        match (&mut self.dialog, choice) {
            (Some(Dialog::Choose(choose)), Some(choice)) => {
                choose.selected = choice;
                self.choose()
            }
            (Some(Dialog::Failed(_) | Dialog::Help { .. } | Dialog::Pager { .. }), _) => {
                self.dialog = None;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}
