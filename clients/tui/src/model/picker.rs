//! A list to choose from: user messages, branches, the trash, sources, formats and agents.

use super::input::Input;
use crate::operation::{Agent, ExportFormat};

/// The purpose of a list. It decides the effect of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickerKind {
    /// User messages at which to fork.
    Fork,
    /// User messages of the active path. Choosing a message goes to the position before it.
    Pop,
    /// Branches. Choosing a branch moves the cursor to its tip.
    Branches { archived: bool },
    /// Deleted sessions to restore.
    Trash,
    /// Tools from which to import conversations.
    Import,
    /// Formats in which to export.
    Export,
    /// The secrets in an export with this format. The user decides for each secret whether it is replaced.
    Review { format: ExportFormat },
    /// Agents in which to continue.
    Continue,
    /// The sessions of a family, one of which is opened.
    Family,
    /// The answers to one question, one of which is chosen.
    Candidates,
}

/// An item. Its texts are sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PickerItem {
    /// The id of an entry or a session, or the name of a source, a format or an agent.
    pub id: String,
    pub text: String,
    /// A few words on the right.
    pub note: String,
    /// Whether the item is on the active path.
    pub is_active: bool,
    /// The path of a session's file.
    pub path: String,
    /// The entry at which the session is opened.
    pub entry: Option<String>,
    /// For a secret: whether the daemon would replace it.
    pub replaced: Option<bool>,
}

/// An open list.
#[derive(Debug)]
pub struct Picker {
    pub kind: PickerKind,
    /// The items; `None` until the daemon has listed them.
    items: Option<Vec<PickerItem>>,
    pub filter: Input,
    /// The index of the selected item in the list of shown items.
    pub selected: usize,
    /// The item to select when the items have arrived.
    wanted: Option<String>,
    /// The absolute path of the file to export.
    pub path: String,
}

impl PickerKind {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fork => "Fork at",
            Self::Pop => "Back to before",
            Self::Branches { .. } => "Branches",
            Self::Trash => "Trash",
            Self::Import => "Import",
            Self::Export => "Export",
            Self::Review { .. } => "Export: • is replaced",
            Self::Continue => "Continue in",
            Self::Family => "Family",
            Self::Candidates => "Answers to one question",
        }
    }

    /// Returns the words that say what Enter does, for the hints.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Fork => "forks",
            Self::Pop => "goes there",
            Self::Branches { .. } => "shows its tip",
            Self::Trash => "restores",
            Self::Import => "imports",
            Self::Export => "exports",
            Self::Review { .. } => "replaces or keeps it, or writes",
            Self::Continue => "shows what is handed over",
            Self::Family => "opens it",
            Self::Candidates => "chooses it",
        }
    }

    pub const fn emptiness(self) -> &'static str {
        match self {
            Self::Fork | Self::Pop => "There is no user message.",
            Self::Branches { .. } => "This session has no branch.",
            Self::Trash => "The trash is empty.",
            Self::Family => "The session has no file.",
            Self::Candidates => "No question has several answers here.",
            Self::Import | Self::Export | Self::Review { .. } | Self::Continue => {
                "Nothing to choose from."
            }
        }
    }
}

impl Picker {
    /// Opens a list whose items arrive later. Then the item `wanted` is selected.
    pub fn new(kind: PickerKind, wanted: Option<String>) -> Self {
        Self {
            kind,
            items: None,
            filter: Input::line(""),
            selected: 0,
            wanted,
            path: String::new(),
        }
    }

    /// Opens the list of the secrets in an export.
    pub fn of_review(format: ExportFormat, path: String) -> Self {
        Self {
            path,
            ..Self::new(PickerKind::Review { format }, None)
        }
    }

    /// Replaces the selected secret, or keeps it. False if the item is not a secret.
    pub fn decide(&mut self) -> bool {
        let Some(id) = self.chosen().filter(|item| item.replaced.is_some()) else {
            return false;
        };
        let id = id.id.clone();
        let items = self.items.iter_mut().flatten();
        for item in items.filter(|item| item.id == id) {
            item.is_active = !item.is_active;
        }
        true
    }

    /// The ids of the secrets that are replaced, or that stay, against the decision of the daemon.
    pub fn decided(&self, replaced: bool) -> Vec<String> {
        let items = self.items.iter().flatten();
        let differs = |item: &&PickerItem| {
            item.is_active == replaced && item.replaced.is_some_and(|before| before != replaced)
        };
        items.filter(differs).map(|item| item.id.clone()).collect()
    }

    /// Opens the list of the sources for an import.
    pub fn of_imports() -> Self {
        let item = |id: &str, text: &str, note: &str| PickerItem {
            id: id.to_owned(),
            text: text.to_owned(),
            note: note.to_owned(),
            ..PickerItem::default()
        };
        let mut picker = Self::new(PickerKind::Import, None);
        let mut items = vec![
            item("here", "All tools, this directory", ""),
            item("all", "All tools, all directories", ""),
        ];
        items.extend(Agent::imported().map(|agent| item(agent.tool, agent.name, agent.tool)));
        picker.arrived(items);
        picker
    }

    /// Opens the list of the formats for an export.
    pub fn of_exports() -> Self {
        let mut picker = Self::new(PickerKind::Export, None);
        let item = |format: ExportFormat| PickerItem {
            id: format.name().to_owned(),
            text: format!("{:<9} {}", format.name(), format.about()),
            note: format!(".{}", format.extension()),
            ..PickerItem::default()
        };
        picker.arrived(ExportFormat::ALL.map(item).into());
        picker
    }

    pub fn arrived(&mut self, items: Vec<PickerItem>) {
        let wanted = self.wanted.take();
        let at = items
            .iter()
            .position(|item| Some(&item.id) == wanted.as_ref());
        self.items = Some(items);
        self.selected = at.unwrap_or(0);
    }

    pub fn is_loading(&self) -> bool {
        self.items.is_none()
    }

    /// Returns the items that contain the typed text. Case does not matter.
    pub fn shown(&self) -> Vec<&PickerItem> {
        let typed = self.filter.text().to_lowercase();
        let fits = |item: &&PickerItem| item.text.to_lowercase().contains(&typed);
        self.items.iter().flatten().filter(fits).collect()
    }

    pub fn chosen(&self) -> Option<&PickerItem> {
        self.shown().get(self.selected).copied()
    }

    /// Moves the selection by `rows` rows; it stays within the list.
    pub fn select(&mut self, rows: isize) {
        let last = self.shown().len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(rows).min(last);
    }
}
