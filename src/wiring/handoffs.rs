//! The part of the daemon that hands conversations over. It uses the crate `treelined-handoff`.

use treelined_core::error::{Error, Result};
use treelined_files::os::program::is_on_path;
use treelined_handoff::{
    Loss, Losses, NeutralPath, Options, PathMessage, Prepared, Request, place, prepare,
};
use treelined_service::parts::{Handoff, HandoffRun, PreparedHandoff};
use treelined_wire::{
    ContinueIn, ContinueSessionParams, ContinueSessionResult, Durability, HandedFile,
    HandedThoughts, HandoffLoss, HandoffLossKind,
};

/// Hands conversations over.
#[derive(Default)]
pub(crate) struct Handoffs;

impl Handoff for Handoffs {
    fn prepare(&self, run: HandoffRun<'_>) -> Result<PreparedHandoff> {
        let params = run.params;
        if params.last == Some(0) {
            return Err(Error::invalid_params("last", "must be at least 1"));
        }
        let prepared = prepare(Request {
            tool: params.tool.agent(),
            session_id: run.session_id,
            name: run.name,
            cwd: params.cwd.as_deref().unwrap_or(run.cwd),
            path: run.path,
            summary: run.summary.as_deref(),
            learned: run.learned.as_deref(),
            last: last(params),
            keeps_thoughts: keeps_thoughts(params),
            limit: run.limit,
            session_dir: run.store.path(),
            source: run.source,
            environment: &|name| std::env::var_os(name),
        })?;
        let is_remembered = params.dry_run != Some(true) && params.tool != ContinueIn::Text;
        Ok(answer(prepared, params.tool, is_remembered))
    }

    fn tokens(&self, params: &ContinueSessionParams, path: &[PathMessage]) -> u64 {
        let options = Options {
            tool: params.tool.agent(),
            last: last(params),
            keeps_thoughts: keeps_thoughts(params),
            summary: None,
        };
        NeutralPath::of(path, options).tokens()
    }
}

fn last(params: &ContinueSessionParams) -> Option<usize> {
    params.last.and_then(|last| usize::try_from(last).ok())
}

fn keeps_thoughts(params: &ContinueSessionParams) -> bool {
    params.thinking == Some(HandedThoughts::Text)
}

fn answer(prepared: Prepared, tool: ContinueIn, is_remembered: bool) -> PreparedHandoff {
    let files = prepared.files;
    let made = files.iter().map(|file| HandedFile {
        path: file.path.display().to_string(),
        bytes: file.bytes.len() as u64,
    });
    PreparedHandoff {
        result: ContinueSessionResult {
            continuation_id: is_remembered.then_some(prepared.id),
            tool,
            native_id: prepared.native_id,
            files: made.collect(),
            missing: missing(&prepared.steps),
            steps: prepared.steps,
            cwd: prepared.cwd,
            prompt: prepared.prompt,
            text: prepared.text,
            messages: prepared.messages,
            tokens: prepared.tokens,
            losses: losses(&prepared.losses),
            tested: prepared.tested.map(str::to_owned),
            durability: Durability::None,
        },
        record: prepared.record,
        place: Box::new(move || place(&files)),
    }
}

/// The programs that the steps run and that are not on the `PATH`, each once. `None` if all programs are on the `PATH`.
fn missing(steps: &[Vec<String>]) -> Option<Vec<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut missing: Vec<String> = Vec::new();
    for program in steps.iter().filter_map(|step| step.first()) {
        if !is_on_path(program, &path) && !missing.contains(program) {
            missing.push(program.clone());
        }
    }
    (!missing.is_empty()).then_some(missing)
}

fn losses(losses: &Losses) -> Vec<HandoffLoss> {
    let losses = losses.iter().map(|(loss, count)| HandoffLoss {
        kind: kind(loss),
        count,
        text: loss.text(count),
    });
    losses.collect()
}

fn kind(loss: Loss) -> HandoffLossKind {
    match loss {
        Loss::Thoughts => HandoffLossKind::Thoughts,
        Loss::ClosedCalls => HandoffLossKind::ClosedCalls,
        Loss::OrphanResults => HandoffLossKind::OrphanResults,
        Loss::ToolNames => HandoffLossKind::ToolNames,
        Loss::CallIds => HandoffLossKind::CallIds,
        Loss::Images => HandoffLossKind::Images,
        Loss::SystemMessages => HandoffLossKind::SystemMessages,
        Loss::Scaffolding => HandoffLossKind::Scaffolding,
        Loss::Beginning => HandoffLossKind::Beginning,
        Loss::Characters => HandoffLossKind::Characters,
        Loss::Blocks => HandoffLossKind::Blocks,
        Loss::EarlierTurns => HandoffLossKind::EarlierTurns,
        Loss::Compacted => HandoffLossKind::Compacted,
    }
}
