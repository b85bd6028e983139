//! The methods that an extension may call (protocol.md §10.7).

use super::*;
use std::collections::BTreeSet;

/// Once, each extension could delete every session.
#[test]
fn each_method_is_refused_or_served_by_what_the_extension_may() {
    let least = ["own", "read", "raw", "answer", "offer"];
    let list: Json = serde_json::from_str(include_str!("../../../schema/methods.json")).unwrap();
    let table = list["methods"].as_array().unwrap();
    for (settings, more) in [
        ("may = \"read\"", vec![]),
        ("", vec!["append"]),
        ("may = \"all\"", vec!["append", "person", "all"]),
    ] {
        let home = Home::new();
        let heard = home.files().join("heard");
        let request = |row: &Json| {
            let wrong = json!({"thereIsNoSuchMember": true, "protocolVersion": "one"});
            let name = &row["name"];
            json!({"jsonrpc": "2.0", "id": name, "method": name, "params": wrong}).to_string()
                + "\n"
        };
        let requests: String = table.iter().map(request).collect();
        let requests = home.file("requests", requests.as_bytes());
        let body = format!(
            "introduce '{{}}'; cat {}; while read -r line; do printf '%s\\n' \"$line\" >> {}; done",
            requests.display(),
            heard.display()
        );
        let _daemon = started(&home, settings, &body);
        let answered = || -> Vec<Json> {
            let lines = lines(&heard);
            let lines = lines
                .iter()
                .filter_map(|line| serde_json::from_str(line).ok());
            lines
                .filter(|line: &Json| line.get("id").is_some())
                .collect()
        };
        eventually("all are answered", || answered().len() >= table.len());
        let is_served = |line: &Json| line["error"]["data"]["kind"] == "invalidParams";
        let answers = answered();
        let served = answers.iter().filter(|line| is_served(line));
        let served: BTreeSet<&str> = served.map(|line| line["id"].as_str().unwrap()).collect();
        let refused = answers.iter().filter(|line| !is_served(line));
        for line in refused {
            assert_eq!(line["error"]["data"]["kind"], "methodNotFound", "{line}");
        }
        let is_expected = |row: &&Json| {
            let right = row["right"].as_str().unwrap();
            least.contains(&right) || more.contains(&right)
        };
        let expected = table.iter().filter(is_expected);
        let expected = expected.map(|row| row["name"].as_str().unwrap());
        assert_eq!(served, expected.collect(), "{settings}");
    }
}
