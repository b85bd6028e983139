//! A terminal per test: a tmux server runs the program, receives keys and returns the screen.
//!
//! No test relies on a sleep. Each check waits for a condition, and its failure shows the screen.

use crate::program::daemon;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Maximum wait for a condition; generous, for machines under load.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Tmux {
    socket: PathBuf,
    pub folder: tempfile::TempDir,
}

/// Returns whether tmux is missing, and prints SKIPPED then, so that the test does not pass silently.
pub fn is_missing() -> bool {
    let found = Command::new("tmux")
        .arg("-V")
        .output()
        .is_ok_and(|it| it.status.success());
    if !found {
        assert!(
            std::env::var_os("TREELINED_TMUX").is_none(),
            "tmux is required here"
        );
        eprintln!("SKIPPED: there is no tmux (apt-get install tmux)");
    }
    !found
}

impl Tmux {
    /// Starts a shell in a terminal of this size, in a new working directory.
    pub fn new(columns: u16, rows: u16) -> Self {
        let folder = tempfile::Builder::new().prefix("tui").tempdir().unwrap();
        let tmux = Self {
            socket: folder.path().join("tmux"),
            folder,
        };
        let sessions = tmux.folder.path().join("sessions");
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(sessions)
            .unwrap();
        std::fs::create_dir(tmux.folder.path().join("config")).unwrap();
        let size = [columns.to_string(), rows.to_string()];
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &size[0],
            "-y",
            &size[1],
            "env PS1='$ ' sh",
        ]);
        tmux.wait("a shell", |screen| screen.contains('$'));
        tmux
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(args);
        command.current_dir(self.folder.path());
        for name in ["TMUX", "TREELINED_LOG", "TREELINED_SUMMARIZER", "NO_COLOR"] {
            command.env_remove(name);
        }
        command
            .env("TREELINED_BIN", daemon())
            .env("TREELINED_SESSION_DIR", self.folder.path().join("sessions"))
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8");
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    /// Writes a file into the session directory.
    pub fn session(&self, id: &str, text: &str) -> PathBuf {
        let cwd = self.folder.path().to_string_lossy().replace('/', "-");
        let folder = self
            .folder
            .path()
            .join("sessions")
            .join(format!("-{cwd}--"));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("2026-11-21T19-00-00-000Z_{id}.jsonl"));
        let text = text.replace("CWD", &self.folder.path().to_string_lossy());
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Starts the program from the shell.
    pub fn start(&self, args: &str) {
        let program = env!("CARGO_BIN_EXE_treelined-tui");
        self.typed(&format!("{program} {args}"));
        self.keys("Enter");
    }

    /// Runs a command of tmux.
    pub fn run_in_server(&self, command: &str) {
        let args: Vec<&str> = command.split(' ').collect();
        self.run(&args);
    }

    /// Presses Esc and waits for its effect: a key that arrives with Esc is read as this key with Alt.
    #[track_caller]
    pub fn escape(&self) {
        let before = self.screen();
        self.run(&["send-keys", "Escape"]);
        self.wait("an effect of Esc", |screen| screen != before);
    }

    /// Presses keys by tmux's names. [`Tmux::escape`] presses Esc.
    pub fn keys(&self, names: &str) {
        assert!(!names.contains("Escape"), "{names}");
        let mut args = vec!["send-keys"];
        args.extend(names.split(' '));
        self.run(&args);
    }

    pub fn typed(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.run(&[
            "resize-window",
            "-x",
            &columns.to_string(),
            "-y",
            &rows.to_string(),
        ]);
    }

    /// Returns the screen as text.
    pub fn screen(&self) -> String {
        let output = self.run(&["capture-pane", "-p"]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the screen with its colours.
    pub fn coloured(&self) -> String {
        let output = self.run(&["capture-pane", "-p", "-e"]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the text copied last.
    pub fn clipboard(&self) -> Option<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).arg("show-buffer");
        let output = command.output().unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Returns the value of a tmux format, such as `#{alternate_on}`.
    pub fn says(&self, format: &str) -> String {
        let output = self.run(&["display-message", "-p", format]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[track_caller]
    pub fn wait(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if condition(&screen) {
                return screen;
            }
            assert!(began.elapsed() < PATIENCE, "no {what}, but\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Replaces the text that differs between runs: the folder, whose name always has the same length, and the ages of
    /// branches. A short line has only the end of the folder.
    fn masked(&self, screen: &str) -> String {
        let here = self.folder.path().to_string_lossy();
        let name = self.folder.path().file_name().unwrap().to_string_lossy();
        let screen = screen
            .replace(&*here, &format!("{:…<1$}", "/tmp/", here.len()))
            .replace(&*name, &"…".repeat(name.len()));
        let lines = screen.split_inclusive('\n').map(without_age_of_branch);
        lines.collect()
    }

    /// Waits until the screen with its colours is that of `expected/FOLDER/NAME.ansi`. `UPDATE_SCREENS=1` writes the
    /// file instead, once the screen contains `text`.
    #[track_caller]
    pub fn check_coloured(&self, folder: &str, name: &str, text: &str) {
        let clean = |screen: &str| {
            let lines: Vec<String> = self.masked(screen).lines().map(without_age).collect();
            lines.join("\n").trim_end().to_owned() + "\n"
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/terminal/expected")
            .join(folder);
        let path = folder.join(format!("{name}.ansi"));
        if std::env::var_os("UPDATE_SCREENS").is_some() {
            self.wait_for(text);
            // The rest of the screen may not have been drawn yet.
            std::thread::sleep(Duration::from_millis(700));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, clean(&self.coloured())).unwrap();
            return;
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        let began = Instant::now();
        loop {
            let found = clean(&self.coloured());
            if found == expected {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{}:\n{expected}\nis\n{found}\n{found:?}",
                path.display()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen is that of `expected/NAME.txt`. `UPDATE_SCREENS=1` writes the file instead,
    /// once the screen contains `text`.
    #[track_caller]
    pub fn check(&self, name: &str, text: &str) {
        let clean = |screen: &str| {
            let screen = self.masked(screen);
            let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
            lines.join("\n").trim_end().to_owned() + "\n"
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal/expected");
        let path = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_SCREENS").is_some() {
            self.wait_for(text);
            // The rest of the screen may not have been drawn yet.
            std::thread::sleep(Duration::from_millis(700));
            std::fs::write(&path, clean(&self.screen())).unwrap();
            return;
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        self.wait(&format!("{name}:\n{expected}"), |screen| {
            clean(screen) == expected
        });
    }

    /// Checks that the program has ended and the terminal is restored: the shell's screen, its cursor, its
    /// echo.
    ///
    /// The program restores the echo after the screen, so the check waits for the shell: a command typed in between was
    /// run but not seen.
    #[track_caller]
    pub fn is_restored(&self) {
        let began = Instant::now();
        let format = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{pane_current_command}";
        loop {
            let says = self.says(format);
            if matches!(&*says, "0 0 1 sh" | "0 0 1 bash") {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{says}\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.typed("echo as it $((40+2))");
        self.keys("Enter");
        let screen = self.wait_for("as it 42");
        assert!(screen.contains("echo as it"), "what is typed is seen again");
    }

    /// Returns the running daemons.
    pub fn daemons(&self) -> Vec<u32> {
        self.processes(&daemon())
    }

    /// Returns the process ids of `program` among the shell's children and grandchildren.
    pub fn processes(&self, program: &Path) -> Vec<u32> {
        // The system cuts names of processes to 15 bytes.
        let name = program.file_name().unwrap().to_string_lossy();
        let name = name.get(..15).unwrap_or(&name);
        let shell: u32 = self.says("#{pane_pid}").parse().unwrap();
        let mut found = Vec::new();
        let mut parents = vec![shell];
        while let Some(parent) = parents.pop() {
            for child in children(parent) {
                let comm =
                    std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
                if comm.trim_end() == name {
                    found.push(child);
                }
                parents.push(child);
            }
        }
        found
    }
}

/// Replaces the age of a session at the end of a line, which depends on the clock. Ages of weeks once stayed, so the tests
/// began to fail a week after the time of their session.
fn without_age(line: &str) -> String {
    let Some((before, rest)) = line.trim_end().rsplit_once(' ') else {
        return line.to_owned();
    };
    let (age, style) = rest.split_once('\u{1b}').unwrap_or((rest, ""));
    let digits = age.trim_end_matches(['m', 'h', 'd', 'w', 'y']);
    let is_age = age == "now"
        || digits.len() + 1 == age.len() && digits.chars().all(|char| char.is_ascii_digit());
    match is_age && !digits.is_empty() {
        true if style.is_empty() => format!("{} AGE", before.trim_end()),
        true => format!("{} AGE\u{1b}{style}", before.trim_end()),
        false => line.trim_end().to_owned(),
    }
}

fn children(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten();
    for task in tasks {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let _ended = command
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
    }
}

/// A row of branches without the text that depends on the clock: the age of the branch, and the blanks whose number
/// depends on the length of the age.
fn without_age_of_branch(line: &str) -> String {
    let Some((before, after)) = line.split_once(" messages · ") else {
        return line.to_owned();
    };
    let (text, count) = before.rsplit_once(' ').unwrap_or_default();
    let rest = after.trim_start_matches(char::is_alphanumeric);
    format!("{} {count} messages · AGE{rest}", text.trim_end())
}
