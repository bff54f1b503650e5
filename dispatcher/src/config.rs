//! What a dispatcher is told at its start.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use webfill_store::{MappingOrder, StoreUri};
use webfill_wire::keys::ServerKeys;

/// Where a dispatcher listens and how much memory it may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatcherConfig {
    /// Host name or address to listen on.
    pub listen: String,
    /// The tasks socket's port; outcomes and control are the next two.
    pub port: u16,
    /// Sites held in memory at once; all others wait on disk.
    pub window_sites: usize,
    /// Memory for the keys of URLs seen, in MiB.
    pub seen_memory_mib: usize,
    /// Seconds that a supervisor may go on starting fetches after it was last heard.
    pub lease: f64,
    /// Domains never crawled: `FILE`, or `FILE:N` for its first N.
    pub exclude_sites: Option<String>,
}

impl Default for DispatcherConfig {
    fn default() -> Self {
        DispatcherConfig {
            listen: "127.0.0.1".into(),
            port: 5555,
            window_sites: 20_000,
            seen_memory_mib: 64,
            lease: 10.0,
            exclude_sites: None,
        }
    }
}

impl DispatcherConfig {
    pub fn lease_ms(&self) -> u64 {
        (self.lease * 1_000.0).ceil() as u64
    }
}

/// The three places where a dispatcher listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    pub tasks: String,
    pub outcomes: String,
    pub control: String,
}

impl Endpoints {
    /// Three ports in a row.
    pub fn tcp(host: &str, port: u16) -> Endpoints {
        let at = |offset| format!("tcp://{host}:{}", u32::from(port) + offset);
        Endpoints {
            tasks: at(0),
            outcomes: at(1),
            control: at(2),
        }
    }

    /// Three sockets in a folder.
    pub fn ipc(sockets: &std::path::Path) -> Endpoints {
        let at = |name| format!("ipc://{}/dispatcher-{name}", sockets.display());
        Endpoints {
            tasks: at("tasks"),
            outcomes: at("outcomes"),
            control: at("control"),
        }
    }
}

/// Everything that a dispatcher process needs.
#[derive(Debug, Clone)]
pub struct DispatcherSetup {
    pub endpoints: Endpoints,
    /// Needed where others than this machine can reach the endpoints.
    pub keys: Option<ServerKeys>,
    /// The state folder.
    pub state: PathBuf,
    pub store: StoreUri,
    pub cache: Option<StoreUri>,
    /// Which mapping's values win in a record.
    pub mapping_order: MappingOrder,
    /// The delay where none is known yet, in milliseconds.
    pub default_delay_ms: u32,
    pub config: DispatcherConfig,
}
