//! A session as the documents define it, with lists and linear searches.

pub(super) type Id = String;

#[derive(Clone, Debug)]
pub(super) enum Body {
    Message { role: &'static str, text: String },
    Label { target: Id, label: Option<String> },
    Summary { from: Option<Id> },
    Name,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: Id,
    pub(super) parent: Option<Id>,
    pub(super) what: Body,
}

/// The state of a session, as the documents define it.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) entries: Vec<Entry>,
    pub(super) leaf: Option<Id>,
    /// The leaf that the last line of the file gives. A reopened session and another program continue there.
    pub(super) file_leaf: Option<Id>,
    pub(super) undo: Vec<Option<Id>>,
    pub(super) redo: Vec<Option<Id>>,
    pub(super) moves: Vec<(Option<Id>, Option<Id>)>,
}

impl Model {
    pub(super) fn get(&self, id: &str) -> &Entry {
        self.entries
            .iter()
            .find(|e| e.id == id)
            .unwrap_or_else(|| panic!("the model has no {id}"))
    }

    pub(super) fn add(&mut self, id: &str, parent: Option<Id>, what: Body) {
        self.entries.push(Entry {
            id: id.to_owned(),
            parent,
            what,
        });
        self.file_leaf = Some(id.to_owned());
    }

    /// Appends an entry as the daemon does: the leaf becomes the entry.
    pub(super) fn append(&mut self, id: &str, parent: Option<Id>, what: Body) {
        self.add(id, parent, what);
        self.leaf = Some(id.to_owned());
    }

    pub(super) fn path(&self, to: Option<&str>) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut at = to;
        while let Some(id) = at {
            let entry = self.get(id);
            path.push(entry);
            at = entry.parent.as_deref();
        }
        path.reverse();
        path
    }

    /// The nearest entry, from `at` upwards, that is neither a label nor a name.
    pub(super) fn place(&self, at: Option<&str>) -> Option<Id> {
        let mut at = at;
        while let Some(id) = at {
            match self.get(id) {
                Entry {
                    what: Body::Label { .. } | Body::Name,
                    parent,
                    ..
                } => at = parent.as_deref(),
                _ => return Some(id.to_owned()),
            }
        }
        None
    }

    pub(super) fn label(&self, id: &str) -> Option<&str> {
        self.entries.iter().rev().find_map(|e| match &e.what {
            Body::Label { target, label } if target == id => Some(label.as_deref()),
            _ => None,
        })?
    }

    /// The entries that a move from the leaf to `target` leaves behind.
    pub(super) fn abandoned(&self, target: &str) -> Vec<&Entry> {
        let kept = self.path(Some(target));
        self.path(self.leaf.as_deref())
            .into_iter()
            .filter(|e| !kept.iter().any(|k| k.id == e.id))
            .collect()
    }

    pub(super) fn moved(&mut self, to: Option<Id>) {
        let from = std::mem::replace(&mut self.leaf, to.clone());
        self.undo.push(from.clone());
        self.redo.clear();
        self.moves.push((from, to.clone()));
        self.file_leaf = to;
    }

    pub(super) fn stepped_back(&mut self, redo: bool) -> Option<Option<Id>> {
        let to = if redo {
            self.redo.pop()
        } else {
            self.undo.pop()
        }?;
        let from = std::mem::replace(&mut self.leaf, to.clone());
        if redo {
            self.undo.push(from.clone())
        } else {
            self.redo.push(from.clone())
        };
        self.moves.push((from, to.clone()));
        self.file_leaf = to.clone();
        Some(to)
    }
}
