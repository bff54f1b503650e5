//! The settings of a supervisor.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use webfill_service::claim_file::ClaimFile;
use webfill_service::disk::Disks;
use webfill_wire::Lane;
use webfill_wire::keys::ClientKeys;

/// How many workers a supervisor has, and how much it holds for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SupervisorConfig {
    /// The dispatcher's tasks socket, `tcp://HOST:PORT`; its outcomes socket is the next port.
    pub dispatcher: String,
    /// The supervisor's name, unique in the fleet. Left out: the host's name.
    pub id: Option<String>,
    /// The lane of its workers: whether they have browsers for pages whose scripts must run.
    pub lane: Lane,
    /// Worker processes. 0: one per core.
    pub workers: u16,
    /// The most tasks held, in the queue and by the workers, not counting those that wait for a name server. 0: four
    /// for each fetch slot.
    pub queue: u32,
    /// The most bytes of URLs held.
    pub queue_url_bytes: u64,
}

impl Default for SupervisorConfig {
    fn default() -> Self {
        SupervisorConfig {
            dispatcher: "tcp://127.0.0.1:5555".into(),
            id: None,
            lane: Lane::Http,
            workers: 0,
            queue: 0,
            queue_url_bytes: 16 << 20,
        }
    }
}

/// Everything that a supervisor process needs, with the defaults filled in.
#[derive(Debug)]
pub struct SupervisorSetup {
    pub id: String,
    /// See [`webfill_wire::Hello`].
    pub instance: u64,
    pub lane: Lane,
    /// It belongs to `webfill crawl`, which starts to supervise the dispatcher only once this supervisor reports
    /// `ready`.
    pub is_local: bool,
    /// The claim to the crawl. Without it, nothing is requested.
    pub claim: Option<ClaimFile>,
    /// The address for metrics, if they are served.
    pub metrics: Option<SocketAddr>,
    /// How often a supervisor was started with this state folder.
    pub starts: u64,
    /// The address for probes, if they are answered.
    pub probes: Option<SocketAddr>,
    /// The longest that one request may take, in milliseconds.
    pub longest_request_ms: u64,
    pub workers: u16,
    pub queue: u32,
    pub queue_url_bytes: u64,
    /// The dispatcher's tasks and outcomes sockets.
    pub tasks_endpoint: String,
    pub outcomes_endpoint: String,
    /// Required if the dispatcher is on another machine.
    pub keys: Option<ClientKeys>,
    /// The folder of the sockets between this supervisor and its workers.
    pub sockets: PathBuf,
    /// The disks that must have room.
    pub disks: Disks,
    /// The configuration file that workers are started with.
    pub config_file: PathBuf,
}
