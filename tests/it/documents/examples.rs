//! The examples of the documents: a fenced block whose info string begins with `json` must parse, and must match the
//! generated schema that the rest of the info string names.

use super::{Source, check, pattern, root, sources};
use boon::{Compiler, Schemas};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

/// A fenced block of a document.
struct Example<'a> {
    /// The text after the opening fence.
    info: &'a str,
    text: &'a str,
    /// Bytes from the start of the document to the block's first line.
    at: usize,
}

fn examples(text: &str) -> Vec<Example<'_>> {
    pattern!(FENCED, r"(?ms)^```([^\n]*)\n(.*?)^```$");
    let example = |found: regex::Captures<'_>| {
        let (info, body) = (found.get(1).unwrap(), found.get(2).unwrap());
        Example {
            info: text[info.range()].trim(),
            text: &text[body.range()],
            at: body.start(),
        }
    };
    FENCED.captures_iter(text).map(example).collect()
}

/// The blocks in lists, which [`examples`] does not find.
fn indented_blocks(source: &Source) -> Vec<String> {
    let lines = source.text.lines().zip(1..);
    let indented =
        lines.filter(|(line, _)| line.starts_with(' ') && line.trim().starts_with("```"));
    indented
        .map(|(_, number)| format!("{}:{number}: a block must not be indented", source.path))
        .collect()
}

/// The generated schemas. Each is compiled when it is first used.
struct Contract {
    compiler: Compiler,
    schemas: Schemas,
    wire: Value,
    methods: Value,
}

const WIRE: &str = "treelined.v1.json";
const FILE: &str = "session-file.v3.json";

impl Contract {
    fn read() -> Self {
        let read = |name: &str| -> Value {
            let text = fs::read_to_string(root().join("schema").join(name)).unwrap();
            serde_json::from_str(&text).unwrap()
        };
        let (mut compiler, wire) = (Compiler::new(), read(WIRE));
        let urn = |name: &str| format!("urn:documents:{name}");
        compiler.add_resource(&urn(WIRE), wire.clone()).unwrap();
        compiler.add_resource(&urn(FILE), read(FILE)).unwrap();
        Self {
            compiler,
            schemas: Schemas::new(),
            wire,
            methods: read("methods.json"),
        }
    }

    fn validate(&mut self, schema: &str, value: &Value) -> Result<(), String> {
        let name = format!("urn:documents:{schema}");
        let schema = self.compiler.compile(&name, &mut self.schemas);
        let schema = schema.map_err(|error| format!("{error:#}"))?;
        let valid = self.schemas.validate(value, schema);
        valid.map_err(|error| format!("{error:#}"))
    }

    /// Validates a value against a definition of the protocol, and refuses unknown members. The schema itself allows
    /// them, since results may get more members.
    fn validate_definition(&mut self, name: &str, value: &Value) -> Result<(), String> {
        self.validate(&format!("{WIRE}#/$defs/{name}"), value)?;
        let mut known = BTreeSet::new();
        let definition = &self.wire["$defs"][name];
        push_members(&self.wire, definition, &mut known);
        let members = value.as_object().into_iter().flat_map(|it| it.keys());
        let unknown: Vec<_> = members.filter(|name| !known.contains(*name)).collect();
        match unknown.is_empty() || definition["additionalProperties"] == true {
            true => Ok(()),
            false => Err(format!("{name} has no {unknown:?}")),
        }
    }

    /// The definition of the `params` or `result` of a method or notification.
    fn definition(&self, list: &str, name: &str, part: &str) -> Result<String, String> {
        let list = self.methods[list].as_array().unwrap();
        let row = list.iter().find(|row| row["name"] == name);
        let reference = row.and_then(|row| row[part]["$ref"].as_str());
        let (_, definition) = reference
            .and_then(|reference| reference.rsplit_once('/'))
            .ok_or_else(|| format!("there is no {part} of {name:?}"))?;
        Ok(definition.to_owned())
    }

    fn part(&mut self, list: &str, name: &str, part: &str, value: &Value) -> Result<(), String> {
        let definition = self.definition(list, name, part)?;
        self.validate_definition(&definition, value)
    }

    /// A message must have the required members of JSON-RPC and of `needed`. It may also have the members of
    /// `optional`, but no other members.
    fn envelope(value: &Value, needed: &[&str], optional: &[&str]) -> Result<(), String> {
        let members = value.as_object().ok_or("is not an object")?;
        let is_known = |name: &String| {
            let mut known = needed.iter().chain(optional).chain(&["jsonrpc"]);
            known.any(|known| known == name)
        };
        if value["jsonrpc"] != "2.0" || needed.iter().any(|name| !members.contains_key(*name)) {
            return Err(format!("needs jsonrpc, {}", needed.join(", ")));
        }
        match members.keys().find(|name| !is_known(name)) {
            Some(name) => Err(format!("has a member {name:?}")),
            None => Ok(()),
        }
    }

    fn check(&mut self, info: &str, text: &str) -> Result<(), String> {
        let parse = |text: &str| -> Result<Value, String> {
            serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))
        };
        if info == "json entry" {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            for line in lines {
                self.validate(FILE, &parse(line)?)?;
            }
            return Ok(());
        }
        let value = parse(text)?;
        let info = info.strip_prefix("json").unwrap_or_default().trim();
        match info.split_once(':').unwrap_or((info, "")) {
            ("", "") => Ok(()),
            ("header", "") => self.validate(&format!("{FILE}#/$defs/SessionHeader"), &value),
            ("params", method) => self.part("methods", method, "params", &value),
            ("result", method) => self.part("methods", method, "result", &value),
            ("notification", name) => match value.get("method") {
                Some(method) if method != name => Err(format!("is a notification {method}")),
                Some(_) => {
                    Self::envelope(&value, &["method", "params"], &[])?;
                    self.part("notifications", name, "params", &value["params"])
                }
                None => self.part("notifications", name, "params", &value),
            },
            ("request", "") => {
                Self::envelope(&value, &["method"], &["id", "params"])?;
                let method = value["method"].as_str().unwrap_or_default();
                let params = value.get("params").cloned();
                let none = || Value::Object(serde_json::Map::new());
                self.part("methods", method, "params", &params.unwrap_or_else(none))
            }
            ("response", method) => match value.get("error") {
                Some(error) => {
                    Self::envelope(&value, &["id", "error"], &[])?;
                    self.definition("methods", method, "params")?;
                    self.validate_definition("ErrorObject", error)
                }
                None => {
                    Self::envelope(&value, &["id", "result"], &[])?;
                    self.part("methods", method, "result", &value["result"])
                }
            },
            _ => Err(format!("is of an unknown kind: {info:?}")),
        }
    }
}

/// Collects the names of the members that a definition gives an object, also from its parts and alternatives.
fn push_members(document: &Value, definition: &Value, known: &mut BTreeSet<String>) {
    let properties = definition["properties"].as_object();
    known.extend(properties.into_iter().flat_map(|it| it.keys().cloned()));
    if let Some(pointer) = definition["$ref"]
        .as_str()
        .and_then(|it| it.strip_prefix('#'))
    {
        push_members(document, document.pointer(pointer).unwrap(), known);
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for part in definition[word].as_array().into_iter().flatten() {
            push_members(document, part, known);
        }
    }
}

#[test]
fn every_example_is_valid() {
    let mut contract = Contract::read();
    let (mut faults, mut count) = (Vec::new(), 0);
    for source in sources() {
        if source.document().is_none() {
            continue;
        }
        faults.extend(indented_blocks(&source));
        for example in examples(&source.text) {
            if !example.info.starts_with("json") {
                continue;
            }
            count += 1;
            if let Err(fault) = contract.check(example.info, example.text) {
                let place = source.place(example.at);
                faults.push(format!("{place}: {}: {fault}", example.info));
            }
        }
    }
    check(faults);
    assert!(count > 20, "{count} examples");
}

#[test]
fn an_example_that_is_not_valid_is_found() {
    let mut contract = Contract::read();
    let mut is_valid = |block: &str| {
        let text = format!("Text.\n\n```{block}\n```\n");
        let examples = examples(&text);
        let [example] = &*examples else {
            panic!("one example: {block}")
        };
        contract.check(example.info, example.text).is_ok()
    };
    for sound in [
        "json\n{\"any\": 1}",
        "json params:get_leaf\n{\"sessionId\":\"s\"}",
        "json result:set_leaf\n{\"oldLeafId\":null,\"newLeafId\":\"a\",\"durability\":\"os\"}",
        "json request\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\"}",
        "json response:shutdown\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "json header\n{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}",
        "json entry\n{\"type\":\"x\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\"}\n{\"type\":\"y\",\"id\":\"b\",\"parentId\":\"a\",\"timestamp\":\"t\"}",
    ] {
        assert!(is_valid(sound), "{sound}");
    }
    for broken in [
        "json\n{\"any\": 1,}",
        "json strange\n{}",
        "json params:get_leef\n{}",
        "json params:get_leaf\n{\"sessionID\":\"s\"}",
        "json result:set_leaf\n{\"oldLeafId\":null,\"durability\":\"os\"}",
        "json result:set_leaf\n{\"oldLeafId\":null,\"newLeafId\":\"a\",\"durability\":\"os\",\"more\":1}",
        "json request\n{\"id\":1,\"method\":\"shutdown\"}",
        "json request\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shut_down\"}",
        "json response:shutdown\n{\"jsonrpc\":\"2.0\",\"id\":1}",
        "json response:shutdown\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}",
        "json notification:session_closed\n{\"sessionId\":5}",
        "json header\n{\"type\":\"session\",\"version\":2,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}",
        "json entry\n{\"type\":\"x\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\"}\n{\"type\":\"label\",\"id\":\"b\",\"parentId\":\"a\",\"timestamp\":\"t\"}",
    ] {
        assert!(!is_valid(broken), "{broken}");
    }
    let indented = Source::new("schema/protocol.md", "- Text.\n\n  ```json\n  {,}\n  ```\n");
    assert_eq!(indented_blocks(&indented).len(), 2);
}
