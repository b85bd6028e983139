//! The completions of entries and commands, and the lists of commands.

use super::entries::tour;
use super::*;
use std::collections::BTreeSet;
use std::process::Command;

/// The candidates for the last word, each with its description.
fn offered(home: &Home, shell: &str, words: &[&str]) -> Vec<String> {
    let index = (words.len() - 1).to_string();
    let env = [
        ("TREELINED_COMPLETE", shell),
        ("_CLAP_COMPLETE_INDEX", &index),
        ("_CLAP_IFS", "\n"),
    ];
    let output = home.run(&[&["--"], words].concat(), &env, "");
    let text = output.clean().text();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_labels_and_ids_of_the_session_on_the_line() {
    let home = Home::new();
    tour(&home);
    Log::new("other001")
        .user("99990000", "", "of another session")
        .store(&home, "y_other001.jsonl");
    let ids = |words: &[&str]| offered(&home, "bash", &[&["treelined"], words].concat());
    for words in [
        &["go", "11113"][..],
        &["go", "tour0001", "11113"],
        &["go", "--latest", "11113"],
        &["go", "A tour", "--summary", "11113"],
        &["show", "tour0001", "11113"],
        &["show", "--latest", "11113"],
        &["label", "11113"],
        &["compare", "11113"],
        &["compare", "tour0001", "22224444", "11113"],
        &["compare", "22224444", "11113"],
        &["stats", "--branch", "11113"],
        &["tree", "--expand", "11113"],
        &["export", "A tour", "--branch", "11113"],
        &["export", "A tour", "--subtree", "11113"],
    ] {
        assert_eq!(ids(words), ["11113333"], "{words:?}");
    }
    assert_eq!(ids(&["go", "tw"]), ["two ideas"]);
    assert_eq!(ids(&["go", "other001", "9"]), ["99990000"]);
    assert_eq!(ids(&["go", "other001", "1"]), Vec::<String>::new());
    let both = ids(&["go", "t"]);
    assert_eq!(both, ["two ideas", "tour0001"]);
    let described = offered(&home, "fish", &["treelined", "go", "tour0001", "5"]);
    assert_eq!(described, ["55557777\tassistant: Added. It works."]);
    home.run(&["rm", "tour0001"], &[], "").clean();
    for verb in ["restore", "purge"] {
        assert_eq!(ids(&[verb, "tour"]), ["tour0001"], "{verb}");
        assert_eq!(ids(&[verb, "A"]), ["A tour"], "{verb}");
    }
    assert_eq!(ids(&["mv", "/pro"]), ["/project"]);
}

/// A label may have blanks, and bash inserts a candidate without quoting it.
#[test]
fn bash_completes_a_label_as_one_word() {
    let home = Home::new();
    tour(&home);
    let script = home.run(&["completions", "bash"], &[], "").clean().text();
    let script = home.file("complete.bash", script.as_bytes());
    let line = format!(
        "source {}; COMP_WORDS=(treelined go tw); COMP_CWORD=2; _clap_complete_treelined treelined tw go; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let folder = binary().parent().unwrap().display().to_string();
    let mut bash = Command::new("bash");
    for (name, value) in home.command(&[], &[]).get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    bash.args(["--norc", "-c", &line])
        .env(
            "PATH",
            format!("{folder}:{}", std::env::var("PATH").unwrap()),
        )
        .current_dir(home.cwd());
    let said = String::from_utf8(bash.output().unwrap().stdout).unwrap();
    assert_eq!(said, "two\\ ideas\n");
}

/// The help, the man pages, the completions and README.md once had four separate lists, and one lacked a command.
#[test]
fn every_list_of_the_commands_has_the_same_commands() {
    let home = Home::new();
    let names = |lines: Vec<String>| -> BTreeSet<String> { lines.into_iter().collect() };
    let help = home
        .run(&["--help"], &[("COLUMNS", "200")], "")
        .clean()
        .text();
    let (_, listed) = help.split_once("\n\nUsage: ").unwrap();
    let (listed, _) = listed.split_once("Options of every command:").unwrap();
    let rows = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let in_help: Vec<(String, String)> = rows
        .map(|row| {
            let (name, about) = row.split_once(' ').unwrap();
            (name.to_owned(), about.trim().to_owned())
        })
        .collect();
    let commands = names(in_help.iter().map(|(name, _)| name.clone()).collect());
    assert!(commands.len() > 30, "{commands:?}");

    let out = home.files().join("man");
    home.run(&["man", "--out", out.to_str().unwrap()], &[], "")
        .clean();
    for (name, about) in &in_help {
        let page = fs::read_to_string(out.join(format!("treelined-{name}.1"))).unwrap();
        // The commands of other packages have the help of their own programs.
        if ["tui", "acp", "mcp", "setup", "files"].contains(&name.as_str()) {
            continue;
        }
        let about = about.replace('-', "\\-");
        assert!(
            page.contains(&format!(" \\- {about}\n")),
            "{name}: {about}: {page}"
        );
    }

    let mut completed = offered(&home, "bash", &["treelined", ""]);
    completed.retain(|word| !word.starts_with('-') && word != "help");
    assert_eq!(names(completed), commands);
    let script = home.run(&["completions", "bash"], &[], "").clean().text();
    let named = script
        .lines()
        .find_map(|line| line.strip_prefix("# Completes: "));
    let named = named.unwrap().split(", ").map(str::to_owned).collect();
    assert_eq!(names(named), commands);

    let readme = fs::read_to_string(crate::readme::root("README.md")).unwrap();
    let (_, table) = readme.split_once("<!-- commands -->").unwrap();
    let (table, _) = table.split_once("<!-- /commands -->").unwrap();
    for (name, about) in &in_help {
        let row = table.lines().find(|line| {
            let command = line.strip_prefix("| `treelined ").unwrap_or_default();
            command.split([' ', '`']).next() == Some(name)
        });
        let row = row.unwrap_or_else(|| panic!("README.md has no row of {name}"));
        assert!(row.contains(about), "{row}");
    }
}
