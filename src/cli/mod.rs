//! The command line. This module imports the commands, and no command imports it.
//!
//! In reading order: [`table`] has the commands by their purpose. [`arguments`] reads a command with the [`options`]
//! that every command has, and the settings. [`help`] shows the commands. [`serve`] is the daemon. [`daemon`] runs a
//! daemon as a child, or connects to the shared one. [`daemon`] is used by the commands that read a session ([`list`],
//! [`show`], [`tree`], [`branches`], [`compare`], [`stats`], [`search`], [`export`]), that change a session ([`go`],
//! [`undo`], [`label`], [`name`]), or that delete sessions ([`remove`], [`restore`], [`purge`]), and by [`call`] and
//! [`demo`]. [`doctor`] and [`migrate`] open a file without a daemon, [`tokens`] reads all files, and [`du`] measures
//! the session directory. [`connect`], [`web`], [`status`] and [`stop`] find the shared daemon with [`shared`]. `fleet`
//! copies sessions to a team and from it. [`documents`] writes generated files. [`screen`], [`drawing`], [`position`],
//! [`progress`] and [`pretty`] format output. [`listed`] reads the rows of sessions, [`session_choice`] finds the
//! session that a person names, [`opened`] opens it, and [`entry_choice`] finds an entry in it. [`session_words`]
//! distinguishes the words for sessions and entries. [`candidates`] and [`entry_candidates`] offer sessions and entries
//! to a shell, and [`completions`] prints the script of the shell. [`failure`] shows errors, and has the exit codes.
//! [`veto`] reports who held back a move. [`usage`] makes the errors for wrong arguments. [`stderr_log`] is the log.
//! [`interrupt`] ends a command.

mod archive;
mod arguments;
mod aside;
mod bash;
mod branch_choice;
mod branches;
mod call;
mod candidates;
mod columns;
mod compare;
mod completions;
mod connect;
mod continuation;
mod daemon;
mod demo;
mod doctor;
#[cfg(feature = "team")]
mod doctor_cluster;
mod doctor_config;
mod doctor_file;
mod doctor_import;
mod doctor_json;
#[cfg(feature = "nats")]
mod doctor_nats;
mod doctor_origin;
#[cfg(feature = "postgres")]
mod doctor_postgres;
mod doctor_repair;
#[cfg(feature = "team")]
mod doctor_retain;
#[cfg(feature = "team")]
mod doctor_servers;
mod documents;
mod drawing;
mod du;
mod entry_candidates;
mod entry_choice;
mod erase;
mod export;
mod export_review;
mod failure;
#[cfg(feature = "team")]
mod fleet;
mod go;
mod help;
mod import;
mod import_hook;
mod import_request;
mod import_watch;
mod interrupt;
mod label;
mod late_writes;
mod list;
mod list_team;
mod listed;
mod migrate;
mod moved;
mod name;
mod opened;
mod options;
mod package;
mod position;
mod pretty;
mod progress;
mod purge;
#[cfg(feature = "team")]
mod push_totals;
mod remove;
mod restore;
mod runtime;
mod scratch;
mod screen;
mod search;
mod search_hit;
mod serve;
mod session_choice;
mod session_dir;
mod session_words;
mod settings;
mod shared;
mod shed;
mod show;
mod sorting;
mod stats;
mod status;
mod stderr_log;
mod stop;
mod story;
mod table;
#[cfg(feature = "team")]
mod team;
mod tokens;
mod tool_names;
mod trash_choice;
mod tree;
mod tree_rows;
mod undo;
mod usage;
mod veto;
mod web;
mod words;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::usage::refuse;

use self::arguments::Command;
use self::failure::{ShellError, is_unread};
use self::options::in_settings;
use crate::config;
use clap::CommandFactory;
use std::process::ExitCode;
use treelined_files::os::running;

/// If a shell has asked for words to complete a command line, prints them. Returns whether a shell has asked.
pub(crate) fn completes() -> bool {
    completions::answer(Arguments::command)
}

/// Runs the command that the arguments name.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    stderr_log::log_to_stderr();
    if arguments.ends_at_interrupt() {
        interrupt::watch();
    }
    outcome(&arguments).unwrap_or_else(|error| match is_unread(&error) {
        true => ExitCode::SUCCESS,
        false => usage::of_hook(ShellError::of(&error).report()),
    })
}

fn outcome(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options = &arguments.options;
    // If another user could write the configuration file, the command fails. Running it without the file would be wrong
    // too.
    if !matches!(
        arguments.command,
        Some(Command::Config(_) | Command::Doctor(_) | Command::Launch(_) | Command::CarryOver(_))
    ) {
        config::check(options.config.as_deref()).map_err(|error| in_settings(&error))?;
    }
    if arguments.reads_sessions() {
        session_dir::check(options);
    }
    match &arguments.command {
        None => serve::run(options, &serve::ServeArgs::default()),
        Some(Command::Serve(args)) => serve::run(options, args),
        Some(Command::Connect(connect)) => connect::run(options, connect),
        Some(Command::Continue(args)) => continuation::run(options, args),
        Some(Command::Web(web)) => web::run(options, web),
        Some(Command::Status(status)) => status::run(options, status),
        Some(Command::Stop(stop)) => stop::run(options, stop),
        Some(Command::Detach(detach)) => detach.run(),
        Some(Command::CarryOver(command)) => command.run(),
        Some(Command::List(list)) => list::run(options, list),
        Some(Command::Show(show)) => show::run(options, show),
        Some(Command::Call(call)) => call::run(options, call),
        Some(Command::Tree(tree)) => tree::run(options, tree),
        Some(Command::Ask(ask)) => search::run_ask(options, ask),
        Some(Command::Search(search)) => search::run(options, search),
        Some(Command::Branches(args)) => branches::run(options, args),
        Some(Command::Compare(args)) => compare::run(options, args),
        Some(Command::Stats(args)) => stats::run(options, args),
        Some(Command::Usage(args)) => tokens::run(options, args),
        Some(Command::Go(args)) => go::run(options, args),
        Some(Command::Undo(args)) => undo::run(options, args, undo::UNDO),
        Some(Command::Redo(args)) => undo::run(options, args, undo::REDO),
        Some(Command::NameBranch(args)) => archive::name(options, args),
        Some(Command::Btw(args)) => aside::ask(options, args),
        Some(Command::Keep(args)) => aside::keep(options, args),
        Some(Command::Archive(args)) => archive::archive(options, args),
        Some(Command::Unarchive(args)) => archive::unarchive(options, args),
        Some(Command::Shed(args)) => shed::shed(options, args),
        Some(Command::Unshed(args)) => shed::unshed(options, args),
        Some(Command::Label(args)) => label::run(options, args),
        Some(Command::Name(args)) => name::run(options, args),
        Some(Command::Tag(args)) => sorting::tag(options, args),
        Some(Command::Pin(args)) => sorting::pin(options, args),
        Some(Command::ArchiveSession(args)) => sorting::archive(options, args),
        Some(Command::Remove(args)) => remove::run(options, args),
        Some(Command::Erase(args)) => erase::run(options, args),
        Some(Command::Purge(args)) => purge::run(options, args),
        Some(Command::Du(args)) => du::run(options, args),
        Some(Command::Mv(args)) => moved::run(options, args),
        Some(Command::Doctor(doctor)) => doctor::run(options, doctor),
        Some(Command::Migrate(migrate)) => migrate::run(options, migrate),
        Some(Command::Import(import)) => import::run(options, import),
        Some(Command::Acp(args)) => package::run(options, "treelined-acp", args),
        Some(Command::Tui(args)) => package::run(options, "treelined-tui", args),
        Some(Command::Mcp(args)) => package::mcp(options, args),
        Some(Command::Files(args)) => package::run(options, "treelined-files", args),
        Some(Command::Setup(args)) => package::run(options, "treelined-setup", args),
        Some(Command::Export(export)) => export::run(options, export),
        Some(Command::Restore(restore)) => restore::run(options, restore),
        #[cfg(feature = "team")]
        Some(Command::Push(args)) => fleet::push(options, args),
        #[cfg(feature = "team")]
        Some(Command::Pull(args)) => fleet::pull(options, args),
        Some(Command::Schema(schema)) => documents::schema(schema),
        Some(Command::Man(man)) => documents::man(man, Arguments::command()),
        Some(Command::Completions(completions)) => {
            completions::run(completions, &Arguments::command())
        }
        Some(Command::Config(args)) => settings::run(options, args),
        Some(Command::Demo(demo)) => demo::run(options, demo),
        Some(Command::Launch(args)) => Err(running::launch(args.parent, &args.argv).into()),
    }
}
