//! The replacement of secrets in imports, by `treelined-pages`.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use treelined_core::error::{Error, Kind, Result};
use treelined_import::importer::redaction::Redact;
use treelined_pages::redact::{RedactEntry, Redactor};

struct Secrets(Redactor);

/// The replacer of secrets; made once.
pub(crate) fn redact() -> Result<Arc<dyn Redact>> {
    static MADE: OnceLock<Option<Arc<Secrets>>> = OnceLock::new();
    let made = MADE.get_or_init(|| Redactor::new(true, None).ok().map(Secrets).map(Arc::new));
    match made {
        Some(made) => Ok(Arc::clone(made) as Arc<dyn Redact>),
        None => Err(Error::new(
            Kind::InternalError,
            "the rules of secrets are invalid",
        )),
    }
}

impl Redact for Secrets {
    fn entry<'t>(&self, entry: &'t [u8]) -> Cow<'t, [u8]> {
        self.0.entry(entry, &mut |_, _| {})
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.text(text, &mut |_, _| {})
    }
}
