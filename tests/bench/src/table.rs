//! Measurements and targets as a table.

use anyhow::{Context, Result};
use std::fmt::Write;

/// How the numbers of a row are shown, and which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds; less is better.
    Seconds,
    /// A number per second; more is better.
    PerSecond,
    /// Bytes per second; more is better.
    BytesPerSecond,
    /// Bytes; less is better.
    Bytes,
    /// A plain number; less is better.
    Count,
}

impl Unit {
    fn more_is_better(self) -> bool {
        matches!(self, Unit::PerSecond | Unit::BytesPerSecond)
    }

    pub fn show(self, value: f64) -> String {
        let scaled = |scale: f64, unit: &str| {
            let value = value / scale;
            let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
            format!("{value:.digits$} {unit}")
        };
        match self {
            Unit::Seconds if value < 1e-3 => scaled(1e-6, "µs"),
            Unit::Seconds if value < 1.0 => scaled(1e-3, "ms"),
            Unit::Seconds => scaled(1.0, "s"),
            Unit::PerSecond if value >= 1e4 => scaled(1e3, "k/s"),
            Unit::PerSecond => scaled(1.0, "/s"),
            Unit::BytesPerSecond => scaled(1e9, "GB/s"),
            Unit::Bytes => scaled(1e6, "MB"),
            Unit::Count => format!("{value}"),
        }
    }
}

/// The target of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Better than pi by this factor.
    ThanPi(f64),
    /// Better than oh-my-pi by this factor.
    ThanOhMyPi(f64),
    /// At most this many times the limit of the machine, plus some seconds.
    OfLimit(f64, f64),
    /// At most this many bytes of resident memory of the daemon.
    Memory(f64),
}

/// One row.
pub struct Row {
    pub operation: String,
    unit: Unit,
    ours: Vec<f64>,
    pi: Pi,
    oh_my_pi: Option<f64>,
    limit: Vec<f64>,
    limit_is: &'static str,
    targets: Vec<Target>,
    memory: Option<f64>,
    pi_memory: Option<f64>,
    note: String,
}

enum Pi {
    /// There is nothing to compare with.
    None,
    Skipped,
    Failed(String),
    Measured(Vec<f64>),
}

impl Row {
    pub fn new(operation: impl Into<String>, unit: Unit, ours: Vec<f64>) -> Self {
        Self {
            operation: operation.into(),
            unit,
            ours,
            pi: Pi::None,
            oh_my_pi: None,
            limit: Vec::new(),
            limit_is: "",
            targets: Vec::new(),
            memory: None,
            pi_memory: None,
            note: String::new(),
        }
    }

    pub fn pi(mut self, pi: Outcome) -> Self {
        self.pi_memory = pi.memory;
        self.pi = match pi.failure {
            _ if pi.is_missing => Pi::Skipped,
            Some(failure) if pi.values.is_empty() => Pi::Failed(failure),
            _ => Pi::Measured(pi.values),
        };
        self
    }

    pub fn oh_my_pi(mut self, oh_my_pi: Outcome) -> Self {
        self.oh_my_pi = median(&oh_my_pi.values);
        self
    }

    pub fn limit(mut self, what: &'static str, limit: Vec<f64>) -> Self {
        self.limit = limit;
        self.limit_is = what;
        self
    }

    pub fn target(mut self, target: Target) -> Self {
        self.targets.push(target);
        self
    }

    /// The peak memory of the daemon, in bytes.
    pub fn memory(mut self, memory: f64) -> Self {
        self.memory = Some(memory);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn value(&self) -> Option<f64> {
        median(&self.ours)
    }

    /// The factor by which the daemon's value is better.
    fn than(&self, other: Option<f64>) -> Option<f64> {
        Some(self.ratio(self.value()?, other?))
    }

    fn ratio(&self, ours: f64, other: f64) -> f64 {
        if self.unit.more_is_better() {
            ours / other
        } else {
            other / ours
        }
    }

    /// The factor by which the daemon's value is better than pi's. It is computed from the medians. The smallest and
    /// the largest factor of a single round, in which both were measured in turn, are shown too.
    fn show_than_pi(&self) -> Option<String> {
        let ratio = round(self.than(self.pi_value())?);
        let Pi::Measured(theirs) = &self.pi else {
            return None;
        };
        if theirs.len() != self.ours.len() {
            return Some(format!("{ratio} ×"));
        }
        let rounds = self.ours.iter().zip(theirs);
        let rounds: Vec<f64> = rounds.map(|(ours, pi)| self.ratio(*ours, *pi)).collect();
        let [least, most] =
            [0.0, 1.0].map(|share| quantile(&rounds, share).map_or_else(String::new, round));
        Some(format!("{ratio} × ({least}–{most})"))
    }

    fn pi_value(&self) -> Option<f64> {
        match &self.pi {
            Pi::Measured(values) => median(values),
            _ => None,
        }
    }

    /// The factor by which the daemon's value is worse than the limit of the machine.
    fn of_limit(&self) -> Option<f64> {
        let (ours, limit) = (self.value()?, median(&self.limit)?);
        Some(if self.unit.more_is_better() {
            limit / ours
        } else {
            ours / limit
        })
    }

    fn meets(&self, target: Target) -> Option<bool> {
        let ours = self.value()?;
        Some(match target {
            Target::AtMost(value) => ours <= value,
            Target::AtLeast(value) => ours >= value,
            Target::ThanPi(factor) => self.than(self.pi_value())? >= factor,
            Target::ThanOhMyPi(factor) => self.than(self.oh_my_pi)? >= factor,
            Target::OfLimit(factor, seconds) if self.unit == Unit::Seconds => {
                ours <= median(&self.limit)? * factor + seconds
            }
            Target::OfLimit(factor, _) => self.of_limit()? <= factor,
            Target::Memory(bytes) => self.memory? <= bytes,
        })
    }

    fn show_target(&self, target: Target) -> String {
        match target {
            Target::AtMost(value) => format!("≤ {}", self.unit.show(value)),
            Target::AtLeast(value) => format!("≥ {}", self.unit.show(value)),
            Target::ThanPi(factor) => format!("≥ {factor} × pi"),
            Target::ThanOhMyPi(factor) => format!("≥ {factor} × oh-my-pi"),
            Target::OfLimit(factor, seconds) if seconds > 0.0 => {
                format!("≤ {factor} × limit + {}", Unit::Seconds.show(seconds))
            }
            Target::OfLimit(factor, _) => format!("≤ {factor} × limit"),
            Target::Memory(bytes) => format!("≤ {}", Unit::Bytes.show(bytes)),
        }
    }

    fn cells(&self) -> [String; 8] {
        let dash = || "–".to_owned();
        let times =
            |value: Option<f64>| value.map_or_else(dash, |value| format!("{} ×", round(value)));
        let mut pi = match &self.pi {
            Pi::None => dash(),
            Pi::Skipped => "skipped".to_owned(),
            Pi::Failed(why) => format!("fails: {why}"),
            Pi::Measured(values) => median(values).map_or_else(dash, |value| self.unit.show(value)),
        };
        if let Some(other) = self.oh_my_pi {
            pi = format!("{pi} (oh-my-pi {})", self.unit.show(other));
        }
        let limit = median(&self.limit).map_or_else(dash, |limit| {
            format!("{} ({})", self.unit.show(limit), self.limit_is)
        });
        let targets: Vec<String> = self
            .targets
            .iter()
            .map(|target| {
                let mark = match self.meets(*target) {
                    Some(true) => "✓",
                    Some(false) => "✗",
                    None => "?",
                };
                format!("{} {mark}", self.show_target(*target))
            })
            .collect();
        let memory = |bytes: Option<f64>| bytes.map_or_else(dash, |bytes| Unit::Bytes.show(bytes));
        let operation = if self.note.is_empty() {
            self.operation.clone()
        } else {
            format!("{} ({})", self.operation, self.note)
        };
        [
            operation,
            self.value()
                .map_or_else(dash, |value| self.unit.show(value)),
            pi,
            self.show_than_pi().unwrap_or_else(dash),
            limit,
            times(self.of_limit()),
            if targets.is_empty() {
                dash()
            } else {
                targets.join("; ")
            },
            format!("{} / {}", memory(self.memory), memory(self.pi_memory)),
        ]
    }

    pub fn line(&self) -> String {
        format!("| {} |", self.cells().join(" | "))
    }

    fn misses(&self) -> bool {
        self.targets
            .iter()
            .any(|target| self.meets(*target) == Some(false))
    }
}

/// The result of measuring pi.
#[derive(Debug, Default)]
pub struct Outcome {
    pub values: Vec<f64>,
    /// The peak memory of pi's process, in bytes.
    pub memory: Option<f64>,
    pub failure: Option<String>,
    pub is_missing: bool,
}

#[derive(Default)]
pub struct Table {
    pub rows: Vec<Row>,
    failures: Vec<String>,
}

impl Table {
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub fn failed(&mut self, group: &str, error: &anyhow::Error) {
        eprintln!("bench: {group} failed: {error:#}");
        self.failures.push(format!("{group}: {error:#}"));
    }

    /// The first cells of the rows that begin with these words, as a table.
    pub fn chosen(&self, beginnings: &[&str]) -> Result<String> {
        let mut text = String::from(
            "| operation | treelined | pi | times better than pi |\n|---|---|---|---|\n",
        );
        for beginning in beginnings {
            let mut rows = self.rows.iter().map(Row::cells);
            let row = rows.find(|cells| cells[0].starts_with(beginning));
            let row = row.with_context(|| format!("no row of {beginning}"))?;
            writeln!(text, "| {} |", row[..4].join(" | "))?;
        }
        Ok(text)
    }

    pub fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }

    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| operation | treelined | pi | times better than pi | limit | times the limit | target | peak memory / pi's |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            text.push_str(&row.line());
            text.push('\n');
        }
        let missed = self.rows.iter().filter(|row| row.misses()).count();
        let _written = write!(
            text,
            "\n{} rows, {missed} with a target that is missed.",
            self.rows.len()
        );
        for failure in &self.failures {
            let _written = write!(text, "\nNot measured: {failure}");
        }
        text
    }
}

pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value that this share of all values does not exceed.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

fn round(value: f64) -> String {
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.digits$}")
}
