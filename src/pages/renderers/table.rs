//! The renderers in use: for each type, the renderer in the configuration, or else the renderer that was registered
//! last.

use super::renderer::Renderer;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use treelined_core::id::ConnectionId;
use treelined_core::json::{self, Malformed, Members};
use treelined_core::view::Subject;

/// Most renderers of one connection.
pub const MAX_RENDERERS: usize = 64;

/// The renderers, by custom type.
#[derive(Debug, Clone, Default)]
pub struct Renderers {
    configured: HashMap<String, Arc<Renderer>>,
    /// The registered renderers of each type, in the order of registration. The last renderer counts.
    registered: HashMap<String, Vec<(ConnectionId, Arc<Renderer>)>>,
}

impl Renderers {
    /// The renderers of the configuration.
    pub fn configured(renderers: &BTreeMap<String, Renderer>) -> Self {
        let shared = |(custom_type, renderer): (&String, &Renderer)| {
            (custom_type.clone(), Arc::new(renderer.clone()))
        };
        Self {
            configured: renderers.iter().map(shared).collect(),
            registered: HashMap::new(),
        }
    }

    /// Registers a renderer as the last renderer of its type. It replaces an earlier renderer of the same connection
    /// for this type. Returns false if the connection has [`MAX_RENDERERS`] other renderers.
    #[must_use]
    pub fn register(&mut self, owner: ConnectionId, custom_type: &str, renderer: Renderer) -> bool {
        let others = self.registered.iter().filter(|(of, _)| *of != custom_type);
        let own = others
            .flat_map(|(_, all)| all)
            .filter(|(of, _)| *of == owner);
        if own.count() >= MAX_RENDERERS {
            return false;
        }
        let all = self.registered.entry(custom_type.to_owned()).or_default();
        all.retain(|(of, _)| *of != owner);
        all.push((owner, Arc::new(renderer)));
        true
    }

    /// Removes the renderers of a connection.
    pub fn remove_all(&mut self, owner: ConnectionId) {
        self.registered.retain(|_, all| {
            all.retain(|(of, _)| *of != owner);
            !all.is_empty()
        });
    }

    fn get(&self, custom_type: &str) -> Option<&Renderer> {
        let latest = || self.registered.get(custom_type)?.last().map(|(_, one)| one);
        let found = self.configured.get(custom_type).or_else(latest);
        found.map(|renderer| &**renderer)
    }

    /// Whether there are no renderers.
    pub fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.registered.is_empty()
    }

    /// The renderer for an entry. `line` is the stored line of the entry, or its beginning. Fails if `line` ends before
    /// the custom type.
    pub fn find(&self, line: &[u8], subject: Subject) -> Result<Option<&Renderer>, Malformed> {
        let mut at = json::skip_space(line, 0);
        if subject.is_message() {
            match value_of(line, at, "message")? {
                Some(message) => at = message,
                None => return Ok(None),
            }
        }
        let Some(at) = value_of(line, at, "customType")? else {
            return Ok(None);
        };
        let end = json::skip_value(line, at)?;
        let custom_type = line.get(at..end).and_then(json::string);
        Ok(custom_type.and_then(|custom_type| self.get(&custom_type)))
    }
}

/// The position of the value of a member in the object at `at`. The text after that value is not read.
fn value_of(line: &[u8], at: usize, name: &str) -> Result<Option<usize>, Malformed> {
    let mut members = Members::open(line, at)?;
    while let Some(key) = members.next_key()? {
        if key.is(line, name) {
            return Ok(Some(key.value_at));
        }
        members.value()?;
    }
    Ok(None)
}
