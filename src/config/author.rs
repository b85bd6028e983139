//! `[author]`: the writer that entries name (session-file.md §1.4).

use super::flags::EnvironmentLookup;
use super::lines::{SettingLines, SettingOrigin};
use super::sections::AuthorSection;
use anyhow::ensure;
use treelined_core::author::{Author, MOST_CHARS, short};
use treelined_core::id::random_token;
use treelined_files::clock::SystemSource;
use treelined_files::os::process;

const SECTION: &str = "author";

/// The writer for the entries of a daemon of this process. By default it is the user of the system on this machine.
pub(super) fn author(
    section: Option<AuthorSection>,
    environment: EnvironmentLookup<'_>,
    lines: &mut SettingLines,
) -> anyhow::Result<Author> {
    let section = section.unwrap_or_default();
    let mut given = |key: &str, value: Option<String>| {
        if let Some(value) = &value {
            ensure!(
                !value.is_empty() && short(value) == *value,
                "{SECTION}.{key}: must have 1 to {MOST_CHARS} characters, no control characters, and no blanks at its ends"
            );
            lines.push((SECTION, key), value.as_str().into(), SettingOrigin::File);
        }
        Ok(value)
    };
    let name = given("name", section.name)?.unwrap_or_else(|| user(environment));
    let host = given("host", section.host)?.unwrap_or_else(process::host_name);
    Ok(Author::new(&name, &host, random_token(&SystemSource)))
}

/// The name of the user, or the number if the environment has no name.
fn user(environment: EnvironmentLookup<'_>) -> String {
    let names = ["USER", "LOGNAME"].into_iter().filter_map(environment);
    let mut names = names.map(|name| short(&name.to_string_lossy()));
    let name = names.find(|name| !name.is_empty());
    name.unwrap_or_else(|| process::user().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn named(text: &str, user: Option<&str>) -> anyhow::Result<Author> {
        let section = (!text.is_empty()).then(|| toml::from_str(text).unwrap());
        let environment = |name: &str| user.filter(|_| name == "USER").map(OsString::from);
        author(section, &environment, &mut SettingLines::default())
    }

    #[test]
    fn an_author_is_the_user_on_this_machine_unless_the_settings_name_another() {
        let own = named("", Some("ada\n")).unwrap();
        assert_eq!(own.name, "ada");
        assert_eq!(own.host, short(&process::host_name()));
        let nobody = named("", None).unwrap();
        assert_eq!(nobody.name, process::user().to_string());
        assert_ne!(own.daemon, nobody.daemon);
        let given = named("name = \"Ada L.\"\nhost = \"desk\"", Some("ada")).unwrap();
        assert_eq!((&*given.name, &*given.host), ("Ada L.", "desk"));
    }

    #[test]
    fn names_that_would_be_changed_are_refused() {
        let long = "x".repeat(MOST_CHARS + 1);
        for name in ["", " ", " a", "a\\nb", "a\\u001B[2J", &long] {
            let error = named(&format!("name = \"{name}\""), None).unwrap_err();
            assert!(error.to_string().starts_with("author.name: "), "{error}");
        }
    }
}
