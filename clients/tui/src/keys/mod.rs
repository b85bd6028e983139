//! Keys, their actions, and their configuration.
//!
//! An [`Action`] has one name, which the configuration file and the help use. Each [`Context`] has its own
//! table. A key that is not in the table goes to the text input, if one is open.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

mod action;
mod defaults;

pub use action::Action;

/// The part of the screen that has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Context {
    /// The list of sessions.
    Sessions,
    /// The search over all sessions.
    Search,
    /// The tree.
    Tree,
    /// The preview.
    Preview,
    /// Two branches side by side.
    Compare,
    /// The editor of a message.
    Editor,
}

impl Context {
    pub const ALL: [Context; 6] = [
        Context::Sessions,
        Context::Search,
        Context::Tree,
        Context::Preview,
        Context::Compare,
        Context::Editor,
    ];

    /// Returns the name in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Context::Sessions => "sessions",
            Context::Search => "search",
            Context::Tree => "tree",
            Context::Preview => "preview",
            Context::Compare => "compare",
            Context::Editor => "editor",
        }
    }

    /// Returns the name for people.
    pub const fn about(self) -> &'static str {
        match self {
            Context::Sessions => "list of sessions",
            Context::Search => "search of all sessions",
            Context::Tree => "tree",
            Context::Preview => "preview",
            Context::Compare => "comparison",
            Context::Editor => "editor",
        }
    }

    const fn defaults(self) -> defaults::Table {
        match self {
            Context::Sessions => defaults::SESSIONS,
            Context::Search => defaults::SEARCH,
            Context::Tree => defaults::TREE,
            Context::Preview => defaults::PREVIEW,
            Context::Compare => defaults::COMPARE,
            Context::Editor => defaults::EDITOR,
        }
    }
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

const HELD: [(KeyModifiers, &str); 3] = [
    (KeyModifiers::CONTROL, "ctrl"),
    (KeyModifiers::ALT, "alt"),
    (KeyModifiers::SHIFT, "shift"),
];

const NAMED: [(KeyCode, &str); 15] = [
    (KeyCode::Up, "up"),
    (KeyCode::Down, "down"),
    (KeyCode::Left, "left"),
    (KeyCode::Right, "right"),
    (KeyCode::PageUp, "pageup"),
    (KeyCode::PageDown, "pagedown"),
    (KeyCode::Home, "home"),
    (KeyCode::End, "end"),
    (KeyCode::Enter, "enter"),
    (KeyCode::Esc, "esc"),
    (KeyCode::Tab, "tab"),
    (KeyCode::Backspace, "backspace"),
    (KeyCode::Delete, "delete"),
    (KeyCode::Insert, "insert"),
    (KeyCode::Char(' '), "space"),
];

impl Key {
    /// Makes a key. A letter includes its shift: `L`, and not shift and `l`.
    pub fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let held = HELD
            .iter()
            .fold(KeyModifiers::NONE, |all, (one, _)| all | *one);
        let mut modifiers = modifiers & held;
        let code = match code {
            KeyCode::Char(char) => {
                let shifted = modifiers.contains(KeyModifiers::SHIFT);
                modifiers.remove(KeyModifiers::SHIFT);
                if modifiers.contains(KeyModifiers::CONTROL) {
                    KeyCode::Char(char.to_ascii_lowercase())
                } else if shifted {
                    KeyCode::Char(char.to_uppercase().next().unwrap_or(char))
                } else {
                    KeyCode::Char(char)
                }
            }
            KeyCode::BackTab => {
                modifiers.insert(KeyModifiers::SHIFT);
                KeyCode::Tab
            }
            code => code,
        };
        Self { code, modifiers }
    }

    /// Parses names such as `ctrl+left`, `alt+x`, `L`, `shift+l`, `f2` and `?`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        while let Some((held, tail)) = rest.split_once('+').filter(|(_, tail)| !tail.is_empty()) {
            let held = held.to_ascii_lowercase();
            let (found, _) = HELD.iter().find(|(_, name)| *name == held)?;
            modifiers.insert(*found);
            rest = tail;
        }
        let lower = rest.to_ascii_lowercase();
        let named = NAMED.iter().find(|(_, name)| *name == lower);
        let function = || {
            lower
                .strip_prefix('f')?
                .parse()
                .ok()
                .filter(|n| (1..=12).contains(n))
        };
        let mut chars = rest.chars();
        let code = match (named, function(), chars.next(), chars.next()) {
            (Some((code, _)), ..) => *code,
            (_, Some(number), ..) => KeyCode::F(number),
            (_, _, Some(char), None) => KeyCode::Char(char),
            _ => return None,
        };
        Some(Self::new(code, modifiers))
    }

    /// Returns the character that the key types; `None` if it types none.
    pub fn text(self) -> Option<char> {
        match (self.code, self.modifiers) {
            (KeyCode::Char(char), KeyModifiers::NONE) => Some(char),
            _ => None,
        }
    }

    pub fn code(self) -> KeyCode {
        self.code
    }

    pub fn modifiers(self) -> KeyModifiers {
        self.modifiers
    }

    pub fn is(self, code: KeyCode) -> bool {
        self.code == code && self.modifiers.is_empty()
    }

    pub fn is_ctrl(self, char: char) -> bool {
        self.code == KeyCode::Char(char) && self.modifiers == KeyModifiers::CONTROL
    }

    /// Returns whether Ctrl or Alt is held, so that the key moves or deletes a whole word.
    pub fn by_word(self) -> bool {
        self.modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        Self::new(event.code, event.modifiers)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (held, name) in HELD {
            if self.modifiers.contains(held) {
                write!(f, "{name}+")?;
            }
        }
        if let Some((_, name)) = NAMED.iter().find(|(code, _)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            KeyCode::Char(char) => write!(f, "{char}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            code => write!(f, "{code:?}"),
        }
    }
}

/// The table `[keys]` of the configuration file: for each context, actions with their keys.
pub type Remaps = BTreeMap<String, BTreeMap<String, Keys>>;

/// One key, or several keys.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged)]
pub enum Keys {
    One(String),
    Several(Vec<String>),
}

/// The use of letters in the tree and in the list of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeySet {
    /// Letters are commands, and `/` begins a search.
    #[default]
    Letters,
    /// Letters begin a search, except capital letters and a few small ones.
    Typing,
}

/// The actions of keys.
#[derive(Debug, Clone)]
pub struct Keymap {
    /// Whether letters without an action begin a search.
    pub searches_by_letters: bool,
    actions: HashMap<(Context, Key), Action>,
    keys: BTreeMap<(Context, Action), Vec<Key>>,
}

impl Default for Keymap {
    fn default() -> Self {
        Self::of(KeySet::Letters)
    }
}

fn by_key(keys: &BTreeMap<(Context, Action), Vec<Key>>) -> HashMap<(Context, Key), Action> {
    let pairs = keys
        .iter()
        .flat_map(|((context, action), keys)| keys.iter().map(|key| ((*context, *key), *action)));
    pairs.collect()
}

impl Keymap {
    /// Returns the default keys of a key set.
    pub fn of(set: KeySet) -> Self {
        let is_kept = |context: Context, key: &Key| match key.text() {
            Some(letter @ 'a'..='z') if set == KeySet::Typing => {
                !matches!(context, Context::Tree | Context::Sessions)
                    || defaults::TYPING.contains(&letter)
            }
            _ => true,
        };
        let mut keys = BTreeMap::new();
        for context in Context::ALL {
            for (action, names) in context.defaults() {
                let parsed = names.iter().filter_map(|name| Key::parse(name));
                let kept = parsed.filter(|key| is_kept(context, key)).collect();
                keys.insert((context, *action), kept);
            }
        }
        Self {
            searches_by_letters: set == KeySet::Typing,
            actions: by_key(&keys),
            keys,
        }
    }

    /// Returns the keys of `set`, changed by `remaps`. If `remaps` names an action, the action loses its default keys.
    /// If `remaps` names a key, the key loses its default action. The error says what is wrong, and where.
    pub fn remapped(set: KeySet, remaps: &Remaps) -> Result<Self, String> {
        let mut keys = Self::of(set).keys;
        let mut given: HashMap<(Context, Key), Action> = HashMap::new();
        for (context_name, table) in remaps {
            let context = Context::ALL
                .into_iter()
                .find(|context| context.name() == context_name);
            let Some(context) = context else {
                let known = Context::ALL.map(Context::name).join(", ");
                return Err(format!(
                    "keys.{context_name}: no such context; the contexts are {known}"
                ));
            };
            for (action_name, names) in table {
                let place = format!("keys.{context_name}.{action_name}");
                let action = Action::ALL
                    .iter()
                    .find(|action| action.name() == action_name)
                    .filter(|action| keys.contains_key(&(context, **action)))
                    .ok_or_else(|| format!("{place}: no such action; `?` lists them"))?;
                let names = match names {
                    Keys::One(name) => std::slice::from_ref(name),
                    Keys::Several(names) => names,
                };
                let mut mine = Vec::new();
                for name in names {
                    let key = Key::parse(name)
                        .ok_or_else(|| format!("{place}: {name:?} is not a key like \"ctrl+x\""))?;
                    if let Some(other) = given.insert((context, key), *action)
                        && other != *action
                    {
                        return Err(format!("{place}: {key} is also given to {}", other.name()));
                    }
                    mine.push(key);
                }
                for ((_, other), theirs) in keys.iter_mut().filter(|((at, _), _)| *at == context) {
                    if other != action {
                        theirs.retain(|key| !mine.contains(key));
                    }
                }
                keys.insert((context, *action), mine);
            }
        }
        Ok(Self {
            searches_by_letters: set == KeySet::Typing,
            actions: by_key(&keys),
            keys,
        })
    }

    pub fn action(&self, context: Context, key: Key) -> Option<Action> {
        self.actions.get(&(context, key)).copied()
    }

    /// Returns the keys of `action`; empty if it has none in this context.
    pub fn keys(&self, context: Context, action: Action) -> &[Key] {
        self.keys.get(&(context, action)).map_or(&[], Vec::as_slice)
    }

    /// Returns the first key of `action`, for hints.
    pub fn hint(&self, context: Context, action: Action) -> String {
        let key = self.keys(context, action).first();
        key.map_or_else(|| "(no key)".to_owned(), Key::to_string)
    }

    /// Returns the actions of `context` that have a key, in the order of the help.
    pub fn bound(&self, context: Context) -> impl Iterator<Item = (Action, &[Key])> {
        Action::ALL.iter().filter_map(move |action| {
            let keys = self.keys(context, *action);
            (!keys.is_empty()).then_some((*action, keys))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_key_parses_and_has_one_action() {
        for context in Context::ALL {
            let mut seen = HashMap::new();
            for (action, names) in context.defaults() {
                for name in *names {
                    let key = Key::parse(name).unwrap_or_else(|| panic!("{name}"));
                    assert_eq!(key.to_string(), *name);
                    assert_eq!(seen.insert(key, action), None, "{name} in {context:?}");
                }
            }
        }
    }

    /// Each client once had its own keys for the same action.
    #[test]
    fn the_keys_of_the_tree_are_those_of_the_table_that_all_clients_share() {
        let table = include_str!("../../../../schema/keys.tsv");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split('\t').collect()).collect();
        let keymap = Keymap::default();
        for row in &rows {
            let keys: Vec<&str> = match row[2] {
                "-" => Vec::new(),
                keys => keys.split(' ').collect(),
            };
            if let Some(name) = row[0].strip_suffix('!') {
                for key in keys {
                    let action = keymap.action(Context::Tree, Key::parse(key).unwrap());
                    assert_eq!(action, None, "{key} is reserved for {name}");
                }
                continue;
            }
            let action = Action::ALL.iter().find(|action| action.name() == row[0]);
            let Some(action) = action else {
                assert!(keys.is_empty(), "{row:?}");
                continue;
            };
            let bound = keymap.keys(Context::Tree, *action);
            let bound: Vec<String> = bound.iter().map(Key::to_string).collect();
            assert_eq!(bound, keys, "{}", row[0]);
        }
        assert!(rows.len() > 30);
        // Once only the rows of the table were compared, so an action of the tree that the table lacked was not found.
        for (action, keys) in keymap.bound(Context::Tree) {
            let is_listed = rows.iter().any(|row| row[0] == action.name());
            assert!(is_listed, "{} has no row for {keys:?}", action.name());
        }
    }

    /// The keys that users of similar tools press without looking.
    #[test]
    fn common_keys_work_in_every_key_set() {
        for set in [KeySet::Letters, KeySet::Typing] {
            let keymap = Keymap::of(set);
            let action = |context, name: &str| keymap.action(context, Key::parse(name).unwrap());
            for (name, expected) in [
                ("ctrl+u", Action::FilterUserOnly),
                ("ctrl+o", Action::NextFilter),
                ("shift+l", Action::Label),
                ("esc", Action::Back),
                ("ctrl+c", Action::Quit),
                ("Q", Action::Quit),
                ("/", Action::Search),
                ("?", Action::Help),
                (":", Action::Command),
            ] {
                assert_eq!(
                    action(Context::Tree, name),
                    Some(expected),
                    "{name} in {set:?}"
                );
            }
            for context in Context::ALL {
                assert_eq!(action(context, "ctrl+c"), Some(Action::Quit), "{context:?}");
            }
            assert!(action(Context::Preview, "q") == Some(Action::Quit));
        }
        let quit = Key::parse("q").unwrap();
        let of = |set| Keymap::of(set).action(Context::Sessions, quit);
        assert_eq!(of(KeySet::Letters), Some(Action::Quit));
        assert_eq!(of(KeySet::Typing), None);
    }

    #[test]
    fn letters_contain_their_shift() {
        let typed = Key::new(KeyCode::Char('L'), KeyModifiers::SHIFT);
        assert_eq!(Some(typed), Key::parse("L"));
        assert_eq!(Some(typed), Key::parse("shift+l"));
        assert_eq!(
            Key::new(KeyCode::BackTab, KeyModifiers::SHIFT).to_string(),
            "shift+tab"
        );
        assert_eq!(
            Key::parse("+").map(|key| key.to_string()).as_deref(),
            Some("+")
        );
        assert_eq!(Key::parse("hyper+x"), None);
        assert_eq!(Key::parse("f13"), None);
    }

    fn remap(toml: &str) -> Result<Keymap, String> {
        let remaps: Remaps = toml::from_str(toml).unwrap();
        Keymap::remapped(KeySet::default(), &remaps)
    }

    #[test]
    fn a_remapped_key_loses_its_old_action() {
        let keymap = remap("[tree]\nundo = \"j\"\ncopy = [\"ctrl+y\", \"Y\"]").unwrap();
        let action = |name: &str| keymap.action(Context::Tree, Key::parse(name).unwrap());
        assert_eq!(action("j"), Some(Action::Undo));
        assert_eq!(action("u"), None);
        assert_eq!(action("down"), Some(Action::Down));
        assert_eq!(action("Y"), Some(Action::Copy));
        assert_eq!(keymap.hint(Context::Tree, Action::Undo), "j");
    }

    #[test]
    fn errors_name_the_mistake() {
        for (toml, error) in [
            ("[tre]\nundo = \"x\"", "keys.tre: no such context"),
            ("[tree]\nundoo = \"x\"", "keys.tree.undoo: no such action"),
            ("[tree]\ntrash = \"x\"", "keys.tree.trash: no such action"),
            (
                "[tree]\nundo = \"ctrl+\"",
                "keys.tree.undo: \"ctrl+\" is not a key",
            ),
            (
                "[tree]\ncopy = \"x\"\nundo = \"x\"",
                "x is also given to copy",
            ),
        ] {
            let found = remap(toml).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
    }
}
