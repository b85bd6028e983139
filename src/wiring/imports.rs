//! The importer of the daemon. It uses the crate `treelined-import`.

use super::secrets;
use std::collections::BTreeMap;
use std::path::PathBuf;
use treelined_core::error::Result;
use treelined_import::importer::limits::Limits;
use treelined_import::importer::repeat::LastImport;
use treelined_import::importer::run::{Import, ImportRequest};
use treelined_service::parts::{ImportRun, Importer};

/// Imports conversations. If nothing has changed since an import that found nothing new, the report of that import is
/// returned again.
#[derive(Default)]
pub(crate) struct Imports(LastImport);

impl Importer for Imports {
    fn import(&self, run: &ImportRun<'_>) -> Result<Vec<u8>> {
        let params = run.params;
        let paths = params.paths.iter().flatten();
        self.0.run(&Import {
            store: run.store,
            session_dir: run.store.path(),
            request: &ImportRequest {
                from: params.from.unwrap_or_default().tool(),
                paths: paths.map(PathBuf::from).collect(),
                cwd: params.cwd.clone(),
                since: run.since,
                is_dry_run: params.dry_run.unwrap_or_default(),
                split: params.split.unwrap_or_default(),
                is_final: params.is_final.unwrap_or_default(),
                limits: match params.large.unwrap_or_default() {
                    true => Limits::NONE,
                    false => Limits::default(),
                },
                has_ended: false,
                git: BTreeMap::new(),
                redact: params.redact,
                again: params.again.clone(),
            },
            now: run.now,
            cancel: run.cancel,
            progress: run.progress,
            redact: &secrets::redact,
        })
    }
}
