//! The tasks of contributors: `cargo xtask`. Each step is a command that can be run alone; it is printed first.

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What contributors run")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write everything that is generated: documents, clients, and the page
    Generate,
    /// Check in a second what needs no build: the format, and the versions of the packages
    Lint,
    /// Check what a push must not break, in some seconds after a small change: as lint, the compiler, and the architecture
    Check,
    /// Run what a commit has to pass, as .ci/run does on a clean clone
    Ci,
    /// Measure beside other programs; --write puts the rows into the READMEs
    Bench {
        #[arg(long)]
        write: bool,
    },
    /// Build and check what is published
    Dist {
        /// Pack the programs in this folder in place of building them
        #[arg(long, value_name = "DIR")]
        binaries: Option<PathBuf>,
    },
    /// Make the site of the documents into target/site/book
    Site,
}

/// A step: where it runs, and its command.
struct Step(&'static str, Vec<String>);

/// A step at the top of the repository.
fn top(command: &'static str) -> Step {
    below(".", command)
}

fn below(folder: &'static str, command: &'static str) -> Step {
    // A no-break space stands for a space within an argument.
    let words = command.split(' ').map(|word| word.replace('\u{a0}', " "));
    Step(folder, words.collect())
}

fn steps(task: &Task) -> Vec<Step> {
    match task {
        // The documents come first, since the generators of the clients read them.
        Task::Generate => vec![
            top("cargo test --quiet -p treelined-wire --lib -- the_documents_are_those_of_schema"),
            top("cargo run --quiet -p treelined-client-generate"),
            top("cargo test --quiet --bin treelined -- the_document_of_errors the_readme_has"),
            top(
                "cargo test --quiet --test it -- the_readme_lists every_client_has_the_table every_block_of_the_guide the_rows_of_the_fixture",
            ),
            below(
                "clients/typescript",
                "npm ci --no-audit --no-fund --loglevel=error",
            ),
            below("clients/typescript", "node tools/generate.js"),
            // This step formats with ruff.
            below("clients/python", "python3 tools/generate.py"),
            below(
                "clients/nvim",
                "nvim --headless -u NONE -c luafile\u{a0}tools/generate.lua -c qall!",
            ),
            below(
                "clients/web",
                "npm ci --no-audit --no-fund --loglevel=error",
            ),
            below("clients/web", "node tools/build.js"),
            top("cargo test --quiet -p treelined-tui --test screens readme"),
            top(
                "cargo test --quiet -p treelined-handoff --lib -- from_each_agent_to_each_agent_and_back",
            ),
        ],
        Task::Lint => vec![
            top("cargo fmt --all --check"),
            top("clients/package/versions"),
        ],
        Task::Check => vec![
            top("cargo fmt --all --check"),
            top("clients/package/versions"),
            top(
                "cargo clippy --quiet --workspace --all-targets --features treelined/nats,treelined/postgres -- -D warnings",
            ),
            top("cargo test --quiet --workspace --test it -- boundaries:: documents:: readme::"),
        ],
        Task::Ci => vec![top("bash .ci/run")],
        Task::Bench { write: false } => vec![top("tests/bench/run --quick")],
        Task::Bench { write: true } => vec![top("tests/bench/run --quick --write")],
        Task::Dist { binaries } => {
            let Step(folder, mut build) = top("clients/package/build");
            if let Some(binaries) = binaries {
                build.push("--binaries".to_owned());
                build.push(binaries.display().to_string());
            }
            vec![
                top("clients/package/versions"),
                top("clients/package/crates --dry-run"),
                Step(folder, build),
                top("clients/package/check --full"),
            ]
        }
        Task::Site => vec![
            top("cargo build --quiet --bin treelined"),
            top("clients/package/site"),
        ],
    }
}

fn main() -> Result<()> {
    let mut task = Arguments::parse().task;
    if let Task::Dist {
        binaries: Some(binaries),
    } = &mut task
    {
        // The steps run in other folders.
        *binaries = std::path::absolute(&*binaries)?;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let root = root.map_or_else(PathBuf::new, Path::to_owned);
    for Step(folder, words) in steps(&task) {
        eprintln!("== {folder}: {}", words.join(" "));
        let Some((program, arguments)) = words.split_first() else {
            continue;
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(root.join(folder))
            .stdin(Stdio::null());
        if matches!(task, Task::Generate) {
            // With this variable, tests that compare a document with the program write the document instead.
            command
                .env("TREELINED_UPDATE", "1")
                .env("UPDATE_README", "1");
        }
        let status = command.status()?;
        ensure!(status.success(), "{folder}: {} failed", words.join(" "));
    }
    Ok(())
}
