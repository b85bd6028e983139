//! The programs that the configuration names: hooks, and the summarizer's command.

use super::lines::{SettingLines, SettingOrigin};
use super::{HOOK_TIMEOUT_MS, HookSection, MAX_OUTPUT_BYTES, OnFailureName};
use crate::hooks::{Hook, OnFailure};
use crate::os::program::{Environment, Program};
use crate::schema;
use anyhow::{Context, ensure};
use std::path::Path;
use std::time::Duration;

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
            let is_known = schema::notification_names().any(|name| name == event) && !silent;
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
        let on_failure = lines.pick(
            (of, "on_failure"),
            None,
            section.on_failure,
            OnFailureName::default(),
            |name| format!("{name:?}").to_lowercase().into(),
        );
        let named = (&section.argv[..], section.env.as_deref());
        let program = program(named, keys, timeout, max, (of, lines));
        debug_assert!(named_in.is_some(), "only a file names hooks");
        hooks.push(Hook {
            events: section.events.clone(),
            program: program.with_context(|| format!("hooks[{index}]"))?,
            on_failure: match on_failure {
                OnFailureName::Cancel => OnFailure::Cancel,
                OnFailureName::Proceed => OnFailure::Proceed,
            },
            named_in: named_in.map(Path::to_owned).unwrap_or_default(),
        });
    }
    Ok(hooks)
}

/// Reads a program. If it cannot run, the problem is recorded; the program fails when it is used.
pub(super) fn program(
    (argv, env): (&[String], Option<&[String]>),
    keys: &[String],
    timeout: Duration,
    max_output_bytes: u64,
    (of, lines): (&str, &mut SettingLines),
) -> anyhow::Result<Program> {
    ensure!(!argv.is_empty(), "{of}.argv: names no program");
    let origin = env.map_or(SettingOrigin::Default, |_| SettingOrigin::File);
    let env = env.unwrap_or_default();
    for name in env {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        ensure!(is_name, "{of}.env: {name:?} names no variable");
    }
    for (key, values, origin) in [("env", env, origin), ("argv", argv, SettingOrigin::File)] {
        let values = values.iter().map(|value| value.as_str().into());
        lines.push((of, key), toml::Value::Array(values.collect()), origin);
    }
    let program = Program {
        argv: argv.to_vec(),
        environment: Environment {
            named: env.to_vec(),
            keys: keys.to_vec(),
        },
        timeout,
        max_output_bytes: usize::try_from(max_output_bytes)?,
    };
    if let Err(why) = program.check() {
        let what = match of {
            "[hooks]" => "hook",
            _ => "summarizer's program",
        };
        let name = program.name();
        lines.note(format!("the {what} {name} fails: {why}"));
    }
    Ok(program)
}
