//! Tags, marks, families and candidates (protocol.md §3.21 to §3.23).

use super::Daemon;
use super::failure::refused;
use crate::model::picker::PickerItem;
use crate::{text, time};
use std::collections::BTreeMap;
use treelined_client::{Branch, Client, Error, FamilyRow, NavigationReason};

/// The most branches whose messages are compared for one question.
const MOST: usize = 32;

impl Daemon {
    /// Adds the tags in a text, and removes the tags that have a `-` before them.
    pub(super) async fn tag(
        &self,
        client: &Client,
        session_id: &str,
        tags: &str,
    ) -> Result<String, Error> {
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        for word in tags.split([' ', ',']).filter(|word| !word.is_empty()) {
            match word.strip_prefix('-') {
                Some(word) => remove.push(word.to_owned()),
                None => add.push(word.to_owned()),
            }
        }
        let is_open = self.state().session.as_deref() == Some(session_id);
        if !is_open {
            client.open_session().session_id(session_id).await?;
        }
        let of = client.with_session(session_id);
        let tagged = of.tag_session().add(add).remove(remove).await;
        if !is_open {
            of.close_session().await?;
        }
        let tags = tagged?.tags;
        let tags: Vec<String> = tags
            .iter()
            .map(|tag| format!("#{}", text::line(tag)))
            .collect();
        Ok(match tags.is_empty() {
            true => "The session has no tags.".to_owned(),
            false => format!("Tags: {}", tags.join(" ")),
        })
    }
}

/// Pins a session; if it is pinned, unpins it.
pub(super) async fn pin(client: &Client, session_id: &str) -> Result<String, Error> {
    let (is_pinned, _) = marks(client, session_id).await?;
    let marked = client.mark_session(session_id).pinned(!is_pinned).await?;
    Ok(match marked.pinned {
        true => "The session is pinned.".to_owned(),
        false => "The session is not pinned.".to_owned(),
    })
}

/// Archives a session; if it is archived, brings it back.
pub(super) async fn archive(client: &Client, session_id: &str) -> Result<String, Error> {
    let (_, is_archived) = marks(client, session_id).await?;
    let call = client.mark_session(session_id);
    let marked = call.archived(!is_archived).await?;
    Ok(match marked.archived {
        true => "The session is archived; the list leaves it out.".to_owned(),
        false => "The session is in the list again.".to_owned(),
    })
}

/// Whether a session is pinned, and whether it is archived.
async fn marks(client: &Client, session_id: &str) -> Result<(bool, bool), Error> {
    let listed = client
        .list_sessions()
        .query(session_id)
        .archived(true)
        .await?;
    let mut rows = listed.sessions.into_iter();
    let row = rows.find(|row| row.session_id == session_id);
    let is_set = |mark: Option<bool>| mark.unwrap_or_default();
    Ok(row.map_or((false, false), |row| {
        (is_set(row.pinned), is_set(row.archived))
    }))
}

/// The family of a session. Each session has its position in the tree of sessions, and its relation to the session
/// above it.
pub(super) async fn family(client: &Client, session_id: &str) -> Result<Vec<PickerItem>, Error> {
    let rows = client.get_family(session_id).await?.sessions;
    let is_own = |row: &&FamilyRow| row.session_id == session_id;
    let own = rows
        .iter()
        .find(is_own)
        .and_then(|row| row.comes_from.clone());
    let item = |row: FamilyRow| {
        let is_parent = own.as_ref().filter(|own| own.session_id == row.session_id);
        let kind = row
            .comes_from
            .as_ref()
            .map(|from| format!("{} · ", from.kind.as_str()));
        let title = row
            .name
            .filter(|name| !name.is_empty())
            .unwrap_or(row.first_message);
        let title = if title.is_empty() {
            "(empty)".to_owned()
        } else {
            title
        };
        let indent = "  ".repeat(usize::try_from(row.depth).unwrap_or(16).min(16));
        PickerItem {
            text: format!(
                "{indent}{}",
                text::line(&(kind.unwrap_or_default() + &title))
            ),
            note: time::since(&row.modified),
            is_active: row.session_id == session_id,
            entry: is_parent.and_then(|own| own.entry_id.clone()),
            id: row.session_id,
            path: row.path,
            replaced: None,
        }
    };
    Ok(rows.into_iter().map(item).collect())
}

/// The answers to the newest question that has several answers, each with its outcome.
pub(super) async fn candidates(client: &Client) -> Result<Vec<PickerItem>, Error> {
    let mut groups: BTreeMap<(String, Option<String>), Vec<Branch>> = BTreeMap::new();
    for branch in client.list_branches().await?.branches {
        // Questions at different entries may have the same name.
        if let Some(group) = branch.group.clone() {
            let key = (group, branch.fork_id.clone());
            groups.entry(key).or_default().push(branch);
        }
    }
    let latest = |group: &Vec<Branch>| {
        let times = group.iter().map(|branch| branch.last_activity.clone());
        times.max()
    };
    let several = groups.into_values().filter(|group| group.len() > 1);
    let mut found = several.max_by_key(latest).unwrap_or_default();
    found.truncate(MOST);
    let tips: Vec<String> = found.iter().map(|branch| branch.tip_id.clone()).collect();
    let [a, b, more @ ..] = &*tips else {
        return Ok(Vec::new());
    };
    let compared = client.compare_branches(a, b).more(more.to_vec()).await?;
    let outcomes = [compared.a, compared.b].into_iter();
    let outcomes = outcomes.chain(compared.more.unwrap_or_default());
    let item = |(branch, side): (Branch, treelined_client::ComparedBranch)| PickerItem {
        text: text::line(if side.outcome.is_empty() {
            &branch.name
        } else {
            &side.outcome
        }),
        note: time::since(&branch.last_activity),
        is_active: branch.is_active,
        id: branch.tip_id,
        ..PickerItem::default()
    };
    Ok(found.into_iter().zip(outcomes).map(item).collect())
}

/// Goes to a candidate, and writes the reason on the other candidates.
pub(super) async fn choose(client: &Client, tip: String, reason: String) -> Result<String, Error> {
    let mut call = client.choose(tip);
    if !reason.is_empty() {
        call = call.reason(reason);
    }
    let chosen = call.await?;
    if chosen.cancelled {
        let failed = chosen.reason == Some(NavigationReason::HookFailed);
        return Ok(refused("choice", failed, chosen.by, chosen.message));
    }
    Ok(match chosen.others.len() {
        1 => "Chosen. The other one says why.".to_owned(),
        count => format!("Chosen. {count} others say why."),
    })
}
