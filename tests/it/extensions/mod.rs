//! Extensions, which are clients that the daemon starts. Here they are shell scripts.

mod answers;
mod rights;
mod sessions;
mod supervision;

use crate::config::{file, script};
use crate::harness::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shell functions for the scripts: `introduce CAPABILITIES` sends `initialize` and waits for the response. `answer
/// LINE RESULT` answers the question on a line.
const FUNCTIONS: &str = r#"
introduce() {
  printf '%s\n' '{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"the script"},"capabilities":'"$1"'}}'
  read -r line
}
answer() {
  id=$(printf '%s\n' "$1" | sed 's/.*"eventId":"\([^"]*\)".*/\1/')
  printf '%s\n' '{"jsonrpc":"2.0","id":"a","method":"answer_event","params":{"eventId":"'"$id"'","result":'"$2"'}}'
}
"#;

/// The body of a script that introduces itself and writes all lines that it reads to this file.
fn listener(heard: &Path) -> String {
    let heard = heard.display();
    format!("introduce '{{}}'; while read -r line; do printf '%s\\n' \"$line\" >> {heard}; done")
}

/// Writes a configuration file with one extension, from its settings and the body of its script.
fn configured(home: &Arc<Home>, settings: &str, body: &str) -> String {
    let program = script(home, "extension", &format!("{FUNCTIONS}{body}"));
    let text = format!("[[extensions]]\nname = \"todo\"\nargv = [{program:?}]\n{settings}\n");
    file(home, &text)
}

/// A daemon on stdio with this extension. Its client on stdio has introduced itself.
fn started(home: &Arc<Home>, settings: &str, body: &str) -> Daemon {
    let path = configured(home, settings, body);
    let mut daemon = Daemon::start_in(home, &["--config", &path], &[]);
    daemon.ignore_bookkeeping();
    daemon.init(json!({}));
    daemon
}

/// The lines of a file, none if it does not exist.
fn lines(path: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether a line of the file has this text.
fn has(path: &PathBuf, text: &str) -> bool {
    lines(path).iter().any(|line| line.contains(text))
}
