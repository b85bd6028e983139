//! `tests/bench/rows` refuses measured rows that are older than what they depend on.
//!
//! README.md once said for days that the daemon starts 274 times faster than pi, when the measured factor was 87 to
//! 160: the release profile and the program had changed since, and no check compared them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::Home;
use crate::readme::root;

/// A repository with the rows and the files on which they depend.
struct Repository(PathBuf);

const CARGO: &str = "[package]\nname = \"x\"\n\n[profile.release]\nlto = \"thin\"\n";
const COUNTS: &str = "# operation\tinstructions; rustc 1.95.0 (x), x86_64, avx2\nopen 10k\t1000\n";

impl Repository {
    fn new(at: &Path) -> Self {
        let repository = Self(at.to_owned());
        repository.git(&["init", "--quiet"]);
        fs::create_dir_all(at.join("tests/bench")).unwrap();
        fs::copy(root("tests/bench/rows"), at.join("tests/bench/rows")).unwrap();
        repository.put("Cargo.toml", CARGO);
        repository.put("tests/bench/counts.tsv", COUNTS);
        repository.commit();
        repository
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(arguments)
            .current_dir(&self.0)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn put(&self, path: &str, text: &str) {
        fs::write(self.0.join(path), text).unwrap();
    }

    fn commit(&self) -> String {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message", "x"]);
        self.git(&["rev-parse", "--short=12", "HEAD"])
    }

    /// Writes both documents as `tests/bench/run --write` does.
    fn record(&self, commit: &str) {
        let rows = |cells: &str| {
            format!(
                "# x\n\n<!-- speed -->\nMeasured at commit `{commit}` (2026-11-24) on 2 processors.\n\n{cells}<!-- /speed -->\n"
            )
        };
        self.put(
            "tests/bench/README.md",
            &rows("| start | 2 ms | 9 ms | 4 × | – |\n"),
        );
        self.put("README.md", &rows("| start | 2 ms | 9 ms | 4 × |\n"));
    }

    /// The error of the script about the rows; `None` if it accepts them.
    fn complaint(&self) -> Option<String> {
        let output = Command::new(self.0.join("tests/bench/rows")).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.success(), said.is_empty(), "{said}");
        (!said.is_empty()).then_some(said)
    }

    #[track_caller]
    fn is_refused_for(&self, reason: &str) {
        let said = self.complaint().unwrap_or_default();
        assert!(said.contains(reason), "{said}");
        assert!(said.contains("tests/bench/run --quick --write"), "{said}");
    }
}

#[test]
fn rows_are_refused_once_what_they_depend_on_has_changed() {
    let home = Home::new();
    let repository = Repository::new(&home.files());
    repository.put("README.md", "");
    repository.put("tests/bench/README.md", "");
    assert_eq!(repository.complaint(), None);
    let unnamed = "<!-- speed -->\n| start | 2 ms | 9 ms | 274 × |\n<!-- /speed -->\n";
    repository.put("README.md", unnamed);
    repository.is_refused_for("do not name one commit");

    let measured = repository.git(&["rev-parse", "--short=12", "HEAD"]);
    repository.record(&measured);
    repository.commit();
    assert_eq!(repository.complaint(), None);

    // The rows stay valid after a new dependency, a comment in the profile, or faster operations.
    let cargo = CARGO.replace("lto", "# Why.\nlto") + "\n[dependencies]\nanyhow = \"1\"\n";
    repository.put("Cargo.toml", &cargo);
    repository.put("tests/bench/counts.tsv", &COUNTS.replace("1000", "100"));
    assert_eq!(repository.complaint(), None);
    repository.put("tests/bench/counts.tsv", &COUNTS.replace("1000", "1099"));
    assert_eq!(repository.complaint(), None);

    repository.put("tests/bench/counts.tsv", &COUNTS.replace("1000", "1101"));
    repository.is_refused_for("not as fast as");
    // Counts of another build say nothing.
    let rebuilt = COUNTS.replace("avx2", "avx2, build 2");
    repository.put("tests/bench/counts.tsv", &rebuilt.replace("1000", "1101"));
    assert_eq!(repository.complaint(), None);
    repository.put("tests/bench/counts.tsv", &COUNTS.replace("1.95", "1.96"));
    repository.is_refused_for("not as fast as");
    repository.put("tests/bench/counts.tsv", COUNTS);

    repository.put("Cargo.toml", &CARGO.replace("thin", "off"));
    repository.is_refused_for("release profile");
    let of_a_package = "\n[profile.release.package.treelined]\ncodegen-units = 4\n";
    repository.put("Cargo.toml", &format!("{CARGO}{of_a_package}"));
    repository.is_refused_for("release profile");
    repository.put("Cargo.toml", CARGO);

    let readme = fs::read_to_string(home.files().join("README.md")).unwrap();
    repository.put("README.md", &readme.replace("4 ×", "274 ×"));
    repository.is_refused_for("274 ×");
    repository.put("README.md", &readme);
    assert_eq!(repository.complaint(), None);

    repository.put("tests/bench/README.md", "");
    repository.is_refused_for("do not name one commit");
    repository.record("0123456789ab");
    repository.is_refused_for("not in the history");
}
