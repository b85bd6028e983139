//! Tags of sessions, and the records that change them (session-file.md §4.8).

use crate::entry::{GIT, TAGS};
use crate::json::{self, Elements};
use crate::terminal::is_control;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The most tags of a session.
pub const MOST_TAGS: usize = 64;
/// The longest tag, in bytes.
const MOST_TAG_BYTES: usize = 64;
/// The most bytes of the name of a branch, a commit or a worktree. Longer names are ignored.
pub const MOST_GIT_BYTES: usize = 4096;

/// A tag in its stored form: in lower case, without a leading `#`. `None` if the tag is empty, is longer than 64 bytes,
/// or has white space, control characters, `#`, `,` or `"`.
pub fn given(text: &str) -> Option<String> {
    let text = text.trim();
    let tag = text.strip_prefix('#').unwrap_or(text).to_lowercase();
    let is_bad = |c: char| c.is_whitespace() || is_control(c) || matches!(c, '#' | ',' | '"');
    let is_good = !tag.is_empty() && tag.len() <= MOST_TAG_BYTES && !tag.contains(is_bad);
    is_good.then_some(tag)
}

/// The branch, the commit and the root of the worktree of a session in git.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitPlace {
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub worktree: Option<String>,
}

impl GitPlace {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the branch, the commit and the worktree from the data of a record. A text with more than
    /// [`MOST_GIT_BYTES`] is ignored.
    pub fn of_data(data: &[u8]) -> Self {
        let text = |name: &str| {
            let text = json::get(data, name).and_then(json::string);
            let short = text.filter(|text| text.len() <= MOST_GIT_BYTES);
            short.filter(|text| !text.is_empty()).map(Cow::into_owned)
        };
        Self {
            branch: text("branch"),
            commit: text("commit"),
            worktree: text("worktree"),
        }
    }

    /// The data of a record, as raw JSON.
    pub fn data(&self) -> Vec<u8> {
        let mut data = b"{".to_vec();
        let members = [
            ("branch", &self.branch),
            ("commit", &self.commit),
            ("worktree", &self.worktree),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                push_name(&mut data, name);
                json::push_string(&mut data, value);
            }
        }
        data.push(b'}');
        data
    }
}

/// The tags of a session, and its branch, commit and worktree in git, for the row of the session. Of several records
/// about the same tag, or about git, the last one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sorting {
    pub tags: BTreeSet<String>,
    pub git: GitPlace,
}

impl Sorting {
    /// Applies a record about tags or git. Other records are ignored.
    pub fn take(&mut self, record: &[u8]) {
        let custom = json::get(record, "customType").and_then(json::string);
        let data = json::get(record, "data").unwrap_or_default();
        match custom.as_deref() {
            Some(TAGS) => {
                for tag in tags_of(data, "remove") {
                    self.tags.remove(&tag);
                }
                for tag in tags_of(data, "add") {
                    if self.tags.len() < MOST_TAGS {
                        self.tags.insert(tag);
                    }
                }
            }
            Some(GIT) => {
                self.git = GitPlace::of_data(data);
            }
            _ => {}
        }
    }
}

/// The data of a record that changes tags, as raw JSON.
pub fn change(add: &BTreeSet<String>, remove: &BTreeSet<String>) -> Vec<u8> {
    let mut data = b"{".to_vec();
    for (name, tags) in [("add", add), ("remove", remove)] {
        if tags.is_empty() {
            continue;
        }
        push_name(&mut data, name);
        data.push(b'[');
        for (at, tag) in tags.iter().enumerate() {
            if at > 0 {
                data.push(b',');
            }
            json::push_string(&mut data, tag);
        }
        data.push(b']');
    }
    data.push(b'}');
    data
}

fn push_name(data: &mut Vec<u8>, name: &str) {
    if data.len() > 1 {
        data.push(b',');
    }
    json::push_string(data, name);
    data.push(b':');
}

fn tags_of(data: &[u8], name: &str) -> BTreeSet<String> {
    let array = json::get(data, name).unwrap_or_default();
    let Ok(mut elements) = Elements::open(array, 0) else {
        return BTreeSet::new();
    };
    let spans = std::iter::from_fn(|| elements.next_value().ok()?);
    let texts = spans.filter_map(|span| json::string(array.get(span)?));
    texts
        .filter_map(|tag| given(&tag))
        .take(MOST_TAGS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_one_short_word() {
        for (text, tag) in [
            ("#Build", Some("build")),
            (" ui/left ", Some("ui/left")),
            ("#", None),
            ("", None),
            ("two words", None),
            ("a#b", None),
            ("a,b", None),
            ("a\u{1b}b", None),
        ] {
            assert_eq!(given(text).as_deref(), tag, "{text:?}");
        }
        assert_eq!(given(&"x".repeat(64)).map(|tag| tag.len()), Some(64));
        assert_eq!(given(&"x".repeat(65)), None);
    }

    fn taken(records: &[&str]) -> Sorting {
        let mut sorting = Sorting::default();
        for record in records {
            sorting.take(record.as_bytes());
        }
        sorting
    }

    #[test]
    fn the_last_record_about_a_tag_counts() {
        let sorting = taken(&[
            r##"{"customType":"treelined.tags","data":{"add":["a","#B","two words",3,"c"]}}"##,
            r#"{"customType":"treelined.tags","data":{"remove":["a","never"],"add":["d"]}}"#,
            r#"{"customType":"treelined.tags","data":{"remove":"c"}}"#,
            r#"{"customType":"treelined.leaf","data":{"add":["x"]}}"#,
        ]);
        let tags: Vec<&str> = sorting.tags.iter().map(String::as_str).collect();
        assert_eq!(tags, ["b", "c", "d"]);
        let many: Vec<String> = (0..99).map(|at| format!("\"t{at}\"")).collect();
        let many = format!(
            "{{\"customType\":\"treelined.tags\",\"data\":{{\"add\":[{}]}}}}",
            many.join(",")
        );
        assert_eq!(taken(&[&many]).tags.len(), MOST_TAGS);
    }

    #[test]
    fn the_last_record_of_git_counts_as_a_whole() {
        let long = "x".repeat(MOST_GIT_BYTES + 1);
        let sorting = taken(&[
            r#"{"customType":"treelined.git","data":{"branch":"main","commit":"c1"}}"#,
            &format!(
                r#"{{"customType":"treelined.git","data":{{"branch":"fix","worktree":"{long}"}}}}"#
            ),
        ]);
        let expected = GitPlace {
            branch: Some("fix".to_owned()),
            ..GitPlace::default()
        };
        assert_eq!(sorting.git, expected);
        let again = format!(
            "{{\"customType\":\"treelined.git\",\"data\":{}}}",
            String::from_utf8(expected.data()).unwrap()
        );
        assert_eq!(taken(&[&again]).git, expected);
    }

    #[test]
    fn a_change_is_read_as_it_was_written() {
        let set = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect();
        let data = change(&set(&["a", "b"]), &set(&["c"]));
        assert_eq!(data, br#"{"add":["a","b"],"remove":["c"]}"#);
        assert_eq!(change(&set(&[]), &set(&["c"])), br#"{"remove":["c"]}"#);
    }
}
