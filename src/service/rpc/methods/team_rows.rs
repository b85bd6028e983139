//! The members of `list_sessions` about the team (protocol.md §3.4): the member `log` of each row, and the sessions of
//! the team that have no file on this machine.

use super::selection::words;
use crate::daemon::convert::line::line;
use crate::daemon::session_row::is_of_directory;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use treelined_core::error::{Kind, Result};
use treelined_core::name;
use treelined_core::team::{TeamList, TeamQuery, TeamSession};
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::conversations::Conversations;
use treelined_files::store::family::ChildCounts;
use treelined_wire as wire;

/// The members of `ListSessionsResult` about the team, apart from the rows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TeamCounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    team_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team_at_least: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_team_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team_diagnostic: Option<wire::RowDiagnostic>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogMember {
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<wire::SessionInLog>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same_conversation: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<u64>,
}

/// Adds members to the JSON object at the end of `out`.
pub(super) fn insert(out: &mut Vec<u8>, members: &[u8]) {
    if members.is_empty() {
        return;
    }
    debug_assert_eq!(out.last(), Some(&b'}'));
    out.pop();
    out.push(b',');
    out.extend_from_slice(members);
    out.push(b'}');
}

/// The members of rows that do not come from the session file: about the team, and about other sessions.
#[derive(Default)]
pub(super) struct LogMembers {
    /// `None` if there is no team, or if the request does not want its sessions.
    pub(super) team: Option<Arc<TeamList>>,
    /// The ids of the sessions with entries that wait for the team.
    pub(super) queued: HashSet<String>,
    pub(super) conversations: Conversations,
    /// How many sessions come from each session.
    pub(super) children: ChildCounts,
}

impl LogMembers {
    /// The members `log`, `queued`, `sameConversation` and `children` of a row; empty if the row has none of them.
    pub(super) fn of(&self, row: &CatalogueRow) -> Result<Vec<u8>> {
        let Some(header) = &row.listing.header else {
            return Ok(Vec::new());
        };
        let of_team = |team: &Arc<TeamList>| {
            let session = team.find(&header.id)?;
            Some(wire::SessionInLog {
                stream: team.stream.clone(),
                open_on: wire::OpenOn::all(&session.open_on),
            })
        };
        let member = line(&LogMember {
            log: self.team.as_ref().and_then(of_team),
            queued: self.queued.contains(&header.id).then_some(true),
            same_conversation: self.conversations.others(&row.listing),
            children: Some(self.children.of_row(&row.listing)).filter(|count| *count > 0),
        })?;
        Ok(without_braces(member))
    }
}

/// The query for the sessions of the team that a request wants. `here` are the rows of the files on this machine.
pub(super) fn query(here: &[Arc<CatalogueRow>], params: &wire::ListSessionsParams) -> TeamQuery {
    let headers = here.iter().filter_map(|row| row.listing.header.as_ref());
    let selection = Selection::of(params);
    let is_wanted = params.cursor.is_none() && selection.may_have();
    TeamQuery {
        here: headers.map(|header| header.id.clone()).collect(),
        named: params.named,
        limit: match (is_wanted, params.limit) {
            (false, _) => 0,
            (true, None) => usize::MAX,
            (true, Some(limit)) => usize::try_from(limit).unwrap_or(usize::MAX),
        },
        after: params.team_cursor.clone(),
        is_of_deleted: false,
        cwd: selection.cwd,
        words: selection.words,
    }
}

/// The members `team`, `teamCount`, `teamAtLeast`, `nextTeamCursor` and `teamDiagnostic`. `team` has as many of the
/// sessions without a row in `here` as fit.
pub(super) fn members(
    team: &TeamList,
    here: &[Arc<CatalogueRow>],
    params: &wire::ListSessionsParams,
    fits: usize,
) -> Result<Vec<u8>> {
    let headers = here.iter().filter_map(|row| row.listing.header.as_ref());
    let here: HashSet<&str> = headers.map(|header| &*header.id).collect();
    let selection = Selection::of(params);
    let is_shown = |session: &&TeamSession| {
        let is_trashed = session.row.as_ref().is_some_and(|row| row.is_trashed);
        !is_trashed && !here.contains(&*session.session_id) && selection.has(session)
    };
    let limit = params.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut out = b"\"team\":[".to_vec();
    let (mut count, mut is_full, mut last) = (0, false, None);
    let after = params.team_cursor.as_deref();
    let shown = team.sessions.iter().filter(is_shown);
    for session in shown.filter(|session| session.is_after(after)) {
        count += 1;
        if is_full || count > limit as u64 {
            is_full = true;
            continue;
        }
        let row = line(&wire::TeamSessionRow::of(session))?;
        is_full = out.len() + row.len() + 1 > fits;
        if !is_full {
            if last.is_some() {
                out.push(b',');
            }
            out.extend_from_slice(&row);
            last = Some(session);
        }
    }
    out.push(b']');
    let page = team.page.as_ref();
    let next = match is_full {
        // Without a last row, not even one row fits into the page.
        true => last.map(TeamSession::cursor),
        false => page.and_then(|page| page.next.clone()),
    };
    let is_selected = selection.may_have();
    let all = page
        .filter(|_| is_selected)
        .map_or(count, |page| page.count);
    let counts = line(&TeamCounts {
        team_count: after.is_none().then_some(all),
        team_at_least: page
            .filter(|page| is_selected && page.is_at_least)
            .map(|_| true),
        next_team_cursor: next,
        team_diagnostic: diagnostic(team, &selection),
    })?;
    let counts = without_braces(counts);
    if !counts.is_empty() {
        out.push(b',');
        out.extend_from_slice(&counts);
    }
    Ok(out)
}

/// Why the list may lack sessions. If both the servers and the params are a reason, the kind comes from the servers.
fn diagnostic(team: &TeamList, selection: &Selection<'_>) -> Option<wire::RowDiagnostic> {
    let unknown = selection.unknown();
    let of_params = (!unknown.is_empty()).then(|| {
        let names = unknown.join("`, `");
        let why = format!(
            "the rows of the team do not have `{names}`, so none is selected: leave this out for sessions without a file \
             here, or bring them here with `treelined pull`"
        );
        (Kind::InvalidParams, why)
    });
    let (kind, message) = match (team.incomplete.clone(), of_params) {
        (Some((kind, why)), Some((_, params))) => (kind, format!("{why}; {params}")),
        (of_servers, of_params) => of_servers.or(of_params)?,
    };
    Some(wire::RowDiagnostic {
        kind: kind.name().to_owned(),
        message,
    })
}

fn without_braces(mut object: Vec<u8>) -> Vec<u8> {
    object.pop();
    object.remove(0);
    object
}

/// The params that select sessions.
struct Selection<'p> {
    params: &'p wire::ListSessionsParams,
    /// The directory of the wanted sessions, normalized.
    cwd: Option<String>,
    words: Vec<String>,
}

impl<'p> Selection<'p> {
    fn of(params: &'p wire::ListSessionsParams) -> Self {
        Self {
            params,
            cwd: params.cwd.as_deref().map(name::directory),
            words: words(params),
        }
    }

    /// The given params about which the rows of the team say nothing.
    fn unknown(&self) -> Vec<&'static str> {
        let params = self.params;
        let given = [
            ("spawnedBy", params.spawned_by.is_some()),
            ("source", params.source.is_some()),
            ("branch", params.branch.is_some()),
            ("tags", !params.tags.is_empty()),
            ("pinned", params.pinned == Some(true)),
        ];
        let unknown = given.into_iter().filter(|(_, is_given)| *is_given);
        unknown.map(|(name, _)| name).collect()
    }

    /// Whether the params can select sessions of the team.
    fn may_have(&self) -> bool {
        self.unknown().is_empty()
    }

    fn has(&self, session: &TeamSession) -> bool {
        let row = session.row.as_ref();
        let cwd = row.map(|row| &*row.cwd);
        let name = row.and_then(|row| row.name.as_deref());
        let named = self.params.named;
        let is_in = match (&self.cwd, cwd) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wanted), Some(cwd)) => is_of_directory(cwd, Some(wanted)),
        };
        is_in
            && self.may_have()
            && named.is_none_or(|named| row.is_some() && named == name.is_some())
            && (self.words.is_empty() || {
                let said = row.map(|row| &*row.first_message);
                let texts = [name, said, cwd].map(Option::unwrap_or_default);
                let text = [&texts[..], &[&*session.session_id]].concat().join("\n");
                let text = text.to_lowercase();
                self.words.iter().all(|word| text.contains(word.as_str()))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use treelined_core::team::{OpenElsewhere, TeamRow};

    fn session(id: &str, name: Option<&str>) -> TeamSession {
        TeamSession {
            session_id: id.to_owned(),
            row: Some(TeamRow {
                session_id: id.to_owned(),
                name: name.map(str::to_owned),
                first_message: String::new(),
                cwd: "/srv/agent".to_owned(),
                created: "2026-11-21T17:01:00.000Z".to_owned(),
                modified: "2026-11-22T07:59:12.480Z".to_owned(),
                entries: 214,
                host: "build-7".to_owned(),
                sequence: 9,
                is_trashed: false,
            }),
            open_on: vec![OpenElsewhere {
                host: "laptop".to_owned(),
                since: "2026-11-22T08:20:03.000Z".to_owned(),
            }],
            place: None,
        }
    }

    fn bare(id: &str) -> TeamSession {
        TeamSession {
            session_id: id.to_owned(),
            row: None,
            open_on: Vec::new(),
            place: None,
        }
    }

    fn listed(sessions: Vec<TeamSession>, params: &Value, fits: usize) -> Value {
        let team = TeamList::new("treelined".to_owned(), sessions);
        let params = serde_json::from_value(params.clone()).unwrap();
        let made = members(&team, &[], &params, fits).unwrap();
        let mut object = b"{\"sessions\":[]}".to_vec();
        insert(&mut object, &made);
        serde_json::from_slice(&object).unwrap()
    }

    #[test]
    fn a_session_of_another_machine_has_its_name_host_and_the_daemons_that_have_it_open() {
        let list = listed(
            vec![session("a", Some("The build")), bare("b")],
            &json!({}),
            4000,
        );
        assert_eq!(
            list,
            json!({
                "sessions": [],
                "team": [
                    {
                        "sessionId": "a", "name": "The build", "cwd": "/srv/agent",
                        "created": "2026-11-21T17:01:00.000Z", "modified": "2026-11-22T07:59:12.480Z",
                        "entries": 214, "host": "build-7",
                        "openOn": [{ "host": "laptop", "since": "2026-11-22T08:20:03.000Z" }],
                    },
                    { "sessionId": "b", "openOn": [] },
                ],
                "teamCount": 2,
            })
        );
    }

    #[test]
    fn the_params_select_sessions_of_the_team() {
        let all = || {
            let mut asked = session("s2", None);
            if let Some(row) = &mut asked.row {
                row.first_message = "Why is it red?".to_owned();
            }
            vec![session("s1", Some("The build")), asked, bare("s3")]
        };
        for (params, found) in [
            (json!({}), vec!["s1", "s2", "s3"]),
            (json!({ "cwd": "/srv//agent/" }), vec!["s1", "s2"]),
            (json!({ "cwd": "/srv" }), vec![]),
            (json!({ "named": true }), vec!["s1"]),
            (json!({ "named": false }), vec!["s2"]),
            (json!({ "query": "BUILD agent" }), vec!["s1"]),
            (json!({ "query": "RED? agent" }), vec!["s2"]),
            (json!({ "query": "s3" }), vec!["s3"]),
            (json!({ "spawnedBy": "s1" }), vec![]),
        ] {
            let list = listed(all(), &params, 4000);
            let ids = list["team"].as_array().unwrap().iter();
            let ids: Vec<&str> = ids.map(|row| row["sessionId"].as_str().unwrap()).collect();
            assert_eq!(ids, found, "{params}");
            assert_eq!(list["teamCount"], found.len(), "{params}");
        }
    }

    /// Such a list of the team was once empty without a reason.
    #[test]
    fn params_that_rows_cannot_answer_are_named() {
        let of = |params: &Value| {
            let list = listed(vec![session("a", None)], params, 4000);
            assert_eq!(list["teamCount"], u64::from(list["team"] != json!([])));
            list["teamDiagnostic"].clone()
        };
        for (params, names) in [
            (json!({ "source": "codex" }), "`source`"),
            (json!({ "branch": "main" }), "`branch`"),
            (json!({ "tags": ["a"], "pinned": true }), "`tags`, `pinned`"),
            (json!({ "spawnedBy": "s" }), "`spawnedBy`"),
        ] {
            let told = of(&params);
            assert_eq!(told["kind"], "invalidParams", "{params}");
            let message = told["message"].as_str().unwrap();
            assert!(message.contains(names), "{message}");
        }
        for params in [
            json!({}),
            json!({ "pinned": false, "archived": true, "cwd": "/srv" }),
        ] {
            assert_eq!(of(&params), Value::Null, "{params}");
        }
        let mut team = TeamList::new("s".to_owned(), Vec::new());
        team.incomplete = Some((Kind::LogUnavailable, "late".to_owned()));
        let params = serde_json::from_value(json!({ "branch": "main" })).unwrap();
        let made = String::from_utf8(members(&team, &[], &params, 4000).unwrap()).unwrap();
        assert!(
            made.contains(r#"{"kind":"logUnavailable","message":"late; the rows"#),
            "{made}"
        );
        assert!(made.contains("`branch`"), "{made}");
    }

    #[test]
    fn limits_leave_out_rows_but_not_their_count() {
        let all = || {
            (0..20)
                .map(|n| session(&format!("s{n:02}"), None))
                .collect()
        };
        let list = listed(all(), &json!({ "limit": 3 }), 100_000);
        assert_eq!(list["team"].as_array().unwrap().len(), 3);
        assert_eq!(list["teamCount"], 20);
        let list = listed(all(), &json!({}), 1500);
        let shown = list["team"].as_array().unwrap().len();
        assert!((1..20).contains(&shown), "{shown}");
        assert_eq!(list["teamCount"], 20);
    }

    #[test]
    fn deleted_sessions_are_left_out_and_gaps_are_told() {
        let mut deleted = session("gone", None);
        deleted.row.as_mut().unwrap().is_trashed = true;
        let mut team = TeamList::new("s".to_owned(), vec![deleted]);
        team.incomplete = Some((Kind::LogUnavailable, "late".to_owned()));
        let made = members(&team, &[], &wire::ListSessionsParams::default(), 4000).unwrap();
        let made = String::from_utf8(made).unwrap();
        assert_eq!(
            made,
            r#""team":[],"teamCount":0,"teamDiagnostic":{"kind":"logUnavailable","message":"late"}"#
        );
    }
}
