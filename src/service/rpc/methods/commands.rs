//! Commands: `register_command`, `unregister_command`, `list_commands`, `run_command` (protocol.md §12).

use super::peers::{NewQuestion, SentQuestion, takes};
use crate::commands::OfferedCommand;
use crate::peers::PeerOutcome;
use crate::rpc::caller::Caller;
use crate::rpc::handler::Remainder;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_wire::methods::Notification;
use treelined_wire::{self as wire, AskingEvent, CommandFailure, EventReply, notification};

/// How long a command may take if the caller gives no time.
const RUN_TIMEOUT_MS: u64 = 30_000;
/// The most bytes of an argument.
const MAX_ARGS_BYTES: usize = 1 << 20;

pub(in crate::rpc) fn register_command(
    caller: &Caller<'_>,
    params: wire::RegisterCommandParams,
) -> Result<wire::RegisterCommandResult> {
    check_introduced(caller)?;
    let command = OfferedCommand {
        owner: caller.connection().id,
        description: params.description,
        argument_hint: params.argument_hint,
    };
    caller
        .daemon()
        .offers
        .commands()
        .register(&params.name, command)?;
    Ok(wire::RegisterCommandResult {})
}

pub(in crate::rpc) fn unregister_command(
    caller: &Caller<'_>,
    params: wire::UnregisterCommandParams,
) -> Result<wire::UnregisterCommandResult> {
    check_introduced(caller)?;
    let owner = caller.connection().id;
    caller
        .daemon()
        .offers
        .commands()
        .unregister(&params.name, owner)?;
    Ok(wire::UnregisterCommandResult {})
}

pub(in crate::rpc) fn list_commands(
    caller: &Caller<'_>,
    _: wire::ListCommandsParams,
) -> Result<wire::ListCommandsResult> {
    check_introduced(caller)?;
    let mut connections = caller.daemon().connections.all();
    connections.retain(|connection| !connection.is_ending());
    let by = |command: &OfferedCommand| {
        let owner = connections.iter().find(|other| other.id == command.owner);
        owner.map(|owner| owner.display_name())
    };
    let commands = caller.daemon().offers.commands();
    // The commands of a connection end with the connection.
    let offered = commands.list().filter_map(|(name, command)| {
        Some(wire::RegisteredCommand {
            name: name.to_owned(),
            description: command.description.clone(),
            argument_hint: command.argument_hint.clone(),
            by: by(command)?,
        })
    });
    Ok(wire::ListCommandsResult {
        commands: offered.collect(),
    })
}

/// Fails if the connection has not introduced itself. Without an introduction, a connection has no name and cannot
/// answer.
fn check_introduced(caller: &Caller<'_>) -> Result<()> {
    match caller.connection().client() {
        Some(_) => Ok(()),
        None => Err(Error::new(
            Kind::InvalidRequest,
            "commands need `initialize` first",
        )),
    }
}

pub(in crate::rpc) fn run_command(
    caller: &Caller<'_>,
    params: wire::RunCommandParams,
) -> Result<Remainder<wire::RunCommandResult>> {
    let wire::RunCommandParams {
        name,
        args,
        session_id,
        timeout_ms,
    } = params;
    let args = args.unwrap_or_default();
    if args.len() > MAX_ARGS_BYTES {
        let reason = format!("must have at most {MAX_ARGS_BYTES} bytes");
        return Err(Error::invalid_params("args", reason));
    }
    let (call, opened) = (caller.call(), caller.check_open(session_id.as_deref()));
    Ok(Remainder::of(async move {
        opened.await?;
        let sent = invoke(&Caller::of(&call), &name, args, session_id, timeout_ms)?;
        let (outcome, ..) = sent.outcome().await;
        result(outcome, &name)
    }))
}

/// Asks the owner of a command to run it.
fn invoke(
    caller: &Caller<'_>,
    name: &str,
    args: String,
    session_id: Option<String>,
    timeout_ms: Option<u64>,
) -> Result<SentQuestion> {
    let owner = caller.daemon().offers.commands().owner(name)?;
    let Some(owner) = caller.daemon().connections.find(owner) else {
        return Err(failed(name, CommandFailure::OwnerGone, None));
    };
    if !owner.is_ending() && !takes(&owner, notification::CommandInvoked::NAME) {
        let message = "the client that offers the command does not read what it is sent";
        return Err(Error::new(Kind::Overloaded, message));
    }
    let question = NewQuestion {
        asked: vec![owner],
        // The owner of a command need not have the session open.
        session: Arc::default(),
        timeout: Duration::from_millis(timeout_ms.unwrap_or(RUN_TIMEOUT_MS)),
        accepts: Box::new(|reply: &EventReply| match reply {
            EventReply::Answer(answer) => answer.check(AskingEvent::CommandInvoked),
            EventReply::Failure(_) | EventReply::Extend(_) => Ok(()),
        }),
    };
    question.send(caller, |event_id, timeout_ms| {
        notification::CommandInvoked {
            event_id,
            name: name.to_owned(),
            args,
            session_id,
            by: caller.connection().display_name(),
            timeout_ms,
        }
    })
}

/// The result of a command that was asked to run.
fn result(outcome: PeerOutcome, name: &str) -> Result<wire::RunCommandResult> {
    match outcome {
        PeerOutcome::Answered(_, EventReply::Answer(answer)) => Ok(wire::RunCommandResult {
            output: answer.output,
            prompt: answer.prompt,
        }),
        PeerOutcome::Answered(_, EventReply::Failure(message)) => {
            Err(failed(name, CommandFailure::Error, Some(message)))
        }
        PeerOutcome::Answered(_, EventReply::Extend(_)) | PeerOutcome::TimedOut => {
            Err(failed(name, CommandFailure::Timeout, None))
        }
        PeerOutcome::Gone => Err(failed(name, CommandFailure::OwnerGone, None)),
        PeerOutcome::Cancelled => Err(Error::cancelled()),
    }
}

fn failed(name: &str, reason: CommandFailure, message: Option<String>) -> Error {
    let said = match (reason, &message) {
        (CommandFailure::Error, Some(message)) => format!("the command {name:?} failed: {message}"),
        (CommandFailure::Error, None) => format!("the command {name:?} failed"),
        (CommandFailure::Timeout, _) => format!("the command {name:?} took too long"),
        (CommandFailure::OwnerGone, _) => {
            format!("the client that offers the command {name:?} has ended")
        }
    };
    let details = wire::CommandFailedDetails {
        name: name.to_owned(),
        reason,
        message,
    };
    Error::new(Kind::CommandFailed, said).with_details(json!(details))
}
