//! Commands of other clients, and their questions and messages to the user.

use super::failure::failure;
use crate::message::{self, Command, CommandOutput, Effect, Event, Level};
use crate::model::input::Input;
use crate::model::question::{AnswerField, Question, UserAnswer};
use crate::text;
use treelined_client::{
    AskKind, AskingEvent, Builder, Client, Error, EventAnswer, EventOutcome, EventResolved,
    NotifyLevel, UserAsked, UserNotified,
};

/// Declares that this client can ask a person.
pub fn with_person(builder: Builder) -> Builder {
    builder.ui([
        AskKind::Select,
        AskKind::Confirm,
        AskKind::Input,
        AskKind::Editor,
    ])
}

/// Runs an effect about commands or questions. `session` is the open session.
pub async fn carry_out(
    client: &Client,
    session: Option<String>,
    effect: Effect,
) -> Option<message::Daemon> {
    use message::Daemon as Answer;
    Some(match effect {
        Effect::ListCommands => Answer::Commands(list_commands(client).await.map_err(failure)),
        Effect::RunCommand { id, name, argument } => {
            let ended = run_command(client, session, name, argument).await;
            let result = ended.map_err(failure);
            Answer::CommandEnded { id, result }
        }
        Effect::AnswerUser { event_id, answer } => {
            let taken = self::answer(client, event_id, answer).await;
            Answer::Answered(taken.map_err(failure))
        }
        _ => return None,
    })
}

async fn list_commands(client: &Client) -> Result<Vec<Command>, Error> {
    let listed = client.list_commands().await?.commands.into_iter();
    let line = |text: Option<String>| text.as_deref().map(text::line).unwrap_or_default();
    let commands = listed.map(|command| Command {
        name: text::line(&command.name),
        argument: line(command.argument_hint),
        about: line(command.description),
        by: Some(text::line(&command.by)),
    });
    Ok(commands.collect())
}

/// Runs a command of another client, for the session if one is open.
async fn run_command(
    client: &Client,
    session: Option<String>,
    name: String,
    argument: String,
) -> Result<CommandOutput, Error> {
    let mut call = client.run_command(name).args(argument);
    if let Some(session) = session {
        call = call.session_id(session);
    }
    let ended = call.await?;
    Ok(CommandOutput {
        output: ended.output.as_deref().map(clean),
        prompt: ended.prompt,
        ..CommandOutput::default()
    })
}

async fn answer(client: &Client, event_id: String, answer: UserAnswer) -> Result<(), Error> {
    let result = match answer {
        UserAnswer::Text(text) => EventAnswer::value(text),
        UserAnswer::Choice(is_yes) => EventAnswer::value(is_yes),
        UserAnswer::Dismissed => EventAnswer::dismissed(),
    };
    client.answer_event(event_id).result(result).await.map(drop)
}

/// Sanitizes each line.
fn clean(text: &str) -> String {
    let lines: Vec<String> = text::lines(text.trim_end()).collect();
    lines.join("\n")
}

/// Converts a question; `None` if this program does not know its kind.
pub fn question(asked: UserAsked) -> Option<Event> {
    let initial = asked.initial.as_deref();
    let field = match asked.kind {
        AskKind::Select => AnswerField::options(asked.options.unwrap_or_default(), initial),
        AskKind::Confirm => AnswerField::yes_or_no(initial),
        AskKind::Input => AnswerField::Line(Input::line(initial.unwrap_or_default())),
        AskKind::Editor => AnswerField::Text(Input::lines(initial.unwrap_or_default())),
        _ => return None,
    };
    Some(Event::Asked(Box::new(Question {
        event_id: asked.event_id,
        by: text::line(&asked.by),
        title: text::line(&asked.title),
        message: asked.message.as_deref().map(clean).unwrap_or_default(),
        placeholder: text::line(asked.placeholder.as_deref().unwrap_or_default()),
        field,
        appeared: None,
    })))
}

pub fn notice(notified: &UserNotified) -> Event {
    Event::Notified {
        level: match notified.level {
            NotifyLevel::Warning => Level::Warning,
            NotifyLevel::Error => Level::Error,
            _ => Level::Info,
        },
        text: text::line(&format!("{}: {}", notified.by, notified.message)),
    }
}

/// Converts the notification that a question to the user has ended; `None` if it is about another event.
pub fn resolved(resolved: &EventResolved) -> Option<Event> {
    if resolved.event != AskingEvent::UserAsked {
        return None;
    }
    let by = resolved.by.as_deref().unwrap_or("another client");
    let how = match resolved.outcome {
        EventOutcome::Answered => format!("The question was answered by {by}."),
        EventOutcome::Dismissed => format!("The question was dismissed by {by}."),
        EventOutcome::Timeout => "The time for the answer is over.".to_owned(),
        _ => "The question was taken back.".to_owned(),
    };
    Some(Event::Resolved {
        event_id: resolved.event_id.clone(),
        how: text::line(&how),
    })
}
