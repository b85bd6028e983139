//! `[renderers."todo"]`: the look of custom messages.

use super::lines::{self, SettingLines, SettingOrigin};
use anyhow::anyhow;
use serde::Deserialize;
use std::collections::BTreeMap;
use treelined_core::view::RowStyle;
use treelined_pages::renderers::{self, BadRenderer, Renderer};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RendererSection {
    preview: String,
    icon: Option<String>,
    style: Option<RowStyle>,
}

/// The renderers, by custom type.
pub(super) fn renderers(
    sections: &BTreeMap<String, RendererSection>,
    lines: &mut SettingLines,
) -> anyhow::Result<BTreeMap<String, Renderer>> {
    let mut all = BTreeMap::new();
    for (custom_type, section) in sections {
        let of = format!("renderers.{}", lines::key(custom_type));
        renderers::check_type(custom_type).map_err(|why| anyhow!("{of}: {why}"))?;
        let RendererSection {
            preview,
            icon,
            style,
        } = section;
        let members = [
            ("preview", Some(preview.as_str())),
            ("icon", icon.as_deref()),
            ("style", style.map(RowStyle::name)),
        ];
        for (key, value) in members {
            if let Some(value) = value {
                lines.push((&of, key), value.into(), SettingOrigin::File);
            }
        }
        let renderer = Renderer::new(preview, icon.clone(), *style);
        let renderer = renderer.map_err(|bad| match bad {
            BadRenderer::Template(bad) => anyhow!("{of}.preview: {bad}"),
            BadRenderer::Icon(why) => anyhow!("{of}.icon: {why}"),
        })?;
        all.insert(custom_type.clone(), renderer);
    }
    Ok(all)
}
