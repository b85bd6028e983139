//! The offers of connections to other connections: commands, and renderers of custom messages.

use crate::commands::OfferedCommands;
use std::sync::{Arc, Mutex, MutexGuard};
use treelined_core::id::ConnectionId;
use treelined_files::lock::lock;
use treelined_pages::renderers::Renderers;

/// The offers of connections. An offer ends with its connection.
pub(crate) struct Offers {
    commands: Mutex<OfferedCommands>,
    /// Shared with the requests that make rows, so a change makes a copy.
    renderers: Mutex<Arc<Renderers>>,
}

impl Offers {
    /// The offers before any connection: only the renderers of the configuration.
    pub(crate) fn new(configured: Renderers) -> Self {
        Self {
            commands: Mutex::default(),
            renderers: Mutex::new(Arc::new(configured)),
        }
    }

    pub(crate) fn commands(&self) -> MutexGuard<'_, OfferedCommands> {
        lock(&self.commands)
    }

    /// The current renderers.
    pub(crate) fn renderers(&self) -> Arc<Renderers> {
        Arc::clone(&lock(&self.renderers))
    }

    /// Changes the renderers for later requests.
    pub(crate) fn change_renderers<T>(&self, change: impl FnOnce(&mut Renderers) -> T) -> T {
        change(Arc::make_mut(&mut lock(&self.renderers)))
    }

    /// Removes all offers of a connection.
    pub(crate) fn remove_all(&self, owner: ConnectionId) {
        self.commands().remove_all(owner);
        self.change_renderers(|renderers| renderers.remove_all(owner));
    }
}
