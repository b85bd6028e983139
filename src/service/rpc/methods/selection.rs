//! Decides which rows the params of `list_sessions` select (protocol.md §3.4).

use crate::daemon::session_row::is_of;
use treelined_core::name;
use treelined_core::tags;
use treelined_files::store::catalogue::CatalogueRow;
use treelined_wire as wire;

/// The params that select sessions.
pub(super) struct Selection<'p> {
    params: &'p wire::ListSessionsParams,
    /// The directory of the wanted sessions, normalized.
    cwd: Option<String>,
    words: Vec<String>,
    /// The wanted tags. `None` for a text that is not a tag: no session has such a tag.
    tags: Vec<Option<String>>,
}

impl<'p> Selection<'p> {
    pub(super) fn of(params: &'p wire::ListSessionsParams) -> Self {
        Self {
            params,
            cwd: params.cwd.as_deref().map(name::directory),
            words: words(params),
            tags: params.tags.iter().map(|tag| tags::given(tag)).collect(),
        }
    }

    /// Whether the params select a row. It does not matter whether the row is archived.
    pub(super) fn has(&self, row: &CatalogueRow) -> bool {
        let (listing, params) = (&row.listing, self.params);
        let spawner = || {
            let header = listing.header.as_ref();
            let spawner = header.and_then(|header| header.spawned_by.as_ref());
            spawner.map(|spawner| spawner.session_id.as_str())
        };
        let source = || listing.source.as_ref()?.tool.as_deref();
        is_of(listing, self.cwd.as_deref())
            && params
                .named
                .is_none_or(|named| named == listing.name.is_some())
            && (params.source.is_none() || params.source.as_deref() == source())
            && (params.spawned_by.is_none() || params.spawned_by.as_deref() == spawner())
            && params
                .pinned
                .is_none_or(|pinned| pinned == row.marks.is_pinned)
            && (params.branch.is_none() || params.branch == listing.sorting.git.branch)
            && (self.tags.is_empty() || self.has_tags(row))
            && (self.words.is_empty() || self.has_words(row))
    }

    fn has_tags(&self, row: &CatalogueRow) -> bool {
        let tags = row.tags();
        let has = |tag: &Option<String>| tag.as_ref().is_some_and(|tag| tags.contains(tag));
        self.tags.iter().all(has)
    }

    fn has_words(&self, row: &CatalogueRow) -> bool {
        let text = text_of(row);
        self.words.iter().all(|word| text.contains(word.as_str()))
    }
}

/// The texts in which the words of the query are searched, in lower case.
fn text_of(row: &CatalogueRow) -> String {
    let listing = &row.listing;
    let header = listing.header.as_ref();
    let id = header.map(|header| header.id.as_str());
    let cwd = header.map(|header| header.cwd.as_str());
    let imported = listing.source.iter().flat_map(|source| &source.native_ids);
    let recorded = listing.recorded.iter().map(|record| &record.native_id);
    let continued = listing.continued.iter();
    let continued = continued.filter_map(|continued| continued.native_id.as_ref());
    let natives = imported
        .chain(recorded)
        .chain(continued)
        .map(String::as_str);
    let branch = listing.sorting.git.branch.as_deref();
    let texts = [
        listing.name.as_deref(),
        Some(&listing.first_message),
        cwd,
        id,
        branch,
    ];
    let texts: Vec<&str> = texts.into_iter().flatten().chain(natives).collect();
    let tags = row.tags().into_iter().map(|tag| format!("\n#{tag}"));
    (texts.join("\n") + &tags.collect::<String>()).to_lowercase()
}

/// The words of the query, in lower case.
pub(super) fn words(params: &wire::ListSessionsParams) -> Vec<String> {
    let words = params
        .query
        .iter()
        .flat_map(|query| query.split_whitespace());
    words.map(str::to_lowercase).collect()
}
