//! The table of the commands. clap reads the commands from this table. All lists of commands for people are made from
//! it: the help, the man pages and the completions. A test compares the list in README.md with it.

#[cfg(feature = "team")]
use super::fleet;
use super::{
    archive, aside, branches, call, compare, completions, connect, continuation, demo, doctor,
    documents, du, erase, export, go, import_request, label, late_writes, list, migrate, moved,
    name, package, purge, remove, restore, search, serve, settings, shared, shed, show, sorting,
    stats, status, stop, tokens, tree, undo, web,
};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use treelined_files::log::late_writes::CARRY_OVER_COMMAND;
use treelined_files::os::running::LAUNCH_COMMAND;

/// The commands with one kind of purpose.
pub(super) struct Group {
    pub title: &'static str,
    pub rows: &'static [Row],
}

/// A command.
pub(super) struct Row {
    pub name: &'static str,
    /// Whether this build has the command, which may depend on a feature.
    pub is_built: bool,
    /// The purpose of the command, on one line.
    pub about: &'static str,
    /// Further sentences; empty if the one line is enough.
    #[cfg_attr(not(test), allow(dead_code, reason = "the command has it"))]
    pub more: &'static str,
}

macro_rules! commands {
    ($($title:literal {
        $($name:literal $(/ $alias:literal)? $([$feature:literal])? $variant:ident($args:ty)
            $about:literal $more:literal;)+
    })+) => {
        #[derive(Debug, Subcommand)]
        #[command(defer = true)]
        pub(crate) enum Command {
            $($(
                #[command(name = $name, about = $about, long_about = whole($about, $more))]
                $(#[command(visible_alias = $alias)])?
                $(#[cfg(feature = $feature)])?
                $variant($args),
            )+)+
            /// Leave the terminal and run this program with these arguments
            #[command(hide = true)]
            Detach(shared::Detach),
            /// Go on for a daemon that has ended while others wrote to a replaced file
            #[command(hide = true, name = CARRY_OVER_COMMAND)]
            CarryOver(late_writes::CarryOver),
            /// Become the program of an extension
            #[command(hide = true, name = LAUNCH_COMMAND)]
            Launch(LaunchArgs),
        }

        pub(super) const GROUPS: &[Group] = &[$(
            Group {
                title: $title,
                rows: &[$(Row {
                    name: $name,
                    is_built: true $(&& cfg!(feature = $feature))?,
                    about: $about,
                    more: $more,
                }),+],
            },
        )+];
    };
}

commands! {
    "Look into conversations" {
        "list" / "ls" List(list::ListArgs)
            "List the sessions of this directory, or of all"
            "A row has the time, the id, the tool of origin, the name or first message, messages, branches, the directory, and other sessions of the same conversation.";
        "tree" Tree(tree::TreeArgs)
            "Draw a session as a tree"
            "A query is words, a phrase in quotes, or a regular expression between slashes.";
        "show" Show(show::ShowArgs)
            "Read a branch of a session from its first message to its last"
            "It shows the branch of the leaf, or the branch that ends at ENTRY.";
        "ask" Ask(search::AskArgs)
            "Ask a question about all sessions"
            "It shows the best entries, and why a branch was left. Exit code 1 if nothing is found, 2 if it fails.";
        "search" Search(search::SearchArgs)
            "Find words in the entries of all sessions"
            "Exit code 1 if nothing is found, 2 if the search fails.";
        "branches" Branches(branches::BranchesArgs)
            "List the branches of a session"
            "";
        "compare" Compare(compare::CompareArgs)
            "Compare two branches of a session"
            "It shows the entry at which they part, and the messages and files of each branch after it.";
        "stats" Stats(stats::StatsArgs)
            "Count messages, tokens, cost and time of a session"
            "";
        "usage" Usage(tokens::UsageArgs)
            "Count tokens and cost of all sessions"
            "Each answer counts once, even if several branches or sessions have it. A cost that no tool has recorded is estimated from the price of the model. Without a price it is unknown.";
        "tui" Tui(package::PackageArgs)
            "Walk through sessions in the terminal, with keys"
            "It starts treelined-tui, which is installed beside this program.";
        "web" Web(web::Web)
            "Show the sessions in a browser, live"
            "If a shared daemon runs, it serves the page. If not, this program serves it until Ctrl+C (exit code 130).";
    }
    "Go back, and go on" {
        "go" Go(go::GoArgs)
            "Go to an entry of a session"
            "If the entry is a message of the user, the session moves to the position before it, so that you can write the message again. Clients and hooks are asked first; exit code 1 if one of them refuses the move.";
        "undo" Undo(undo::UndoArgs)
            "Undo the last move in a session"
            "";
        "redo" Redo(undo::UndoArgs)
            "Redo the move that was undone last"
            "";
        "continue" Continue(continuation::ContinueArgs)
            "Go on with a conversation in another agent"
            "It makes a new session of the agent, with the conversation up to ENTRY or to the leaf, says what is lost, and starts the agent. Without a terminal it prints what to run.";
        "files" Files(package::PackageArgs)
            "Restore the files that a folder had at an entry"
            "Run `files on` in the folder first: it then saves the files at each turn. It starts treelined-files, which is installed beside this program.";
        "label" Label(label::LabelArgs)
            "Label an entry as a bookmark, or remove its label"
            "Exit code 3 if it has no label to remove.";
        "name-branch" NameBranch(archive::NameBranchArgs)
            "Name a branch of a session, or remove its name"
            "";
        "archive" Archive(archive::ArchiveArgs)
            "Archive a branch of a session"
            "Trees, lists and searches leave it out unless you ask for archived branches. If the session is on the branch, it leaves the branch first; exit code 1 if a client or a hook refuses that.";
        "unarchive" Unarchive(archive::UnarchiveArgs)
            "Bring back an archived branch of a session"
            "Exit code 3 if the entry is in no archived branch.";
        "shed" Shed(shed::ShedArgs)
            "Move archived branches out of the file of a session"
            "Their lines go into a file beside it, and no list, tree or search has them until `treelined unshed`.";
        "unshed" Unshed(shed::UnshedArgs)
            "Move shed branches back into the file of a session"
            "Exit code 3 if no shed branch has the entry.";
        "btw" Btw(aside::BtwArgs)
            "Ask a question beside the conversation"
            "The question and its answer are in a separate branch. The conversation continues without them.";
        "keep" Keep(aside::KeepArgs)
            "Copy a side question and its answer into the conversation"
            "Exit code 3 if the entry is not in the branch of a side question.";
        "name" Name(name::NameArgs)
            "Name a session, or remove its name"
            "";
        "tag" Tag(sorting::TagArgs)
            "Tag a session, or remove tags"
            "Tags are in the session file, and go with it.";
        "pin" Pin(sorting::PinArgs)
            "Pin a session on this machine, or remove its pin"
            "";
        "archive-session" ArchiveSession(sorting::ArchiveSessionArgs)
            "Leave a session out of lists, or bring it back"
            "The session stays where it is, and search finds it.";
    }
    "Import and export" {
        "setup" Setup(package::PackageArgs)
            "Make the agents of this machine record what they do"
            "It shows what it would write, and asks first; --remove undoes the change. It starts treelined-setup, which is installed beside this program.";
        "import" Import(import_request::ImportArgs)
            "Import from agents, and exports of ChatGPT and Claude.ai"
            "The agents are Claude Code, Codex, opencode, Gemini CLI, goose, pi, Qwen Code, Cline, Roo Code, Kilo Code, Copilot CLI and VS Code Copilot Chat; their files stay as they are. An export of ChatGPT or Claude.ai is read as it was downloaded, also in its .zip. With --again, an imported session is written anew, and its old file moves to the trash. Exit code 1 if a source could not be read or is unknown, 3 if the session of --forget or --again does not come from an import.";
        "export" Export(export::ExportArgs)
            "Write a session as a page, text, a session file or data"
            "Keys, tokens and passwords are replaced, but never in a session file.";
        "push" ["team"] Push(fleet::PushArgs)
            "Send sessions to the servers of the team"
            "They are servers of NATS JetStream or PostgreSQL.";
        "pull" ["team"] Pull(fleet::PullArgs)
            "Bring sessions from the servers of the team"
            "";
    }
    "Clean up" {
        "rm" Remove(remove::RemoveArgs)
            "Move sessions to the trash"
            "";
        "restore" Restore(restore::Restore)
            "List deleted sessions, or bring one back"
            "";
        "purge" Purge(purge::PurgeArgs)
            "Remove deleted sessions from the disk, for good"
            "It removes the sessions that you name, all of them, or those that were deleted longer ago than a given time. It asks first; without a terminal it needs --yes.";
        "erase" Erase(erase::EraseArgs)
            "Remove sessions from the database of a team, for good"
            "The author of a session and administrators of the database may do this. It asks first; without a terminal it needs --yes.";
        "mv" Mv(moved::MvArgs)
            "Give the sessions of a moved project its new path"
            "It moves the sessions of the directory and of the directories below it. treelined and pi then find them at the new path. Exit code 1 if a session could not be moved, 3 if the old directory has no sessions.";
        "du" Du(du::DuArgs)
            "Show what the session directory takes on the disk"
            "";
        "doctor" Doctor(doctor::Doctor)
            "Check session files, and repair them"
            "It reports what they contain; --repair moves damaged lines to a folder beside the file. It also checks the configuration, and without SESSION only that. Exit code 1 if anything is wrong.";
        "migrate" Migrate(migrate::Migrate)
            "Rewrite a session file of version 1 or 2 as version 3"
            "The original stays beside it.";
    }
    "Serve editors, agents and scripts" {
        "serve" Serve(serve::ServeArgs)
            "Speak JSON-RPC on stdin and stdout, or on sockets"
            "Without a command, treelined does the same on stdin and stdout.";
        "connect" Connect(connect::Connect)
            "Speak JSON-RPC with the shared daemon, on stdin and stdout"
            "Exit code 3 if no shared daemon runs.";
        "status" Status(status::Status)
            "Show the shared daemon"
            "Exit code 3 if no shared daemon runs.";
        "stop" Stop(stop::Stop)
            "End the shared daemon"
            "It waits until the daemon has ended. Exit code 3 if no shared daemon runs.";
        "call" Call(call::CallArgs)
            "Make one call and print its result"
            "An error goes to stderr as JSON, at a terminal as text, with exit code 1.";
        "acp" Acp(package::PackageArgs)
            "Record what an ACP editor and an ACP agent say"
            "It starts treelined-acp, which is installed beside this program.";
        "mcp" Mcp(package::PackageArgs)
            "Let an agent read earlier conversations, over MCP"
            "It starts treelined-mcp, which is installed beside this program.";
    }
    "About this program" {
        "demo" Demo(demo::DemoArgs)
            "Show a conversation with a branch, offline"
            "It writes a page of it to DIR.";
        "config" Config(settings::ConfigArgs)
            "Print the settings in force and the source of each"
            "";
        "completions" Completions(completions::Completions)
            "Print a script that completes commands in a shell"
            "It completes sessions, entries, labels and methods too.";
        "man" Man(documents::Man)
            "Write the man pages"
            "";
        "schema" Schema(documents::Schema)
            "Write the documents of the protocol"
            "";
    }
}

#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// The process of the daemon
    pub parent: u32,
    #[arg(last = true, required = true)]
    pub argv: Vec<OsString>,
}

fn whole(about: &str, more: &str) -> String {
    match more {
        "" => about.to_owned(),
        more => format!("{about}\n\n{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Arguments;
    use clap::{Arg, CommandFactory};
    use std::path::Path;

    const MARKS: [&str; 2] = ["<!-- commands -->\n", "<!-- /commands -->"];

    /// The row of a command in README.md.
    fn readme_row(row: &Row, command: &mut clap::Command) -> String {
        let usage = command.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let usage = usage.lines().next().unwrap().replace(" [OPTIONS]", "");
        let options = command
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
        let options = options
            .filter_map(Arg::get_long)
            .filter(|name| !matches!(*name, "help" | "version"));
        let options: Vec<String> = options.map(|name| format!("`--{name}`")).collect();
        let mut text = format!("{}.", row.about);
        for more in [row.more, &options.join(", ")] {
            if !more.is_empty() {
                text += &format!(" {more}");
            }
        }
        let usage = usage.trim().replace('|', "\\|");
        format!("| `{usage}` | {text} |\n")
    }

    /// The list of commands in README.md was once written by hand, and lacked commands that other lists had. With
    /// `TREELINED_UPDATE=1` the test writes it. Commands that this build does not have keep their rows.
    #[test]
    fn the_readme_has_the_table_of_commands() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
        let readme = std::fs::read_to_string(&path).unwrap();
        let start = readme.find(MARKS[0]).expect(MARKS[0]) + MARKS[0].len();
        let end = readme.find(MARKS[1]).expect(MARKS[1]);
        let present = &readme[start..end];
        let mut program = Arguments::command();
        program.build();
        let mut table = String::from("| command | |\n|---|---|\n");
        for group in GROUPS {
            table += &format!("| **{}** | |\n", group.title);
            for row in group.rows {
                table += &match program.find_subcommand_mut(row.name) {
                    Some(command) => readme_row(row, command),
                    None => {
                        let begins = format!("| `treelined {} ", row.name);
                        let line = present.lines().find(|line| line.starts_with(&begins));
                        format!("{}\n", line.unwrap_or(&begins))
                    }
                };
            }
        }
        if std::env::var_os("TREELINED_UPDATE").is_some() {
            let updated = [&readme[..start], &table, &readme[end..]].concat();
            std::fs::write(&path, updated).unwrap();
            return;
        }
        assert_eq!(present, table, "stale: cargo xtask generate");
    }

    #[test]
    fn a_row_fits_into_80_columns_and_says_one_thing() {
        for row in GROUPS.iter().flat_map(|group| group.rows) {
            assert!(row.about.len() <= 80 - 19, "{}", row.about);
            assert!(!row.about.ends_with('.'), "{}", row.about);
            assert!(
                row.more.is_empty() || row.more.ends_with('.'),
                "{}",
                row.more
            );
        }
    }
}
