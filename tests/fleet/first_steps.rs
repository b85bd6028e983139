//! The first steps of schema/fleet.md, as the document says. Servers on loopback take the place of its containers, so
//! only addresses and folders differ.

use crate::single::{Single, free_port, program};
use crate::support::{Machine, append};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DOCUMENT: &str = include_str!("../../schema/fleet.md");
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const PATIENCE: Duration = Duration::from_secs(60);

/// The indented block of the document whose first line begins with this text, without the indentation.
#[track_caller]
pub(crate) fn block(start: &str) -> String {
    let first = format!("\n    {start}");
    let at = DOCUMENT.find(&first).unwrap() + 1;
    let lines = DOCUMENT[at..].lines();
    let lines = lines.map_while(|line| line.strip_prefix("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Replaces a text that must be there.
#[track_caller]
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old} is not in {text}");
    text.replace(old, new)
}

/// The strings of the list that follows `key` in a line.
#[track_caller]
fn list<'a>(line: &'a str, key: &str) -> Vec<&'a str> {
    let (_, rest) = line.split_once(&format!("{key}: [")).unwrap();
    let (list, _) = rest.split_once(']').unwrap();
    list.split(", ")
        .map(|item| item.trim_matches('"'))
        .collect()
}

/// Three servers with the document's `nats.conf`, and with the commands, the environment and the ports of its
/// `compose.yaml`.
struct Containers {
    folder: TempDir,
    compose: String,
    passwords: HashMap<String, String>,
    /// For each port in the document, the port that is used here.
    ports: HashMap<String, u16>,
    routes: HashMap<&'static str, u16>,
    processes: HashMap<&'static str, Child>,
}

impl Containers {
    /// `None` if the tests run without servers.
    fn start() -> Option<Self> {
        std::env::var_os("TREELINED_FLEET")?;
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("bash")
            .args(["-c", block("umask 077").lines().next().unwrap()])
            .current_dir(folder.path())
            .status();
        assert!(made.unwrap().success());
        let passwords = fs::read_to_string(folder.path().join(".env")).unwrap();
        let passwords = passwords.lines().map(|line| line.split_once('=').unwrap());
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut containers = Self {
            passwords: passwords.map(owned).collect(),
            compose: block("services:"),
            ports: HashMap::new(),
            routes: NODES.map(|node| (node, free_port())).into(),
            processes: HashMap::new(),
            folder,
        };
        for node in NODES {
            containers.launch(node);
        }
        Some(containers)
    }

    /// The lines of a node in `compose.yaml`. The lines of the first node are the defaults of the others.
    fn service(&self, node: &str) -> String {
        let (_, rest) = self.compose.split_once(&format!("  {node}: ")).unwrap();
        let end = rest.find("\n  n").or(rest.find("\nvolumes")).unwrap();
        rest[..end].to_owned()
    }

    fn launch(&mut self, node: &'static str) {
        let service = self.service(node);
        assert!(service.contains("*node") || service.contains("&node"));
        let [published] = list(&service, "ports")[..] else {
            panic!("{service}")
        };
        let (published, inside) = published.split_once(':').unwrap();
        assert_eq!(inside, "4222");
        let port = *self
            .ports
            .entry(published.to_owned())
            .or_insert_with(free_port);
        let volumes = list(&service, "volumes");
        assert!(
            volumes.contains(&"./nats.conf:/etc/nats.conf"),
            "{volumes:?}"
        );
        assert!(
            volumes.contains(&format!("{node}:/data").as_str()),
            "{volumes:?}"
        );

        let place = self.folder.path().join(node);
        fs::create_dir_all(&place).unwrap();
        let data = format!("{:?}", place.join("data"));
        let mut config = replaced(&block("jetstream {"), "/data", &data);
        let own = format!("127.0.0.1:{}", self.routes[node]);
        config = replaced(&config, "0.0.0.0:6222", &own);
        for other in NODES {
            let route = format!("127.0.0.1:{}", self.routes[other]);
            config = replaced(&config, &format!("{other}:6222"), &route);
        }
        let config_path = place.join("nats.conf");
        fs::write(&config_path, config).unwrap();

        let arguments = list(&service, "command")
            .into_iter()
            .map(|argument| match argument {
                "/etc/nats.conf" => config_path.clone(),
                other => PathBuf::from(other),
            });
        let arguments: Vec<PathBuf> = arguments.collect();
        let first = self.service("n1");
        let environment = list(&first, "environment");
        let environment = environment
            .into_iter()
            .map(|name| (name, &self.passwords[name]));
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(place.join("log"));
        let process = Command::new(program())
            .args(arguments)
            .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.unwrap())
            .spawn();
        self.processes.insert(node, process.unwrap());
    }

    fn kill(&mut self, node: &str) {
        let mut process = self.processes.remove(node).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// A machine with the document's `config.toml` for this user.
    fn machine(&self, user: &str) -> Machine {
        let text = replaced(&block("[team]\n    engine = \"nats\""), "alice", user);
        let mut text = replaced(&text, "PASSWORD", &self.passwords[&user.to_uppercase()]);
        for (port, here) in &self.ports {
            text = replaced(
                &text,
                // The quotation mark belongs to the text, since a port of this machine may begin with the digits of
                // another port in the document.
                &format!("127.0.0.1:{port}\""),
                &format!("127.0.0.1:{here}\""),
            );
        }
        assert_eq!(
            text.matches("127.0.0.1").count(),
            self.ports.len(),
            "{text}"
        );
        Machine::configured(&text)
    }

    /// The value of `--log` for a user.
    fn log(&self, user: &str, password: &str) -> String {
        format!("nats://{user}:{password}@127.0.0.1:{}", self.ports["4222"])
    }

    /// Runs the command of the administrator, on the machine of a member.
    fn create(&self, machine: &Machine, command: &[&str]) -> Output {
        let steps = block("read -rs ADMIN_PASSWORD");
        let line = steps.lines().nth(1).unwrap();
        let (variable, line) = line.split_once(" treelined ").unwrap();
        assert_eq!(line.split(' ').collect::<Vec<_>>(), command);
        let (name, log) = variable.split_once('=').unwrap();
        let log = replaced(log, "$ADMIN_PASSWORD", &self.passwords["ADMIN"]);
        let log = replaced(
            &log,
            "127.0.0.1:4222",
            &format!("127.0.0.1:{}", self.ports["4222"]),
        );
        let mut run = machine.command(command);
        run.env(name, log.trim_matches('"')).output().unwrap()
    }

    fn logs(&self) -> String {
        let log = |node: &&str| fs::read_to_string(self.folder.path().join(node).join("log"));
        NODES.iter().filter_map(|node| log(node).ok()).collect()
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for process in self.processes.values_mut() {
            let _killed = process.kill();
            let _ended = process.wait();
        }
    }
}

/// The arguments of the document's command that begins with this text, with an id in place of `ID`.
#[track_caller]
fn command(start: &str) -> Vec<String> {
    let commands = block("treelined doctor --cluster ");
    let line = commands
        .lines()
        .find(|line| line.starts_with(start))
        .unwrap();
    let (line, _) = line.split_once('#').unwrap();
    let words = line.split_whitespace().skip(1);
    words.map(|word| word.replace("ID", "first")).collect()
}

#[track_caller]
fn done(machine: &Machine, start: &str) -> String {
    let arguments = command(start);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = machine.run(&arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until a file has these bytes.
#[track_caller]
fn await_text(path: impl Fn() -> Option<PathBuf>, expected: &[u8]) {
    let began = Instant::now();
    while path().and_then(|path| fs::read(path).ok()).as_deref() != Some(expected) {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The compose file once passed no passwords to the servers and published only one of three nodes, and the
/// configuration beside it required TLS, which the servers did not have.
#[test]
fn the_first_steps_of_the_document_work() {
    let Some(mut containers) = Containers::start() else {
        return;
    };
    let (alice, bob, carol) = (
        containers.machine("alice"),
        containers.machine("bob"),
        containers.machine("carol"),
    );
    // The servers find each other and elect a leader.
    let create = ["doctor", "--cluster", "--create"];
    let began = Instant::now();
    while !containers.create(&alice, &create).status.success() {
        assert!(
            began.elapsed() < 2 * PATIENCE,
            "{:?}\n{}",
            containers.create(&alice, &create),
            containers.logs()
        );
    }
    let said = done(&alice, "treelined doctor");
    for fact in [
        "n1",
        "n2",
        "n3",
        "survives the loss of 1 server",
        "sync_interval: always",
    ] {
        assert!(said.contains(fact), "{fact} is not in {said}");
    }

    let path = alice.make("first", 3, 10);
    alice.make("second", 1, 10);
    let said = done(&alice, "treelined push --all");
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("bytes pushed"))
            .count(),
        2,
        "{said}"
    );
    let said = done(&bob, "treelined pull --list");
    assert!(said.contains("first") && said.contains("second"), "{said}");

    let follow = command("treelined pull ID --follow");
    let follow: Vec<&str> = follow.iter().map(String::as_str).collect();
    let mut following = bob.command(&follow).stdout(Stdio::null()).spawn().unwrap();
    let there = || bob.find("first");
    await_text(there, &fs::read(&path).unwrap());
    append(&path, 3..4, 10);
    alice.done(&["push", "first", "--json"]);
    await_text(there, &fs::read(&path).unwrap());
    following.kill().unwrap();
    following.wait().unwrap();

    // The other team has its own stream. The password of one team does not open the stream of another.
    carol.until_sound(&create);
    assert_eq!(done(&carol, "treelined pull --list"), "");
    let carol_log = containers.log("carol", &containers.passwords["CAROL"]);
    assert!(
        alice
            .done(&["pull", "--list", "--json", "--log", &carol_log])
            .is_empty()
    );
    let wrong = containers.log("alice", &containers.passwords["BOB"]);
    assert_eq!(
        alice.kind(&["pull", "--list", "--log", &wrong]),
        "logDenied"
    );

    // Each node can be ended.
    for node in NODES {
        containers.kill(node);
        let entries = fs::read_to_string(&path).unwrap().lines().count() - 1;
        append(&path, entries..entries + 1, 10);
        alice.until_sound(&["push", "first"]);
        containers.launch(node);
        bob.until_sound(&["pull", "first"]);
        assert_eq!(bob.text("first"), fs::read(&path).unwrap());
        // All copies are current before the next node is ended.
        alice.until_sound(&["doctor", "--cluster"]);
    }
}

/// The program accepts the list of all members in the document as a configuration, and the defaults in the list are
/// correct.
#[test]
fn the_document_has_the_members_of_the_configuration() {
    let blocks = DOCUMENT
        .split("All members of the section:")
        .nth(1)
        .unwrap();
    let lines = blocks.lines().skip_while(|line| line.is_empty());
    let lines = lines.map_while(|line| line.strip_prefix("    "));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let machine = Machine::configured(&text);
    let output = machine.run(&["config"]);
    assert!(output.status.success(), "{output:?}");
    let whole = String::from_utf8(output.stdout).unwrap();
    let least = Machine::configured("[team]\nengine = \"nats\"\nservers = [\"nats://h\"]\n");
    let least = String::from_utf8(least.run(&["config"]).stdout).unwrap();
    for line in text.lines().skip(1) {
        let key = line.split(' ').next().unwrap();
        assert!(whole.contains(key), "{key} is not in {whole}");
    }
    for line in text.lines().filter(|line| line.contains("the default")) {
        let given = line.split('#').next().unwrap().trim_end();
        let key = given.split(' ').next().unwrap();
        let defaults = least.lines().filter(|line| line.starts_with(key));
        for default in defaults {
            assert!(default.starts_with(given), "{given}: {default}");
        }
    }
}

/// An import once did not say that its files are not in the stream of the team yet.
#[test]
fn an_import_says_how_its_sessions_reach_the_log() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let machine = server.machine("");
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/import/claude-code/valid_session.jsonl"
    );
    let output = machine.run(&["import", source]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && said.contains("treelined push --all"),
        "{said}"
    );
    assert!(machine.done(&["pull", "--list", "--json"]).is_empty());
    assert_eq!(machine.done(&["push", "--all", "--json"]).len(), 1);
    assert_eq!(machine.done(&["pull", "--list", "--json"]).len(), 1);
    let again = machine.run(&["import", source]);
    let said = String::from_utf8(again.stdout).unwrap();
    assert!(!said.contains("push"), "{said}");
}
