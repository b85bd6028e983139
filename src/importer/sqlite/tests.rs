use super::*;
use crate::import::member::{Member, Node, Parent, Record};
use crate::import::{Format, goose, opencode};
use std::fs;
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import").join(name)
}

/// The members of a source with the bodies of their nodes, each as `type` and members.
fn read(format: &dyn Format, lines: &[u8]) -> Vec<(Member, Vec<String>)> {
    let mut reader = format.reader("test");
    let mut at = 0;
    for (number, line) in lines.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let bytes = &line[..line.len() - 1];
        reader.record(Record { at, number: number as u64, bytes });
        at += line.len() as u64;
    }
    let members = reader.finish();
    let bodies = |member: &Member| member.nodes.iter().map(|node| body(format, member, node, lines)).collect();
    members.into_iter().map(|member| { let bodies = bodies(&member); (member, bodies) }).collect()
}

fn body(format: &dyn Format, member: &Member, node: &Node, lines: &[u8]) -> String {
    let bytes = node.places.iter().map(|place| &lines[place.at as usize..(place.at + place.len) as usize]);
    let body = format.body(member, node, &bytes.collect::<Vec<_>>());
    format!("{} {}", body.kind, String::from_utf8(body.members).unwrap())
}

#[test]
fn print() {
    let scratch = tempfile::tempdir().unwrap();
    for (tool, format, file) in [(Tool::Opencode, &opencode::Opencode as &dyn Format, "opencode/opencode.db"),(Tool::Goose, &goose::Goose, "goose/sessions.db")][1..2].to_vec() {
        let database = Database::open(&fixture(file), tool, scratch.path()).unwrap();
        for session in database.sessions() {
            let mut lines = Vec::new();
            database.write_session(&session.id, &mut lines).unwrap();
            for (member, bodies) in read(format, &lines) {
                println!("== {session:?}\n{:?} {:?} leaf {:?} {:?} dis {}", member.native_id, member.title, member.leaf, member.origin_only, member.disagreements);
                for (i, (node, body)) in member.nodes.iter().zip(bodies).enumerate() {
                    println!("{i} {:?} {} {:?} {:x} open {} {body}", node.parent, node.key, node.kind, node.fingerprint, node.is_open);
                }
            }
        }
    }
}
