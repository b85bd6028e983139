//! The groups and the filters of the list of sessions.

use crate::message::SessionRow;
use crate::operation::Agent;
use std::collections::HashMap;

const DAY: i64 = 86_400;

/// The property that the sessions of a group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grouping {
    #[default]
    None,
    Project,
    Tool,
    Date,
}

/// The filter by the time of the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Period {
    #[default]
    Ever,
    Day,
    Week,
    Month,
}

impl Grouping {
    pub const fn next(self) -> Self {
        match self {
            Self::None => Self::Project,
            Self::Project => Self::Tool,
            Self::Tool => Self::Date,
            Self::Date => Self::None,
        }
    }

    /// Returns the words in the heading of the list; empty if there are no groups.
    pub const fn about(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Project => "by project",
            Self::Tool => "by tool",
            Self::Date => "by date",
        }
    }

    /// Returns the name of the group to which the row belongs. `now` is in seconds since 1970.
    fn of(self, row: &SessionRow, now: i64) -> String {
        if row.host.is_some() && self != Self::Date {
            return "other machines".to_owned();
        }
        match self {
            Self::None => String::new(),
            Self::Project if row.cwd.is_empty() => "no directory".to_owned(),
            Self::Project => row.cwd.clone(),
            Self::Tool => match row.source.as_deref().map(|tool| (tool, Agent::named(tool))) {
                Some((_, Some(agent))) => agent.name.to_owned(),
                Some((tool, None)) => tool.to_owned(),
                None => "treelined".to_owned(),
            },
            Self::Date => Period::of(row.modified, now).about().to_owned(),
        }
    }
}

impl Period {
    const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Ever];

    /// Returns the shortest period that contains the time `then`.
    fn of(then: i64, now: i64) -> Self {
        let has = |period: &Self| period.has(then, now);
        Self::ALL.into_iter().find(has).unwrap_or_default()
    }

    pub const fn next(self) -> Self {
        match self {
            Self::Ever => Self::Day,
            Self::Day => Self::Week,
            Self::Week => Self::Month,
            Self::Month => Self::Ever,
        }
    }

    pub const fn about(self) -> &'static str {
        match self {
            Self::Ever => "older",
            Self::Day => "last 24 hours",
            Self::Week => "last 7 days",
            Self::Month => "last 30 days",
        }
    }

    pub const fn has(self, then: i64, now: i64) -> bool {
        let days = match self {
            Self::Ever => return true,
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 30,
        };
        now.saturating_sub(then) <= days * DAY
    }
}

/// Puts the rows of each group together. The group of the first row comes first; groups by date begin with the newest.
/// Returns the index of the first row of each group, and the name of the group.
pub fn group(rows: &mut Vec<SessionRow>, by: Grouping, now: i64) -> Vec<(usize, String)> {
    if by == Grouping::None {
        return Vec::new();
    }
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<(String, Vec<SessionRow>)> = Vec::new();
    if by == Grouping::Date {
        let periods = Period::ALL.map(|period| period.about().to_owned());
        groups.extend(periods.map(|name| (name, Vec::new())));
        places.extend(
            groups
                .iter()
                .enumerate()
                .map(|(at, (name, _))| (name.clone(), at)),
        );
    }
    for row in std::mem::take(rows) {
        let name = by.of(&row, now);
        let at = *places.entry(name.clone()).or_insert_with(|| {
            groups.push((name, Vec::new()));
            groups.len() - 1
        });
        if let Some((_, group)) = groups.get_mut(at) {
            group.push(row);
        }
    }
    let mut heads = Vec::new();
    for (name, group) in groups.into_iter().filter(|(_, group)| !group.is_empty()) {
        heads.push((rows.len(), name));
        rows.extend(group);
    }
    heads
}
