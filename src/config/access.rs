//! `[access.NAME]`: the sockets and tokens of limited connections (protocol.md §10.7).

use super::lines::{SettingLines, SettingOrigin, key};
use super::sections::{AccessSection, MayName};
use anyhow::{Context, anyhow, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use treelined_service::access::{Access, NamedAccess};

/// Longest name, in bytes.
const MAX_NAME: usize = 64;

/// The accesses of the file. Paths are relative to its `folder`.
pub(super) fn access(
    sections: &BTreeMap<String, AccessSection>,
    folder: Option<&Path>,
    lines: &mut SettingLines,
) -> anyhow::Result<Vec<NamedAccess>> {
    let folder = folder.unwrap_or(Path::new(""));
    let absolute = |path: &Path| std::path::absolute(folder.join(path));
    let mut all: Vec<NamedAccess> = Vec::new();
    for (name, section) in sections {
        let of = format!("access.{}", key(name));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        ensure!(
            (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain),
            "{of}: the name must have 1 to {MAX_NAME} letters, digits, `-` and `_`"
        );
        let path = |key: &str, given: &Option<PathBuf>| {
            let given = given.as_deref().map(absolute).transpose();
            given.with_context(|| format!("{of}.{key}"))
        };
        let socket = path("socket", &section.socket)?;
        let token_file = path("token_file", &section.token_file)?;
        let is_reached = socket.is_some() || token_file.is_some();
        ensure!(is_reached, "{of}: needs `socket`, `token_file` or both");
        let is_new = |other: &NamedAccess| socket.is_none() || other.socket != socket;
        ensure!(
            all.iter().all(is_new),
            "{of}.socket: another access has this socket"
        );
        let is_new = |other: &NamedAccess| token_file.is_none() || other.token_file != token_file;
        ensure!(
            all.iter().all(is_new),
            "{of}.token_file: another access has this file"
        );
        let directories = section.directories.iter().map(|path| absolute(path));
        let directories = directories.collect::<Result<Vec<PathBuf>, _>>();
        let directories = directories.with_context(|| format!("{of}.directories"))?;
        let resolved = Access::resolve(directories.iter().map(PathBuf::as_path))
            .map_err(|why| anyhow!("{of}.directories: {why}"))?;
        for (key, path) in [("socket", &socket), ("token_file", &token_file)] {
            if let Some(path) = path {
                let shown = path.display().to_string();
                lines.push((&of, key), shown.into(), SettingOrigin::File);
            }
        }
        let shown = resolved
            .iter()
            .map(|path| path.display().to_string().into());
        let shown = toml::Value::Array(shown.collect());
        lines.push((&of, "directories"), shown, SettingOrigin::File);
        let default = MayName::default();
        let may = lines.pick((&of, "may"), None, section.may, default, |name| {
            format!("{name:?}").to_lowercase().into()
        });
        let redacts = lines.pick((&of, "redact"), None, section.redact, true, Into::into);
        all.push(NamedAccess {
            name: name.clone(),
            socket,
            token_file,
            access: Access {
                appends: may == MayName::Append,
                directories: Some(resolved),
                redacts,
            },
        });
    }
    Ok(all)
}
