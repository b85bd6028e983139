//! The commands that connections offer (protocol.md §12): their names, their limits and their owners.

use serde_json::json;
use std::collections::BTreeMap;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::ConnectionId;
use treelined_core::suggest;

/// The most commands of one connection.
pub(crate) const MAX_COMMANDS: usize = 64;
/// The most bytes of a name.
const MAX_NAME_BYTES: usize = 64;
/// The most characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 1000;
/// The most characters of a hint.
const MAX_HINT_CHARS: usize = 200;
/// The commands that clients have themselves, one on each line.
const BUILT_IN: &str = include_str!("commands.txt");

/// A command of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedCommand {
    pub owner: ConnectionId,
    /// The description for people.
    pub description: Option<String>,
    /// The hint about the argument, for people.
    pub argument_hint: Option<String>,
}

impl OfferedCommand {
    /// Fails with `invalidParams` if a text is too long.
    fn check(&self) -> Result<()> {
        let texts = [
            ("description", &self.description, MAX_DESCRIPTION_CHARS),
            ("argumentHint", &self.argument_hint, MAX_HINT_CHARS),
        ];
        for (field, text, max) in texts {
            // A text has at most as many characters as bytes, so most texts need no count of characters.
            let is_too_long = |text: &String| text.len() > max && text.chars().count() > max;
            if text.as_ref().is_some_and(is_too_long) {
                let reason = format!("must have at most {max} characters");
                return Err(Error::invalid_params(field, reason));
            }
        }
        Ok(())
    }
}

/// The commands of all connections, by name.
#[derive(Debug, Default)]
pub(crate) struct OfferedCommands(BTreeMap<String, OfferedCommand>);

impl OfferedCommands {
    /// Offers a command. Replaces the owner's command with the same name.
    pub(crate) fn register(&mut self, name: &str, command: OfferedCommand) -> Result<()> {
        check_name(name)?;
        command.check()?;
        let owner = command.owner;
        let is_taken = self.0.get(name).is_some_and(|other| other.owner != owner);
        if is_taken || BUILT_IN.lines().any(|built_in| built_in == name) {
            let message = match is_taken {
                true => format!("another connection offers the command {name:?}"),
                false => format!("clients have their own command {name:?}"),
            };
            let details = json!({ "name": name });
            return Err(Error::new(Kind::CommandExists, message).with_details(details));
        }
        let own = self
            .0
            .iter()
            .filter(|(of, other)| other.owner == owner && *of != name);
        if own.count() >= MAX_COMMANDS {
            let reason = format!("a connection has at most {MAX_COMMANDS} commands");
            return Err(Error::invalid_params("name", reason));
        }
        self.0.insert(name.to_owned(), command);
        Ok(())
    }

    /// Removes a command. Fails with `commandNotFound` if the connection has no command with this name.
    pub(crate) fn unregister(&mut self, name: &str, owner: ConnectionId) -> Result<()> {
        match self.0.get(name) {
            Some(command) if command.owner == owner => {
                self.0.remove(name);
                Ok(())
            }
            _ => Err(self.not_found(name)),
        }
    }

    /// Removes all commands of a connection.
    pub(crate) fn remove_all(&mut self, owner: ConnectionId) {
        self.0.retain(|_, command| command.owner != owner);
    }

    /// The commands, sorted by name.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&str, &OfferedCommand)> {
        self.0
            .iter()
            .map(|(name, command)| (name.as_str(), command))
    }

    /// The owner of a command. Fails with `commandNotFound` if no connection offers a command with this name.
    pub(crate) fn owner(&self, name: &str) -> Result<ConnectionId> {
        let command = self.0.get(name).ok_or_else(|| self.not_found(name))?;
        Ok(command.owner)
    }

    fn not_found(&self, name: &str) -> Error {
        let shown: String = name.chars().take(MAX_NAME_BYTES).collect();
        let meant = suggest::hint(&shown, self.0.keys().map(String::as_str));
        Error::new(
            Kind::CommandNotFound,
            format!("no command {shown:?} is offered{meant}"),
        )
        .with_details(json!({ "name": shown }))
    }
}

fn check_name(name: &str) -> Result<()> {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= MAX_NAME_BYTES
        && name.bytes().all(is_allowed);
    match is_name {
        true => Ok(()),
        false => {
            let reason = "must be a letter from a to z, then at most 63 of a-z, 0-9, _ and -";
            Err(Error::invalid_params("name", reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(owner: u64) -> OfferedCommand {
        OfferedCommand {
            owner: ConnectionId(owner),
            description: None,
            argument_hint: None,
        }
    }

    #[track_caller]
    fn check_refused(result: Result<()>, kind: Kind, member: &str, value: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, kind);
        assert_eq!(error.details.unwrap()[member], value);
    }

    #[test]
    fn a_name_is_a_letter_and_at_most_63_letters_digits_and_marks() {
        let mut commands = OfferedCommands::default();
        for name in ["a", "todo", "x-1_y", &"a".repeat(64)] {
            commands.register(name, of(1)).unwrap();
        }
        for name in [
            "",
            "1a",
            "_a",
            "-a",
            "A",
            "aB",
            "a b",
            "ä",
            "a.b",
            "/a",
            &"a".repeat(65),
        ] {
            check_refused(
                commands.register(name, of(1)),
                Kind::InvalidParams,
                "field",
                "name",
            );
        }
    }

    #[test]
    fn a_name_belongs_to_one_connection_and_never_to_a_built_in_command() {
        let mut commands = OfferedCommands::default();
        commands.register("todo", of(1)).unwrap();
        check_refused(
            commands.register("todo", of(2)),
            Kind::CommandExists,
            "name",
            "todo",
        );
        for name in BUILT_IN.lines() {
            check_refused(
                commands.register(name, of(1)),
                Kind::CommandExists,
                "name",
                name,
            );
        }
        let described = OfferedCommand {
            description: Some("again".into()),
            ..of(1)
        };
        commands.register("todo", described.clone()).unwrap();
        assert_eq!(commands.list().collect::<Vec<_>>(), [("todo", &described)]);
        check_refused(
            commands.unregister("todo", ConnectionId(2)),
            Kind::CommandNotFound,
            "name",
            "todo",
        );
        commands.remove_all(ConnectionId(1));
        commands.register("todo", of(2)).unwrap();
        assert_eq!(commands.owner("todo").unwrap(), ConnectionId(2));
    }

    #[test]
    fn the_number_of_commands_and_their_texts_are_limited() {
        let mut commands = OfferedCommands::default();
        for number in 0..MAX_COMMANDS {
            commands.register(&format!("c{number}"), of(1)).unwrap();
        }
        check_refused(
            commands.register("one-more", of(1)),
            Kind::InvalidParams,
            "field",
            "name",
        );
        commands.register("c0", of(1)).unwrap();
        commands.register("one-more", of(2)).unwrap();
        let long = OfferedCommand {
            description: Some("ä".repeat(1001)),
            ..of(2)
        };
        check_refused(
            commands.register("x", long),
            Kind::InvalidParams,
            "field",
            "description",
        );
        let long = OfferedCommand {
            argument_hint: Some("ä".repeat(201)),
            ..of(2)
        };
        check_refused(
            commands.register("x", long),
            Kind::InvalidParams,
            "field",
            "argumentHint",
        );
    }
}
