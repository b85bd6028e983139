//! Measures the time that the recorder adds to a message and its answer, compared with a bare pipe.
//!
//!     cargo build --release && cargo run --release -p treelined-acp --example overhead
//!
//! The agent is an echo program. Each round sends a message of about 300 bytes and waits for a session update of the
//! same size. The rounds go through pipes alone and through the recorder, by turns. The recorder keeps both messages in
//! its journal. With the argument `turns`, each round is a prompt and the end of its turn. The recorder then also
//! writes to a session during the measurement.
#![allow(clippy::print_stdout, reason = "the figures are its output")]

use anyhow::Context;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 20_000;
/// Rounds before the measurement.
const WARM_UP: usize = 1_000;

fn main() -> anyhow::Result<()> {
    let own = std::env::current_exe()?;
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("echo") {
        return echo();
    }
    let has_turns = argument.as_deref() == Some("turns");
    let programs = own.parent().and_then(Path::parent);
    let programs = programs.context("the folder of the built programs")?;
    let folder =
        std::env::temp_dir().join(format!("treelined-acp-overhead-{}", std::process::id()));
    let mut bare = Command::new(&own);
    bare.arg("echo");
    let mut recorded = Command::new(programs.join("treelined-acp"));
    recorded.arg("--session-dir").arg(folder.join("sessions"));
    recorded.arg("--state").arg(folder.join("state"));
    let daemon = std::env::var_os("TREELINED_BIN").map(Into::into);
    recorded
        .arg("--daemon")
        .arg(daemon.unwrap_or_else(|| programs.join("treelined")));
    recorded.arg("--").arg(&own).arg("echo");

    let mut ways = [Agent::start(bare)?, Agent::start(recorded)?];
    for agent in &mut ways {
        agent.ask(
            &request(0, "session/new", &format!(r#""cwd":{folder:?}"#)),
            1,
        )?;
    }
    let text = "word ".repeat(45);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..WARM_UP + ROUNDS {
        let (message, answers) = match has_turns {
            true => {
                let prompt =
                    format!(r#""sessionId":"s","prompt":[{{"type":"text","text":"{text}"}}]"#);
                (request(round + 1, "session/prompt", &prompt), 2)
            }
            false => (
                request(round + 1, "_overhead/say", &format!(r#""text":"{text}""#)),
                1,
            ),
        };
        for (agent, times) in ways.iter_mut().zip(&mut times) {
            let time = agent.ask(&message, answers)?;
            if round >= WARM_UP {
                times.push(time);
            }
        }
    }
    for agent in ways {
        agent.end()?;
    }
    std::fs::remove_dir_all(folder)?;
    let [bare, recorded] = times.map(quantiles);
    println!("µs for a message and its answer, {ROUNDS} rounds");
    println!("{:<12}{:>8}{:>8}", "", "p50", "p99");
    for (name, [p50, p99]) in [("bare pipe", bare), ("recorder", recorded)] {
        println!("{name:<12}{p50:>8.1}{p99:>8.1}");
    }
    let [p50, p99] = [recorded[0] - bare[0], recorded[1] - bare[1]];
    println!("{:<12}{p50:>8.1}{p99:>8.1}", "added");
    Ok(())
}

fn request(id: usize, method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}}}}}\n")
}

/// Answers each line with a session update of a fixed text. Also answers a prompt with the end of its turn.
fn echo() -> anyhow::Result<()> {
    let text = "word ".repeat(40);
    let update = format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    );
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let request: serde_json::Value = serde_json::from_str(&line)?;
        let id = request.get("id").context("the id")?;
        let result = match request.get("method").and_then(serde_json::Value::as_str) {
            Some("session/new") => r#"{"sessionId":"s"}"#,
            Some("session/prompt") => {
                writeln!(stdout, "{update}")?;
                r#"{"stopReason":"end_turn"}"#
            }
            _ => {
                writeln!(stdout, "{update}")?;
                continue;
            }
        };
        writeln!(stdout, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
    }
    Ok(())
}

struct Agent {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    answer: String,
}

impl Agent {
    fn start(mut command: Command) -> anyhow::Result<Agent> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).context("the agent has pipes")?;
        Ok(Agent {
            child,
            stdin,
            stdout: BufReader::new(stdout),
            answer: String::new(),
        })
    }

    /// Sends a message, and returns the time until `answers` lines have arrived.
    fn ask(&mut self, message: &str, answers: usize) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.stdin.write_all(message.as_bytes())?;
        for _answer in 0..answers {
            self.answer.clear();
            let length = self.stdout.read_line(&mut self.answer)?;
            anyhow::ensure!(length > 0, "the agent has ended");
        }
        Ok(began.elapsed())
    }

    fn end(mut self) -> anyhow::Result<()> {
        drop(self.stdin);
        self.child.wait()?;
        Ok(())
    }
}

/// The median and the 99th percentile in µs.
fn quantiles(mut times: Vec<Duration>) -> [f64; 2] {
    times.sort_unstable();
    [50, 99].map(|percent| {
        let at = times.len() * percent / 100;
        times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    })
}
