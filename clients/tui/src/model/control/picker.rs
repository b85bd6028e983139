//! The keys in a list to choose from.

use crate::keys::Key;
use crate::message::{Effect, Failure, PagePosition};
use crate::model::Model;
use crate::model::dialog::{Dialog, NavigationChoice};
use crate::model::picker::{Picker, PickerItem, PickerKind};
use crate::operation::{Agent, ExportFormat, Operation, import_of};
use crossterm::event::KeyCode;

/// The number of items by which a page key moves the selection.
const PAGE: isize = 8;

impl Model {
    /// Opens a list, and requests its items.
    pub(super) fn pick(&mut self, kind: PickerKind) -> Vec<Effect> {
        let picker = match kind {
            PickerKind::Import => Picker::of_imports(),
            PickerKind::Export => Picker::of_exports(),
            kind => {
                let row = self.tree.selected();
                let wanted = match kind {
                    PickerKind::Family => row
                        .and_then(|row| row.sessions.first())
                        .map(|born| born.id.clone()),
                    _ => row.map(|row| row.id.clone()),
                };
                Picker::new(kind, wanted)
            }
        };
        let effects = match picker.is_loading() {
            true => vec![Effect::ListItems(kind)],
            false => Vec::new(),
        };
        self.dialog = Some(Dialog::Picker(picker));
        effects
    }

    /// Opens the list of the branches that the tree shows.
    pub(super) fn pick_branch(&mut self) -> Vec<Effect> {
        let archived = self.tree.archived;
        self.pick(PickerKind::Branches { archived })
    }

    /// Applies the answer to a request for the items of a list.
    pub(in crate::model) fn listed(
        &mut self,
        kind: PickerKind,
        result: Result<Vec<PickerItem>, Failure>,
    ) -> Vec<Effect> {
        let Some(Dialog::Picker(picker)) = self.dialog.as_mut() else {
            return Vec::new();
        };
        if picker.kind != kind || !picker.is_loading() {
            return Vec::new();
        }
        match result {
            Ok(mut items) => {
                match kind {
                    PickerKind::Fork => items = self.with_selected(items),
                    PickerKind::Review { .. } if items.is_empty() => return self.write_export(),
                    PickerKind::Review { .. } => {
                        let text = format!("Write {}", crate::text::line(&picker.path));
                        let write = PickerItem {
                            text,
                            ..PickerItem::default()
                        };
                        items.insert(0, write);
                    }
                    _ => {}
                }
                if let Some(Dialog::Picker(picker)) = self.dialog.as_mut() {
                    picker.arrived(items);
                }
                Vec::new()
            }
            Err(failure) => {
                self.dialog = None;
                self.fail("The list cannot be read", failure)
            }
        }
    }

    /// Puts the selected entry first if it is not one of the items, since a fork can be made at any
    /// entry.
    fn with_selected(&self, mut items: Vec<PickerItem>) -> Vec<PickerItem> {
        if let Some(row) = self.tree.selected()
            && items.iter().all(|item| item.id != row.id)
        {
            let item = PickerItem {
                id: row.id.clone(),
                text: row.preview.clone(),
                note: "selected".to_owned(),
                is_active: row.on_active_path,
                ..PickerItem::default()
            };
            items.insert(0, item);
        }
        items
    }

    pub(super) fn key_in_picker(&mut self, key: Key) -> Vec<Effect> {
        let Some(Dialog::Picker(picker)) = &mut self.dialog else {
            return Vec::new();
        };
        match key.code() {
            KeyCode::Esc if picker.filter.is_empty() => self.dialog = None,
            KeyCode::Esc => {
                picker.filter.clear();
                picker.selected = 0;
            }
            KeyCode::Enter => return self.picked(),
            KeyCode::Up => picker.select(-1),
            KeyCode::Down => picker.select(1),
            KeyCode::PageUp => picker.select(-PAGE),
            KeyCode::PageDown => picker.select(PAGE),
            KeyCode::Home => picker.select(isize::MIN),
            KeyCode::End => picker.select(isize::MAX),
            _ if key.is_ctrl('p') => picker.select(-1),
            _ if key.is_ctrl('n') => picker.select(1),
            _ => {
                let before = picker.filter.text().len();
                picker.filter.key(key);
                if picker.filter.text().len() != before {
                    picker.selected = 0;
                }
            }
        }
        Vec::new()
    }

    /// Exports the session with the decisions of the review.
    fn write_export(&mut self) -> Vec<Effect> {
        let Some(Dialog::Picker(picker)) = self.dialog.take() else {
            return Vec::new();
        };
        let PickerKind::Review { format } = picker.kind else {
            return Vec::new();
        };
        self.operate(Operation::Export {
            format,
            keep: picker.decided(false),
            replace: picker.decided(true),
            path: picker.path,
        })
    }

    pub(super) fn picked(&mut self) -> Vec<Effect> {
        let Some(Dialog::Picker(picker)) = &mut self.dialog else {
            return Vec::new();
        };
        let kind = picker.kind;
        if matches!(kind, PickerKind::Review { .. }) {
            return match picker.chosen().is_none() || picker.decide() {
                true => Vec::new(),
                false => self.write_export(),
            };
        }
        let Some(item) = picker.chosen().cloned() else {
            return Vec::new();
        };
        self.dialog = None;
        match kind {
            PickerKind::Fork => self.operate(Operation::Fork { entry: item.id }),
            PickerKind::Pop => {
                self.choose_way(NavigationChoice::new(item.id, item.text, true, true))
            }
            PickerKind::Branches { .. } => self.tree.go_to(PagePosition::Around(item.id)),
            PickerKind::Trash => self.operate(Operation::Restore {
                session_id: item.id,
                trashed: item.path,
            }),
            PickerKind::Import => match import_of(&item.id) {
                Some(source) => self.operate(Operation::Import(source)),
                None => Vec::new(),
            },
            PickerKind::Family => self.open_relative(item),
            PickerKind::Candidates => self.ask_reason(item),
            PickerKind::Continue => match Agent::named(&item.id) {
                Some(agent) => self.preview_handoff(agent),
                None => Vec::new(),
            },
            PickerKind::Export => match ExportFormat::named(&item.id) {
                Some(format) => self.export(format, None),
                None => Vec::new(),
            },
            PickerKind::Review { .. } => Vec::new(),
        }
    }
}
