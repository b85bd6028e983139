//! The configured extensions, and the connections of those that are running.

use crate::hooks::OnFailure;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use treelined_core::id::ConnectionId;
use treelined_files::lock::lock;
use treelined_files::os::program::Executable;
use treelined_wire::BeforeEvent;

/// The environment variable with the name of the extension, for the program of the extension. A daemon that has this
/// variable starts no extensions, since the program of an extension may run a daemon.
pub const NAME_VARIABLE: &str = "TREELINED_EXTENSION";

/// A client that the daemon starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The name that other clients see.
    pub name: String,
    pub executable: Executable,
    pub sessions: ExtensionSessions,
    /// The methods that the extension may call.
    pub may: ExtensionMay,
    /// The events that the extension must answer. If it cannot, `on_failure` is the answer.
    pub answers: Vec<BeforeEvent>,
    pub on_failure: OnFailure,
    /// The configuration file that has the extension.
    pub named_in: PathBuf,
}

/// The sessions that are open for an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionSessions {
    /// The sessions that the extension opens.
    Own,
    /// Also the sessions that are open for any other connection.
    All,
}

/// The methods that an extension may call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExtensionMay {
    /// It reads, answers, and offers commands and renderers.
    Read,
    /// It also adds to sessions.
    #[default]
    Append,
    /// All methods.
    All,
}

impl ExtensionMay {
    /// The name in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Append => "append",
            Self::All => "all",
        }
    }
}

/// The configured extensions, in the order of the configuration.
#[derive(Default)]
pub(crate) struct Extensions {
    list: Vec<ConfiguredExtension>,
}

struct ConfiguredExtension {
    extension: Arc<Extension>,
    /// The connection of the extension, while the extension is ready.
    connection: Mutex<Option<ConnectionId>>,
}

impl Extensions {
    pub(crate) fn new(extensions: Vec<Extension>) -> Self {
        let configured = extensions.into_iter().map(|extension| ConfiguredExtension {
            extension: Arc::new(extension),
            connection: Mutex::default(),
        });
        Self {
            list: configured.collect(),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Arc<Extension>)> {
        let extensions = self.list.iter().map(|configured| &configured.extension);
        extensions.enumerate()
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Extension> {
        self.list
            .get(number)
            .map(|configured| &*configured.extension)
    }

    /// The connection of the extension, if the extension is ready.
    pub(crate) fn connection(&self, number: usize) -> Option<ConnectionId> {
        self.list
            .get(number)
            .and_then(|configured| *lock(&configured.connection))
    }

    /// Notes that the extension has introduced itself on this connection.
    pub(crate) fn set_ready(&self, number: usize, connection: ConnectionId) {
        if let Some(configured) = self.list.get(number) {
            *lock(&configured.connection) = Some(connection);
        }
    }

    /// Notes that this connection of the extension has ended.
    pub(crate) fn set_ended(&self, number: usize, connection: ConnectionId) {
        if let Some(configured) = self.list.get(number) {
            let mut current = lock(&configured.connection);
            // A later run of the extension may be ready already.
            if *current == Some(connection) {
                *current = None;
            }
        }
    }
}
