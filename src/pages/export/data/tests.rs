//! Compares the pairs and lines of random trees with simple rules that examine every two entries.

use super::DataSource;
use super::budget::REPEATED_BYTES;
use crate::export::content::ContentSource;
use crate::export::output::Output;
use crate::export::request::{DataFormat, ExportOptions, Format, Part, Target};
use crate::renderers::Renderers;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use treelined_core::error::{Kind, Result};
use treelined_core::test_support::random::Random;
use treelined_files::cancel::Cancel;
use treelined_files::log::Log;
use treelined_files::os::file::Location;
use treelined_files::store::catalogue::Rows;
use treelined_redact::{Choices, KnownValues};

/// An entry of the model.
#[derive(Debug, Clone)]
struct Made {
    above: Option<usize>,
    kind: &'static str,
    text: String,
    is_error: bool,
}

/// A random session: its steps, the judgements of the steps, and the position where it opens.
struct Session {
    steps: Vec<Made>,
    /// Label texts by step; the last label of a step counts.
    labels: Vec<(usize, &'static str)>,
    /// A step, the outcome of a note about it, and the step at which the note is.
    notes: Vec<(usize, &'static str, usize)>,
    archived: Vec<usize>,
    leaf: usize,
}

fn made(random: &mut Random) -> Session {
    let count = 3 + random.below(25);
    let mut steps: Vec<Made> = Vec::new();
    for number in 0..count {
        let near = number.saturating_sub(1 + random.below(4));
        let above = (number > 0 && random.below(20) > 0).then_some(near);
        let kind = match above
            .and_then(|above| steps.get(above))
            .map(|step| step.kind)
        {
            Some("user" | "result") => *random.pick(&[&"assistant", &"assistant", &"setting"]),
            Some("assistant") => *random.pick(&[&"user", &"user", &"assistant", &"result"]),
            _ => *random.pick(&[&"user", &"assistant", &"setting"]),
        };
        let text = match kind {
            "user" => format!("question {}", random.below(2)),
            _ => format!("{kind} {}", random.below(3)),
        };
        let is_error = kind == "assistant" && random.below(8) == 0;
        steps.push(Made {
            above,
            kind,
            text,
            is_error,
        });
    }
    let mut some = |most: usize| -> Vec<usize> {
        (0..random.below(most + 1))
            .map(|_| random.below(count))
            .collect()
    };
    let (labelled, noted, places) = (some(4), some(4), some(4));
    let archived = some(2);
    let leaf = random.below(count);
    let labels = labelled.into_iter();
    let labels = labels.map(|at| (at, *random.pick(&[&"good", &"Rejected", &"later"])));
    let labels: Vec<_> = labels.collect();
    let notes = noted.into_iter().zip(places);
    let notes = notes.map(|(at, place)| {
        (
            at,
            *random.pick(&[&"notChosen", &"abandoned", &"hm"]),
            place,
        )
    });
    Session {
        steps,
        labels,
        notes: notes.collect(),
        archived,
        leaf,
    }
}

impl Session {
    fn lines(&self) -> String {
        let stamp =
            |second: usize| format!("2025-01-01T00:{:02}:{:02}.000Z", second / 60, second % 60);
        let mut lines = vec![
            json!({"type": "session", "version": 3, "id": "s", "timestamp": stamp(0), "cwd": "/"}),
        ];
        let mut push = |id: String, parent: Option<usize>, members: Value| {
            let mut line = json!({"id": id, "parentId": parent.map(|at| format!("e{at}")), "timestamp": stamp(lines.len())});
            line.as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            lines.push(line);
        };
        for (at, step) in self.steps.iter().enumerate() {
            let block = json!([{"type": "text", "text": step.text}]);
            let message = match step.kind {
                "user" if at % 2 == 0 => json!({"role": "user", "content": step.text}),
                "user" => json!({"role": "user", "content": block}),
                "result" => json!({"role": "toolResult", "toolCallId": "none", "content": block}),
                _ if step.is_error => {
                    json!({"role": "assistant", "content": block, "stopReason": "aborted"})
                }
                _ => json!({"role": "assistant", "content": block}),
            };
            let members = match step.kind {
                "setting" => json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
                _ => json!({"type": "message", "message": message}),
            };
            push(format!("e{at}"), step.above, members);
        }
        for (number, (at, label)) in self.labels.iter().enumerate() {
            push(
                format!("l{number}"),
                Some(self.leaf),
                json!({"type": "label", "targetId": format!("e{at}"), "label": label}),
            );
        }
        for (number, (at, outcome, place)) in self.notes.iter().enumerate() {
            push(
                format!("n{number}"),
                Some(*place),
                json!({"type": "custom", "customType": "note", "data": {"targetId": format!("e{at}"), "outcome": outcome}}),
            );
        }
        for (number, at) in self.archived.iter().enumerate() {
            push(
                format!("r{number}"),
                Some(self.leaf),
                json!({"type": "custom", "customType": "treelined.archived", "data": {"entryId": format!("e{at}")}}),
            );
        }
        push(
            "x".to_owned(),
            Some(self.leaf),
            json!({"type": "custom", "customType": "treelined.leaf", "data": {"from": null, "cause": "set_leaf"}}),
        );
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        lines.join("\n") + "\n"
    }

    fn step(&self, at: usize) -> &Made {
        &self.steps[at]
    }

    fn up(&self, at: usize) -> Vec<usize> {
        std::iter::successors(Some(at), |at| self.step(*at).above).collect()
    }

    fn is_on_path(&self, at: usize) -> bool {
        self.up(self.leaf).contains(&at)
    }

    fn below(&self, above: usize) -> Vec<usize> {
        (0..self.steps.len())
            .filter(|at| self.step(*at).above == Some(above))
            .collect()
    }

    /// The nearest step above that a model sees.
    fn prompt(&self, at: usize) -> Option<usize> {
        self.up(at)
            .into_iter()
            .skip(1)
            .find(|at| self.step(*at).kind != "setting")
    }

    fn is_same_prompt(&self, a: usize, b: usize) -> bool {
        match (self.prompt(a), self.prompt(b)) {
            (Some(p), Some(q)) if self.step(p).kind == "user" && self.step(q).kind == "user" => {
                self.step(p).text == self.step(q).text && self.prompt(p) == self.prompt(q)
            }
            (p, q) => p == q,
        }
    }

    fn alternatives(&self, answer: usize) -> Vec<usize> {
        let answers = (0..self.steps.len()).filter(|at| self.step(*at).kind == "assistant");
        answers
            .filter(|at| self.is_same_prompt(*at, answer))
            .collect()
    }

    /// The first step of the stretch without forks.
    fn head(&self, at: usize) -> usize {
        let begins = |at: &usize| match self.step(*at).above {
            Some(above) => self.below(above).len() > 1,
            None => true,
        };
        self.up(at).into_iter().find(begins).unwrap()
    }

    /// The answer that a judgement about a step is about.
    fn judged(&self, at: usize) -> Option<usize> {
        let answers = (0..self.steps.len()).filter(|answer| self.step(*answer).kind == "assistant");
        let mut answers = answers.filter(|answer| self.head(*answer) == self.head(at));
        answers.find(|answer| self.alternatives(*answer).len() > 1)
    }

    fn is_archived(&self, at: usize) -> bool {
        self.up(at)
            .iter()
            .any(|at| self.archived.contains(at) && !self.is_on_path(*at))
    }

    /// The judgement of each answer: whether it is good, the answer that was chosen instead, and the origin of the
    /// judgement. The last judgement of an answer counts.
    fn verdicts(&self) -> Vec<Option<(bool, Option<usize>, &'static str)>> {
        let mut verdicts = vec![None; self.steps.len()];
        for (number, (at, label)) in self.labels.iter().enumerate() {
            let is_last = self.labels[number + 1..]
                .iter()
                .all(|(later, _)| later != at);
            if let Some(answer) = self.judged(*at).filter(|_| is_last && *label != "later") {
                verdicts[answer] = Some((*label == "good", None, "label"));
            }
        }
        for (at, outcome, place) in &self.notes {
            let Some(answer) = self.judged(*at) else {
                continue;
            };
            match *outcome {
                "abandoned" => verdicts[answer] = Some((false, None, "note")),
                "notChosen" => {
                    let others = self.alternatives(answer).into_iter();
                    let mut others = others.filter(|other| *other != answer);
                    let Some(chosen) = others.find(|other| self.up(*place).contains(other)) else {
                        continue;
                    };
                    if verdicts[chosen].is_some_and(|(is_good, ..)| !is_good) {
                        verdicts[chosen] = None;
                    }
                    verdicts[answer] = Some((false, Some(chosen), "choice"));
                }
                _ => {}
            }
        }
        for at in &self.archived {
            if let Some(answer) = self.judged(*at).filter(|_| !self.is_on_path(*at)) {
                verdicts[answer].get_or_insert((false, None, "archived"));
            }
        }
        verdicts
    }

    /// The texts of the turn; `None` if the turn broke off.
    fn turn(&self, answer: usize) -> Option<Vec<String>> {
        let (mut at, mut said) = (answer, vec![self.step(answer).text.clone()]);
        let mut last = answer;
        loop {
            let below = self.below(at).into_iter();
            let next = below.max_by_key(|at| (self.is_on_path(*at), !self.is_archived(*at), *at));
            let Some(next) = next.filter(|next| self.step(*next).kind != "user") else {
                break;
            };
            at = next;
            if self.step(at).kind == "assistant" {
                said.push(self.step(at).text.clone());
                last = at;
            }
        }
        Some(said).filter(|_| !self.step(last).is_error)
    }

    fn pairs(&self) -> BTreeSet<[String; 3]> {
        let verdicts = self.verdicts();
        let is_bad = |at: usize| verdicts[at].is_some_and(|(is_good, ..)| !is_good);
        // Answers are ranked by their last label; a later label gives a higher rank.
        let rank = |at: usize| {
            self.labels
                .iter()
                .rposition(|(labelled, _)| self.judged(*labelled) == Some(at))
        };
        let mut pairs = BTreeSet::new();
        for rejected in (0..self.steps.len()).filter(|at| self.step(*at).kind == "assistant") {
            let group = self.alternatives(rejected);
            let good = group
                .iter()
                .copied()
                .filter(|at| verdicts[*at].is_some_and(|(is_good, ..)| is_good));
            let best = good.max_by_key(|at| rank(*at));
            let active = group
                .iter()
                .copied()
                .find(|at| self.is_on_path(*at) && !is_bad(*at));
            let (chosen, origin) = match verdicts[rejected] {
                Some((true, ..)) => continue,
                Some((false, chosen, origin)) => {
                    (chosen.filter(|at| !is_bad(*at)).or(best).or(active), origin)
                }
                None if best.is_some() => (best, "label"),
                None => (active, "left"),
            };
            let Some(chosen) = chosen.filter(|chosen| *chosen != rejected) else {
                continue;
            };
            let (Some(better), Some(worse)) = (self.turn(chosen), self.turn(rejected)) else {
                continue;
            };
            if better != worse && self.prompt(chosen).is_some() {
                pairs.insert([
                    format!("e{chosen}"),
                    format!("e{rejected}"),
                    origin.to_owned(),
                ]);
            }
        }
        pairs
    }

    /// The texts of the messages of a path, without results that answer no call.
    fn said(&self, end: usize) -> Vec<String> {
        let path = self.up(end).into_iter().rev();
        let seen = path.filter(|at| matches!(self.step(*at).kind, "user" | "assistant"));
        seen.map(|at| self.step(at).text.clone()).collect()
    }

    /// The answers without another answer below them, outside of archived branches.
    fn ends(&self) -> Vec<usize> {
        let is_answer = |at: &usize| {
            self.step(*at).kind == "assistant" && !self.step(*at).is_error && !self.is_archived(*at)
        };
        let answers: Vec<usize> = (0..self.steps.len()).filter(is_answer).collect();
        let goes_on = |at: usize| {
            answers
                .iter()
                .any(|other| *other != at && self.up(*other).contains(&at))
        };
        answers.iter().copied().filter(|at| !goes_on(*at)).collect()
    }

    fn source(&self, format: DataFormat, limit: u64) -> Result<DataSource> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, self.lines()).unwrap();
        let opened = Log::open(Location::of_path(&path).unwrap()).unwrap();
        let renderers = Arc::new(Renderers::default());
        let options = ExportOptions {
            format: Format::Data(format),
            redacts: false,
            values: KnownValues::default(),
            choices: Choices::default(),
            home: None,
        };
        let content = ContentSource::new(opened.log.bodies(), renderers, &options).unwrap();
        DataSource::of(
            &opened.tree,
            content,
            "s".to_owned(),
            Part::Tree,
            format,
            limit,
        )
    }

    fn export(&self, format: DataFormat) -> Vec<Value> {
        let written = self
            .source(format, REPEATED_BYTES)
            .and_then(|source| written(&source));
        match written {
            Ok(lines) => lines,
            Err(error) => {
                assert_eq!(error.kind, Kind::NothingToExport);
                Vec::new()
            }
        }
    }
}

fn written(source: &DataSource) -> Result<Vec<Value>> {
    let mut out = Output::begin(&Target::Content { limit: 1 << 20 }, &Cancel::new())?;
    let (_, items) = source.write(
        &mut out,
        &|| Ok(Rows::default()),
        &Cancel::new(),
        &|_, _| {},
    )?;
    let text = out.finish(Vec::new())?.content.unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len() as u64, items);
    Ok(lines)
}

fn said(messages: &Value) -> Vec<String> {
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn pairs_of_random_trees_are_those_of_the_rules() {
    let mut origins = BTreeSet::new();
    for seed in 0..600 {
        let made = made(&mut Random(seed));
        let found = made.export(DataFormat::Dpo);
        let pairs: BTreeSet<[String; 3]> = found
            .iter()
            .map(|pair| {
                let ids = [
                    &pair["chosen_id"],
                    &pair["rejected_id"],
                    &pair["judgement"]["origin"],
                ];
                ids.map(|id| id.as_str().unwrap().to_owned())
            })
            .collect();
        assert_eq!(pairs.len(), found.len(), "no pair twice: seed {seed}");
        assert_eq!(pairs, made.pairs(), "seed {seed}\n{}", made.lines());
        for pair in &found {
            let at = |name: &str| pair[name].as_str().unwrap()[1..].parse::<usize>().unwrap();
            let mut prompt = made.said(at("chosen_id"));
            prompt.pop();
            assert_eq!(said(&pair["prompt"]), prompt, "seed {seed}");
            assert_eq!(
                said(&pair["chosen"]),
                made.turn(at("chosen_id")).unwrap(),
                "seed {seed}"
            );
            assert_eq!(
                said(&pair["rejected"]),
                made.turn(at("rejected_id")).unwrap(),
                "seed {seed}"
            );
            origins.insert(pair["judgement"]["origin"].as_str().unwrap().to_owned());
        }
    }
    let all = ["archived", "choice", "label", "left", "note"].map(str::to_owned);
    assert_eq!(origins, BTreeSet::from(all), "each origin occurs");
}

#[test]
fn lines_of_random_trees_are_the_paths_to_the_last_answers() {
    for seed in 0..300 {
        let made = made(&mut Random(seed));
        let found = made.export(DataFormat::Sft);
        let found: Vec<_> = found.iter().map(|line| said(&line["messages"])).collect();
        let expected: Vec<_> = made.ends().into_iter().map(|end| made.said(end)).collect();
        assert_eq!(found, expected, "seed {seed}\n{}", made.lines());
    }
}

#[test]
fn lines_that_repeat_too_much_are_refused_at_once() {
    let step = |above, kind| Made {
        above,
        kind,
        text: "x".repeat(100),
        is_error: false,
    };
    let mut steps = vec![step(None, "user")];
    steps.extend((0..10).map(|_| step(Some(0), "assistant")));
    let session = Session {
        steps,
        labels: vec![(1, "good")],
        notes: vec![],
        archived: vec![],
        leaf: 1,
    };
    // Ten branches of two entries, each of 200 to 300 bytes; nine pairs of two such paths.
    let refused = session
        .source(DataFormat::Sft, 3_000)
        .map(drop)
        .unwrap_err();
    assert!(refused.message.contains("scope: 10 branches"), "{refused}");
    assert_eq!(
        written(&session.source(DataFormat::Sft, 9_000).unwrap())
            .unwrap()
            .len(),
        10
    );
    let refused = written(&session.source(DataFormat::Dpo, 9_000).unwrap()).unwrap_err();
    assert_eq!(refused.kind, Kind::InvalidParams);
    assert!(refused.message.contains("scope: 9 pairs"), "{refused}");
}

#[test]
fn graphs_of_random_trees_have_the_path_of_each_leaf() {
    for seed in 0..300 {
        let made = made(&mut Random(seed));
        let found = made.export(DataFormat::Verifiers);
        let leaves: BTreeSet<Vec<String>> = found.first().map(leaf_paths).unwrap_or_default();
        let seen = |at: &usize| matches!(made.step(*at).kind, "user" | "assistant" | "result");
        let shown = |at: &usize| seen(at) && !made.is_archived(*at);
        let steps: Vec<usize> = (0..made.steps.len()).filter(shown).collect();
        let is_leaf = |at: &usize| {
            let below = |other: &usize| other != at && made.up(*other).contains(at);
            !steps.iter().any(below)
        };
        let path = |at: &usize| {
            let path = made.up(*at).into_iter().rev().filter(seen);
            path.map(|at| made.step(at).text.clone())
                .collect::<Vec<_>>()
        };
        let expected: BTreeSet<_> = steps.iter().filter(|at| is_leaf(at)).map(path).collect();
        assert_eq!(leaves, expected, "seed {seed}\n{}", made.lines());
    }
}

/// The texts of the messages on each path from a root of a graph to a leaf.
fn leaf_paths(graph: &Value) -> BTreeSet<Vec<String>> {
    let nodes = graph["nodes"].as_array().unwrap();
    let parent = |at: usize| nodes[at]["parent"].as_u64().map(|above| above as usize);
    let parents: BTreeSet<_> = (0..nodes.len()).filter_map(parent).collect();
    let leaves = (0..nodes.len()).filter(|at| !parents.contains(at));
    let path = |leaf: usize| {
        let up: Vec<usize> = std::iter::successors(Some(leaf), |at| parent(*at)).collect();
        let said = |at: &usize| {
            nodes[*at]["message"]["content"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        up.iter().rev().map(said).collect()
    };
    leaves.map(path).collect()
}
