//! `register_renderer` (protocol.md §14).

use crate::rpc::caller::Caller;
use serde_json::json;
use treelined_core::error::{Error, Result};
use treelined_pages::renderers::{self, BadRenderer, MAX_RENDERERS, Renderer};
use treelined_wire as wire;

pub(in crate::rpc) fn register_renderer(
    caller: &Caller<'_>,
    params: wire::RegisterRendererParams,
) -> Result<wire::RegisterRendererResult> {
    let wire::RegisterRendererParams {
        custom_type,
        preview,
        icon,
        style,
    } = params;
    let of_type = |why: String| Error::invalid_params("customType", why);
    renderers::check_type(&custom_type).map_err(of_type)?;
    let renderer = Renderer::new(&preview, icon, style).map_err(refusal)?;
    let (offers, owner) = (&caller.daemon().offers, caller.connection().id);
    let is_registered =
        offers.change_renderers(|renderers| renderers.register(owner, &custom_type, renderer));
    match is_registered {
        true => Ok(wire::RegisterRendererResult {}),
        false => Err(of_type(format!(
            "a connection has at most {MAX_RENDERERS} renderers"
        ))),
    }
}

fn refusal(bad: BadRenderer) -> Error {
    match bad {
        BadRenderer::Icon(why) => Error::invalid_params("icon", why),
        BadRenderer::Template(bad) => {
            let details =
                json!({ "field": "preview", "reason": bad.reason, "position": bad.position });
            Error::invalid_params("preview", bad.to_string()).with_details(details)
        }
    }
}
