//! The programs that the configuration names: hooks, extensions, and the summarizer's command.

use super::lines::{SettingLines, SettingOrigin};
use super::sections::{
    ExtensionMayName, ExtensionSection, HOOK_TIMEOUT_MS, HookSection, MAX_OUTPUT_BYTES,
    OnFailureName, SessionsName,
};
use anyhow::{Context, ensure};
use std::path::Path;
use std::time::Duration;
use treelined_core::terminal;
use treelined_files::os::program::{Environment, Executable, Program};
use treelined_service::extensions::{Extension, ExtensionMay, ExtensionSessions};
use treelined_service::hooks::{Hook, OnFailure};
use treelined_wire::BeforeEvent;
use treelined_wire::methods::NOTIFICATIONS;

/// The longest name of an extension, in characters.
const MAX_NAME: usize = 64;

pub(super) fn hooks(
    sections: &[HookSection],
    named_in: Option<&Path>,
    keys: &[String],
    lines: &mut SettingLines,
) -> anyhow::Result<Vec<Hook>> {
    let mut hooks = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        for event in &section.events {
            let silent = matches!(
                event.as_str(),
                "summary_delta"
                    | "progress"
                    | "events_lost"
                    | "command_invoked"
                    | "user_asked"
                    | "user_notified"
            );
            let is_known = NOTIFICATIONS.contains(&event.as_str()) && !silent;
            ensure!(
                is_known,
                "hooks[{index}].events: there is no event {event:?} for hooks"
            );
        }
        let events = section.events.iter().map(|event| event.as_str().into());
        let events = toml::Value::Array(events.collect());
        lines.push(("[hooks]", "events"), events, SettingOrigin::File);
        let of = "[hooks]";
        let timeout = lines.milliseconds((of, "timeout_ms"), section.timeout_ms, HOOK_TIMEOUT_MS);
        let max = section.max_output_bytes;
        let max = lines.number((of, "max_output_bytes"), None, max, MAX_OUTPUT_BYTES);
        let on_failure = on_failure(of, section.on_failure, lines);
        let named = (&section.argv[..], section.env.as_deref());
        let program = program(named, keys, timeout, max, (of, lines));
        debug_assert!(named_in.is_some(), "only a file names hooks");
        hooks.push(Hook {
            events: section.events.clone(),
            program: program.with_context(|| format!("hooks[{index}]"))?,
            on_failure,
            named_in: named_in.map(Path::to_owned).unwrap_or_default(),
        });
    }
    Ok(hooks)
}

fn on_failure(of: &str, name: Option<OnFailureName>, lines: &mut SettingLines) -> OnFailure {
    let default = OnFailureName::default();
    let shown = |name| format!("{name:?}").to_lowercase().into();
    match lines.pick((of, "on_failure"), None, name, default, shown) {
        OnFailureName::Cancel => OnFailure::Cancel,
        OnFailureName::Proceed => OnFailure::Proceed,
    }
}

pub(super) fn extensions(
    sections: &[ExtensionSection],
    named_in: Option<&Path>,
    keys: &[String],
    lines: &mut SettingLines,
) -> anyhow::Result<Vec<Extension>> {
    let mut extensions: Vec<Extension> = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let of = "[extensions]";
        let at = |key: &str| format!("extensions[{index}].{key}");
        let name = &section.name;
        let is_name = !name.trim().is_empty()
            && name.chars().count() <= MAX_NAME
            && !name.contains(terminal::is_control);
        ensure!(
            is_name,
            "{}: must have 1 to {MAX_NAME} characters and no control characters",
            at("name")
        );
        let is_new = extensions.iter().all(|other| other.name != *name);
        ensure!(is_new, "{}: another extension has this name", at("name"));
        lines.push((of, "name"), name.as_str().into(), SettingOrigin::File);
        let sessions = lines.pick(
            (of, "sessions"),
            None,
            section.sessions,
            SessionsName::default(),
            |name| format!("{name:?}").to_lowercase().into(),
        );
        let default = ExtensionMayName::default();
        let may = lines.pick((of, "may"), None, section.may, default, |name| {
            format!("{name:?}").to_lowercase().into()
        });
        let mut answers = Vec::new();
        for event in section.answers.iter().flatten() {
            let known = BeforeEvent::ALL.iter().find(|known| known.name() == event);
            answers.push(*known.with_context(|| {
                format!("{}: there is no event {event:?} to answer", at("answers"))
            })?);
        }
        let shown = answers.iter().map(|event| event.name().into()).collect();
        let origin = given(section.answers.is_some());
        lines.push((of, "answers"), toml::Value::Array(shown), origin);
        let on_failure = on_failure(of, section.on_failure, lines);
        let named = (&section.argv[..], section.env.as_deref());
        let what = ("extension", name.as_str());
        let executable = executable(named, keys, what, (of, lines));
        debug_assert!(named_in.is_some(), "only a file names extensions");
        extensions.push(Extension {
            name: name.clone(),
            executable: executable.with_context(|| format!("extensions[{index}]"))?,
            sessions: match sessions {
                SessionsName::Own => ExtensionSessions::Own,
                SessionsName::All => ExtensionSessions::All,
            },
            may: match may {
                ExtensionMayName::Read => ExtensionMay::Read,
                ExtensionMayName::Append => ExtensionMay::Append,
                ExtensionMayName::All => ExtensionMay::All,
            },
            answers,
            on_failure,
            named_in: named_in.map(Path::to_owned).unwrap_or_default(),
        });
    }
    Ok(extensions)
}

fn given(is_given: bool) -> SettingOrigin {
    match is_given {
        true => SettingOrigin::File,
        false => SettingOrigin::Default,
    }
}

/// Reads the section of a program that runs until it exits.
pub(super) fn program(
    named: (&[String], Option<&[String]>),
    keys: &[String],
    timeout: Duration,
    max_output_bytes: u64,
    (of, lines): (&str, &mut SettingLines),
) -> anyhow::Result<Program> {
    let what = match of {
        "[hooks]" => "hook",
        _ => "summarizer's program",
    };
    Ok(Program {
        executable: executable(named, keys, (what, ""), (of, lines))?,
        timeout,
        max_output_bytes: usize::try_from(max_output_bytes)?,
    })
}

/// Reads the section of an executable. If the executable cannot run, the problem is recorded with its kind and name
/// (or the name of its file, if `name` is empty); the error is reported when the executable is used.
fn executable(
    (argv, env): (&[String], Option<&[String]>),
    keys: &[String],
    (what, name): (&str, &str),
    (of, lines): (&str, &mut SettingLines),
) -> anyhow::Result<Executable> {
    ensure!(!argv.is_empty(), "{of}.argv: names no program");
    let origin = given(env.is_some());
    let env = env.unwrap_or_default();
    for name in env {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        ensure!(is_name, "{of}.env: {name:?} names no variable");
    }
    for (key, values, origin) in [("env", env, origin), ("argv", argv, SettingOrigin::File)] {
        let values = values.iter().map(|value| value.as_str().into());
        lines.push((of, key), toml::Value::Array(values.collect()), origin);
    }
    let executable = Executable {
        argv: argv.to_vec(),
        environment: Environment {
            named: env.to_vec(),
            keys: keys.to_vec(),
        },
    };
    if let Err(why) = executable.check() {
        let name = if name.is_empty() {
            executable.name()
        } else {
            name
        };
        lines.note(format!("the {what} {name} fails: {why}"));
    }
    Ok(executable)
}
