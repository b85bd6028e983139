//! The program `treelined-acp`.

mod conversation;
mod envelope;
mod find;
#[cfg(test)]
mod gaps;
mod history;
mod journal;
mod live;
mod record;
mod relay;
mod turn;

use anyhow::Context;
use clap::Parser;
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use journal::Journal;
use live::{Answers, Live};
use record::Recorder;
use relay::{Passing, Relay};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use treelined_client::DaemonArgs;

/// How long this program still runs after the end of the agent, so that the recorder can write the last messages.
const GRACE: Duration = Duration::from_secs(10);

/// Stands between an ACP editor and an ACP agent, and records their conversation as a tree.
///
/// In the settings of the editor, put `treelined acp --` before the command of the agent. Messages pass unchanged; a
/// copy becomes a session. With `--live` the editor also gets commands for the tree.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The folder of journals and positions [default: treelined/acp in the state folder of the platform]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Complete the sessions of earlier runs that were killed, and end; each start does it too
    #[arg(long, conflicts_with = "agent")]
    recover: bool,
    /// Answer commands such as /tree in prompts of the editor
    #[arg(long, conflicts_with = "recover")]
    live: bool,
    /// The agent and its arguments
    #[arg(last = true, required_unless_present = "recover", value_name = "AGENT")]
    agent: Vec<OsString>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = match args.recover {
        true => recover(&args).map(|()| 0),
        false => run(args),
    };
    match ended {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

/// Writes an error to stderr. If stderr is closed, the exit code or the record still shows the failure.
fn say(error: &anyhow::Error) {
    let _written = writeln!(std::io::stderr(), "treelined-acp: {error:#}");
}

fn run(args: Args) -> anyhow::Result<i32> {
    let state = state_folder(&args);
    let journal = state.and_then(|state| Journal::create(&state, agent_name(&args.agent)));
    let passing = journal.and_then(|(journal, editor, agent)| {
        if !args.live {
            return Ok((Some(journal), None, Passing::Recorded(editor, agent)));
        }
        let program = args.agent.first().map(PathBuf::from).unwrap_or_default();
        let (state, stdout) = (state_folder(&args)?, Box::new(std::io::stdout()));
        let program = (program, journal.agent());
        let woken = (journal.alarm(), editor.another());
        let (live, answers) = Live::new(&state, program, stdout, woken, &args.daemon)?;
        let passing = Passing::Live(editor, agent, live);
        Ok((Some(journal), Some(answers), passing))
    });
    let (journal, answers, passing) = match passing {
        Ok(passing) => passing,
        Err(error) => {
            say(&error.context("this conversation is not recorded"));
            (None, None, Passing::Unrecorded)
        }
    };
    let relay = match Relay::start(&args.agent, passing) {
        Ok(relay) => relay,
        Err(error) => {
            journal.map(Journal::remove).transpose()?;
            return Err(error);
        }
    };
    let (recorded, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // If the recorder fails, the conversation continues. The next start records the rest from the journal.
        let result = journal.map(|journal| block_on(record(&args, journal, answers.as_ref())));
        let failure = result.and_then(Result::err);
        if let Some(error) = &failure {
            let later = "the rest of this conversation is recorded at the next start";
            say(&anyhow::anyhow!("{later}: {error:#}"));
        }
        let _main_ended = recorded.send(());
        if let Some((error, answers)) = failure.zip(answers) {
            answers.refuse(&error);
        }
    });
    let status = relay.wait(GRACE).context("wait for the agent")?;
    let _late = ended.recv_timeout(GRACE);
    Ok(relay::exit_code(status))
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("start the runtime")?.block_on(work)
}

fn state_folder(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &args.state {
        return Ok(folder.clone());
    }
    let strategy = choose_app_strategy(AppStrategyArgs {
        top_level_domain: String::new(),
        author: String::new(),
        app_name: "treelined".to_owned(),
    })?;
    let folder = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
    Ok(folder.join("acp"))
}

/// The name of the agent's program, without its folder.
fn agent_name(argv: &[OsString]) -> String {
    let program = argv.first().map(Path::new);
    let name = program.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn recorder(args: &Args, state: &Path) -> anyhow::Result<Recorder> {
    let daemon = args.daemon.builder();
    let daemon = daemon.client_info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    Recorder::new(daemon, state)
}

/// Completes the records of runs that were killed.
fn recover(args: &Args) -> anyhow::Result<()> {
    let state = state_folder(args)?;
    block_on(async {
        let mut recorder = recorder(args, &state)?;
        complete_unfinished(&state, &mut recorder).await?;
        recorder.close().await
    })
}

/// Records until the agent has ended. Completes the journals of killed runs first.
async fn record(
    args: &Args,
    mut journal: Journal,
    answers: Option<&Answers>,
) -> anyhow::Result<()> {
    let state = state_folder(args)?;
    let mut recorder = recorder(args, &state)?;
    complete_unfinished(&state, &mut recorder).await?;
    loop {
        // If the agent has ended at this point, the journal already has its last messages.
        let has_ended = journal.has_ended();
        make_changes(&mut journal, &mut recorder).await?;
        if has_ended {
            break;
        }
        while let Some((answers, job)) = answers.and_then(Answers::next) {
            // The journal has all messages that came before this command: they are recorded first.
            make_changes(&mut journal, &mut recorder).await?;
            live::answer(answers, &job, &mut journal, &mut recorder).await;
        }
        journal.clear_if_idle()?;
        match answers {
            Some(answers) => answers.wait(journal.news()).await,
            None => journal.news().await,
        }
    }
    if let Some(answers) = answers {
        answers.end();
    }
    complete(journal, &mut recorder).await?;
    recorder.close().await
}

async fn complete_unfinished(state: &Path, recorder: &mut Recorder) -> anyhow::Result<()> {
    for journal in Journal::unfinished(state)? {
        complete(journal, recorder).await?;
    }
    Ok(())
}

/// Records the changes of a journal that gets no more messages, and removes the journal.
async fn complete(mut journal: Journal, recorder: &mut Recorder) -> anyhow::Result<()> {
    make_changes(&mut journal, recorder).await?;
    journal.end();
    make_changes(&mut journal, recorder).await?;
    Ok(journal.remove()?)
}

/// Records the changes that the journal has now.
pub(crate) async fn make_changes(
    journal: &mut Journal,
    recorder: &mut Recorder,
) -> anyhow::Result<()> {
    recorder.set_agent(journal.agent());
    while let Some(change) = journal.next_change()? {
        recorder.make(change, journal.change_ids()).await?;
        journal.note_done()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_a_valid_command() {
        Args::command().debug_assert();
    }
}
