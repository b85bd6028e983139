//! The settings in force, in the form of a configuration file.
//!
//! This module writes the text: it escapes control characters in strings, and makes them visible in
//! comments.

use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;
use treelined_core::terminal;

/// The source of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SettingOrigin {
    #[serde(rename = "commandLine")]
    Flag,
    Environment,
    File,
    Default,
}

/// Settings, in the order in which they are shown.
#[derive(Default, Serialize)]
pub(super) struct SettingLines(Vec<SettingLine>);

#[derive(Serialize)]
struct SettingLine {
    /// The section of the setting; empty for settings before all sections.
    section: String,
    key: String,
    value: toml::Value,
    #[serde(rename = "source")]
    origin: SettingOrigin,
    /// A problem with the setting, in words for users.
    #[serde(rename = "problem", skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// How the setting is written now, if it has an old name.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl SettingLines {
    pub(super) fn push(
        &mut self,
        (of, key): (&str, &str),
        value: toml::Value,
        origin: SettingOrigin,
    ) {
        self.0.push(SettingLine {
            section: of.to_owned(),
            key: key.to_owned(),
            value,
            origin,
            note: None,
            hint: None,
        });
    }

    /// Adds a problem to the last setting.
    pub(super) fn note(&mut self, what: String) {
        if let Some(line) = self.0.last_mut() {
            line.note = Some(what);
        }
    }

    /// Adds a hint to the last setting.
    pub(super) fn hint(&mut self, what: String) {
        if let Some(line) = self.0.last_mut() {
            line.hint = Some(what);
        }
    }

    pub(super) fn hints(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|line| line.hint.as_deref())
    }

    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|line| line.note.as_deref())
    }

    pub(super) fn pick<T: Copy>(
        &mut self,
        at: (&str, &str),
        flag: Option<T>,
        file: Option<T>,
        default: T,
        shown: impl FnOnce(T) -> toml::Value,
    ) -> T {
        let (value, origin) = match (flag, file) {
            (Some(value), _) => (value, SettingOrigin::Flag),
            (None, Some(value)) => (value, SettingOrigin::File),
            (None, None) => (default, SettingOrigin::Default),
        };
        self.push(at, shown(value), origin);
        value
    }

    pub(super) fn number(
        &mut self,
        at: (&str, &str),
        flag: Option<u64>,
        file: Option<u64>,
        default: u64,
    ) -> u64 {
        let shown = |value| toml::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        self.pick(at, flag, file, default, shown)
    }

    pub(super) fn milliseconds(
        &mut self,
        at: (&str, &str),
        file: Option<u64>,
        default: u64,
    ) -> Duration {
        Duration::from_millis(self.number(at, None, file, default))
    }

    /// Removes the settings of a section that have no effect. With `key`, removes only this setting.
    pub(super) fn remove(&mut self, section: &str, key: Option<&str>) {
        let is_other =
            |line: &SettingLine| line.section != section || key.is_some_and(|key| line.key != key);
        self.0.retain(is_other);
    }

    /// The value of a setting as text, and whether it is the default.
    pub(super) fn value(&self, section: &str, key: &str) -> Option<(String, bool)> {
        let is_wanted = |line: &&SettingLine| line.section == section && line.key == key;
        let line = self.0.iter().find(is_wanted)?;
        let text = match &line.value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some((text, line.origin == SettingOrigin::Default))
    }

    /// The settings without a section, then the settings of each section together. In TOML each table occurs only once,
    /// and all lines below its name belong to it.
    fn by_section(&self) -> Vec<&SettingLine> {
        let mut sections = vec![""];
        for line in &self.0 {
            if !sections.contains(&&*line.section) {
                sections.push(&line.section);
            }
        }
        let place = |line: &&SettingLine| sections.iter().position(|of| *of == line.section);
        let mut lines: Vec<&SettingLine> = self.0.iter().collect();
        lines.sort_by_key(place);
        lines
    }

    pub(super) fn describe(&self, text: &mut String) {
        let mut section = "";
        for line in self.by_section() {
            let of = &line.section;
            // Each hook and each extension is its own table, which begins with this key.
            let begins = [("[hooks]", "events"), ("[extensions]", "name")];
            if of != section || begins.contains(&(of, &line.key)) {
                let _ = write!(text, "\n[{of}]\n");
                section = of;
            }
            let origin = match line.origin {
                SettingOrigin::Flag => "command line",
                SettingOrigin::Environment => "environment",
                SettingOrigin::File => "file",
                SettingOrigin::Default => "default",
            };
            let (key, value) = (key(&line.key), value(&line.value));
            let _ = writeln!(text, "{key} = {value} # {origin}");
            for note in line.note.iter().chain(&line.hint) {
                text.push_str(&comment(note));
            }
        }
    }
}

/// A comment on a separate line.
pub(super) fn comment(text: &str) -> String {
    format!("# {}\n", terminal::line(text))
}

/// A key, quoted if necessary.
pub(super) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        false => string(name),
    }
}

fn value(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => string(text),
        toml::Value::Array(values) => {
            let values: Vec<String> = values.iter().map(self::value).collect();
            format!("[{}]", values.join(", "))
        }
        other => other.to_string(),
    }
}

/// A string of TOML in double quotes.
fn string(text: &str) -> String {
    let mut out = "\"".to_owned();
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            char if terminal::is_control(char) => {
                let _ = write!(out, "\\u{:04X}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `[access.NAME]` is read before some settings without a section. Such settings were once printed below `[]`.
    #[test]
    fn settings_without_a_section_come_first() {
        let mut lines = SettingLines::default();
        for (of, key) in [("a", "one"), ("", "two"), ("b", "three"), ("a", "four")] {
            lines.push((of, key), key.into(), SettingOrigin::File);
        }
        let mut shown = String::new();
        lines.describe(&mut shown);
        let read: toml::Table = shown.parse().unwrap();
        let expected = "two = 'two'\n[a]\none = 'one'\nfour = 'four'\n[b]\nthree = 'three'\n";
        assert_eq!(read, expected.parse().unwrap(), "{shown}");
    }

    proptest! {
        /// Keys and values were once printed as Rust strings or raw, with control characters that a terminal obeys, and
        /// partly as text that no configuration file may contain.
        #[test]
        fn described_settings_read_back_and_have_no_controls(
            (name, text) in (any::<String>(), any::<String>()),
        ) {
            prop_assume!(text != "s", "a key of the section occurs once");
            let mut lines = SettingLines::default();
            let of = format!("section.{}", key(&name));
            let array = toml::Value::Array(vec![text.as_str().into(), "x".into()]);
            lines.push((&of, &text), array, SettingOrigin::File);
            lines.push((&of, "s"), name.as_str().into(), SettingOrigin::File);
            lines.note(text.clone());
            let mut shown = comment(&text);
            lines.describe(&mut shown);
            let is_shown = |char| char == '\n' || !terminal::is_control(char);
            prop_assert!(shown.chars().all(is_shown), "{shown}");
            let read: toml::Table = shown.parse().map_err(|error| {
                TestCaseError::fail(format!("{error}: {shown}"))
            })?;
            let section = &read["section"][&name];
            prop_assert_eq!(section["s"].as_str(), Some(name.as_str()));
            prop_assert_eq!(section[&text][0].as_str(), Some(text.as_str()));
        }
    }
}
