//! The keys of the tree.

use crate::config::{DoubleEscape, Summary};
use crate::keys::{Action, Context, Key};
use crate::message::Kind;
use crate::message::{Draft, Effect, Filter, PagePosition};
use crate::model::compare::RunningComparison;
use crate::model::dialog::{Dialog, FocusOf, NavigationChoice};
use crate::model::editor::Editor;
use crate::model::input::Input;
use crate::model::layout::MOST_STEPS;
use crate::model::picker::PickerKind;
use crate::model::{Model, Screen};
use crossterm::event::KeyCode;
use std::time::Duration;

/// The longest time between two Escs that count as pressing it twice.
const DOUBLE_ESCAPE: Duration = Duration::from_millis(600);

impl Model {
    pub(super) fn key_in_tree(&mut self, key: Key) -> Vec<Effect> {
        if self.tree.typing
            && let Some(effects) = self.type_in_tree_search(key)
        {
            return effects;
        }
        let Some(action) = self.action(Context::Tree, key) else {
            return match key.text() {
                Some(letter) if letter != ' ' => self.letter_without_action(key, letter),
                _ => Vec::new(),
            };
        };
        if self.move_cursor(action) {
            self.tree.typing = false;
            return Vec::new();
        }
        match action {
            Action::Accept | Action::Rewind if self.tree.is_at_folded() => self.toggle_fold(),
            Action::Accept => self.navigate_to_cursor(false),
            Action::Rewind => self.navigate_to_cursor(true),
            Action::Back => self.leave_tree(),
            Action::Search => {
                self.tree.typing = true;
                Vec::new()
            }
            Action::FoldOrUp => self.tree.fold_or_up(),
            Action::UnfoldOrDown => self.tree.unfold_or_down(),
            Action::ToggleFold => self.toggle_fold(),
            Action::OpenAll => self.tree.toggle_all(),
            Action::NextPrompt => self.go_to_prompt(true),
            Action::PreviousPrompt => self.go_to_prompt(false),
            Action::ToActive => self.tree.go_to(PagePosition::Leaf),
            Action::ToNews => self.go_to_others(),
            Action::NextHit => self.go_to_hit(true),
            Action::PreviousHit => self.go_to_hit(false),
            Action::FilterDefault => self.tree.set_filter(Filter::Default),
            Action::FilterNoTools => self.tree.toggle_filter(Filter::NoTools),
            Action::FilterUserOnly => self.tree.toggle_filter(Filter::UserOnly),
            Action::FilterLabeled => self.tree.toggle_filter(Filter::Labeled),
            Action::FilterAll => self.tree.toggle_filter(Filter::All),
            Action::NextFilter => self.tree.set_filter(self.tree.filter.next()),
            Action::Label => self.label_selected(),
            Action::Command => self.begin_command(),
            Action::Answer => self.answer_waiting(),
            Action::LabelTimes => {
                self.tree.label_times = !self.tree.label_times;
                Vec::new()
            }
            Action::Undo => vec![Effect::Undo],
            Action::Redo => vec![Effect::Redo],
            Action::Copy => self.copy_selected(),
            Action::Compose => {
                if self.tree.selected().is_some_and(|row| !row.is_leaf) {
                    let (back, go) = (self.hint(Action::Back), self.hint(Action::Accept));
                    self.say(format!("The message comes below the active entry. To write below this one: {back}, then {go} goes here."));
                }
                let draft = self.kept_draft.take().unwrap_or_else(|| Draft {
                    expected_leaf: self.tree.leaf.clone(),
                    ..Draft::default()
                });
                self.editor = Some(Editor::new(draft));
                Vec::new()
            }
            Action::Columns => {
                self.tree.columns.shown = !self.tree.columns.shown;
                Vec::new()
            }
            Action::LargerPreview => self.resize_preview(1),
            Action::SmallerPreview => self.resize_preview(-1),
            Action::TogglePreview => {
                self.half = !self.half;
                Vec::new()
            }
            Action::ToggleTools | Action::ToggleThinking => self.close_parts(action),
            Action::FocusPreview => {
                self.preview_focused = true;
                Vec::new()
            }
            Action::Sessions => self.show_sessions(),
            Action::SearchAll => self.search_all(),
            Action::Help => self.help(),
            Action::Suspend => vec![Effect::Suspend],
            Action::Quit => vec![Effect::Quit],
            action => self.act_on_branches(action),
        }
    }

    /// Handles the actions that fork, mark, copy, summarize, name and archive.
    fn act_on_branches(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Fork => self.pick(PickerKind::Fork),
            Action::CherryPick => self.ask_to_copy(),
            Action::Merge => self.merge(String::new()),
            Action::Compact => self.ask_focus(FocusOf::Compaction),
            Action::Branches => self.pick_branch(),
            Action::NameBranch => self.name_branch(String::new()),
            Action::Archive => self.archive_or_bring_back(),
            Action::ShowArchived => self.show_archived(),
            Action::Candidates => self.pick(PickerKind::Candidates),
            Action::Aside => self.ask_beside(String::new()),
            Action::KeepAside => self.keep_aside(),
            Action::Family => self.pick(PickerKind::Family),
            Action::Tags => self.ask_tags(),
            Action::Pin => self.pin(),
            Action::Continue if self.tree.is_at_folded() => self.toggle_fold(),
            Action::Continue => self.pick(PickerKind::Continue),
            Action::Export => self.pick(PickerKind::Export),
            Action::Mark => {
                self.tree.toggle_mark();
                Vec::new()
            }
            Action::Compare => self.compare_marked(),
            _ => Vec::new(),
        }
    }

    /// Handles a letter without an action. The letter begins a search, or a message says which key begins a search.
    fn letter_without_action(&mut self, key: Key, letter: char) -> Vec<Effect> {
        if self.settings.keymap.searches_by_letters {
            self.tree.typing = true;
            self.tree.search.key(key);
            return self.tree.searched();
        }
        self.say_no_action(Context::Tree, letter);
        Vec::new()
    }

    pub(super) fn say_no_action(&mut self, context: Context, letter: char) {
        let hint = |action| self.settings.keymap.hint(context, action);
        let (search, help) = (hint(Action::Search), hint(Action::Help));
        let letter = crate::text::line(&letter.to_string());
        self.say(format!(
            "{letter} has no action. {search} searches, {help} lists the keys."
        ));
    }

    /// Makes the preview larger or smaller.
    fn resize_preview(&mut self, steps: isize) -> Vec<Effect> {
        self.half = true;
        self.preview_size = (self.preview_size + steps).clamp(-MOST_STEPS, MOST_STEPS);
        Vec::new()
    }

    /// Goes to the entry to which another program has moved the leaf of the file.
    fn go_to_others(&mut self) -> Vec<Effect> {
        match self.tree.others().map(str::to_owned) {
            Some(id) => {
                self.tree.news = 0;
                self.tree.go_to(PagePosition::Around(id))
            }
            None => {
                self.say("No other program is at another entry.");
                Vec::new()
            }
        }
    }

    /// Goes to the next or the previous hit of a search.
    fn go_to_hit(&mut self, forward: bool) -> Vec<Effect> {
        if !self.tree.has_hits() {
            let search = self.hint(Action::Search);
            self.say(format!("Nothing is searched. {search} searches."));
        } else if !self.tree.seek_hit(forward) {
            self.say(match forward {
                true => "This is the last hit.",
                false => "This is the first hit.",
            });
        }
        Vec::new()
    }

    /// Opens or closes the branches at the cursor.
    pub(super) fn toggle_fold(&mut self) -> Vec<Effect> {
        let toggled = self.tree.toggle_fold();
        toggled.unwrap_or_else(|| {
            let all = self.hint(Action::OpenAll);
            self.say(format!("Nothing is folded here. {all} opens all branches."));
            Vec::new()
        })
    }

    fn go_to_prompt(&mut self, forward: bool) -> Vec<Effect> {
        if !self.tree.seek_prompt(forward) {
            self.say(match forward {
                true => "This is the last user message.",
                false => "This is the first user message.",
            });
        }
        Vec::new()
    }

    /// Handles a key that is for the search. `None` if the key is not a text and has its usual
    /// action.
    pub(super) fn type_in_tree_search(&mut self, key: Key) -> Option<Vec<Effect>> {
        // Enter ends the typing and shows the hits. It does not move the leaf.
        if key.is(KeyCode::Enter) {
            self.tree.typing = false;
            return Some(Vec::new());
        }
        if key.is(KeyCode::Backspace) && self.tree.search.is_empty() {
            self.tree.typing = false;
            return Some(Vec::new());
        }
        if key.text().is_none()
            && !matches!(key.code(), KeyCode::Backspace | KeyCode::Delete)
            && !key.is_ctrl('w')
        {
            return None;
        }
        self.tree.search.key(key);
        Some(self.tree.searched())
    }

    /// Moves the cursor. Returns whether the action is a movement.
    pub(super) fn move_cursor(&mut self, action: Action) -> bool {
        let cursor = self.tree.cursor;
        let page = self.tree.height.saturating_sub(1).max(1);
        let to = match action {
            Action::Up => cursor.saturating_sub(1),
            Action::Down => cursor + 1,
            Action::PageUp => cursor.saturating_sub(page),
            Action::PageDown => cursor + page,
            Action::First => 0,
            Action::Last => usize::MAX - 1,
            _ => return false,
        };
        self.tree.move_to(to);
        true
    }

    pub(super) fn leave_tree(&mut self) -> Vec<Effect> {
        if self.tree.is_going() {
            self.held.clear();
            self.tree.stay();
            return Vec::new();
        }
        if let Some(effects) = self.tree.clear_search() {
            return effects;
        }
        if !self.tree.marks.is_empty() {
            self.tree.marks.clear();
            return Vec::new();
        }
        if self.settings.double_escape != DoubleEscape::None {
            return self.escaped_at_the_top();
        }
        match self.back {
            Some(Screen::Sessions) => self.show_sessions(),
            Some(Screen::Search) => {
                self.screen = Screen::Search;
                Vec::new()
            }
            _ => self.is_at_the_top(),
        }
    }

    /// Handles Esc if nothing is left to close: pressing it a second time within a short time has
    /// the configured action.
    fn escaped_at_the_top(&mut self) -> Vec<Effect> {
        let now = self.now;
        let before = self.last_escape.replace(now);
        if before.is_none_or(|before| now.saturating_sub(before) > DOUBLE_ESCAPE) {
            let action = match self.settings.double_escape {
                DoubleEscape::None => return self.is_at_the_top(),
                DoubleEscape::Fork => "forks",
                DoubleEscape::Tree => "goes to the leaf",
                DoubleEscape::Sessions => "shows the sessions",
                DoubleEscape::Quit => "quits",
            };
            self.say(format!("esc again {action}."));
            return Vec::new();
        }
        self.last_escape = None;
        match self.settings.double_escape {
            DoubleEscape::None => Vec::new(),
            DoubleEscape::Fork => self.pick(PickerKind::Fork),
            DoubleEscape::Tree => self.tree.go_to(PagePosition::Leaf),
            DoubleEscape::Sessions => self.show_sessions(),
            DoubleEscape::Quit => vec![Effect::Quit],
        }
    }

    pub(super) fn label_selected(&mut self) -> Vec<Effect> {
        if let Some(row) = self.tree.selected() {
            self.dialog = Some(Dialog::Label {
                id: row.id.clone(),
                input: Input::line(row.label.as_deref().unwrap_or_default()),
            });
        }
        Vec::new()
    }

    pub(super) fn show_sessions(&mut self) -> Vec<Effect> {
        self.screen = Screen::Sessions;
        self.back = Some(Screen::Sessions);
        self.sessions.reload()
    }

    pub(super) fn copy_selected(&mut self) -> Vec<Effect> {
        let row = self.tree.selected();
        row.map(|row| Effect::GetText { id: row.id.clone() })
            .into_iter()
            .collect()
    }

    pub(super) fn compare_marked(&mut self) -> Vec<Effect> {
        let cursor = self.tree.selected().map(|row| row.id.clone());
        // If more than two entries are marked, the last two are compared.
        let pair = match (&*self.tree.marks, cursor) {
            ([.., (left, _), (right, _)], _) => Some((left.clone(), right.clone())),
            ([(left, _)], Some(right)) if *left != right => Some((left.clone(), right)),
            _ => None,
        };
        let Some((left, right)) = pair else {
            let mark = self.hint(Action::Mark);
            self.say(format!(
                "Mark an entry with {mark}, then compare it with another."
            ));
            return Vec::new();
        };
        self.comparisons += 1;
        let id = self.comparisons;
        self.comparing = Some(RunningComparison {
            id,
            began: self.now,
            read: 0,
            most: 0,
        });
        vec![Effect::Compare { id, left, right }]
    }

    pub(super) fn navigate_to_cursor(&mut self, rewind: bool) -> Vec<Effect> {
        let Some(row) = self.tree.selected() else {
            return Vec::new();
        };
        let is_user = row.kind == Kind::User;
        if rewind && !is_user {
            self.say("Only user messages can be edited again.");
            return Vec::new();
        }
        let (target, preview) = (row.id.clone(), row.preview.clone());
        if !rewind && self.tree.leaf.as_ref() == Some(&target) {
            self.already_there();
            return Vec::new();
        }
        self.choose_way(NavigationChoice::new(target, preview, is_user, rewind))
    }

    /// Asks how to navigate, or navigates at once if this is configured.
    pub(super) fn choose_way(&mut self, choice: NavigationChoice) -> Vec<Effect> {
        let (target, rewind) = (choice.target.clone(), choice.rewind);
        let can_summarize = self.summarizer().is_some();
        self.dialog = Some(Dialog::Choose(NavigationChoice {
            selected: usize::from(can_summarize && self.settings.summary == Summary::Always),
            can_summarize,
            ..choice
        }));
        match self.settings.summary {
            Summary::Never => return self.start_navigation(),
            Summary::Always if can_summarize => return self.start_navigation(),
            Summary::Always | Summary::Ask => {}
        }
        vec![Effect::Prepare { target, rewind }]
    }
}
