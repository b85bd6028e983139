use super::ClaudeCode;
use crate::import::testing::{Outline, check_calls, outline, read, real_files, records};

/// The files of `expect.tsv`, whose numbers another program found.
#[test]
fn real_files_have_the_tree_that_another_program_found() {
    let files = real_files("claude-code");
    let Some(table) = files.iter().find(|path| path.ends_with("expect.tsv")) else {
        return;
    };
    let table_text = std::fs::read_to_string(table).unwrap();
    for line in table_text.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let path = table.with_file_name(columns[0]);
        let source = std::fs::read(&path).unwrap();
        let members = read(&ClaudeCode, path.to_str().unwrap(), &source);
        let number = |at: usize| columns[at].parse::<usize>().unwrap();
        let expected = Outline {
            messages: number(3),
            forks: number(4),
            roots: number(5),
            gaps: number(6),
            compactions: number(7),
        };
        assert_eq!(outline(&members[0]), expected, "{}", columns[0]);
        assert_eq!(records(&source).1, number(8), "{}", columns[0]);
        for member in &members {
            check_calls(&ClaudeCode, &source, member);
        }
    }
}

/// Every real file is read without a loss.
#[test]
fn all_records_of_real_files_are_accounted_for() {
    for path in real_files("claude-code") {
        let source = std::fs::read(&path).unwrap();
        read(&ClaudeCode, path.to_str().unwrap(), &source);
    }
}
