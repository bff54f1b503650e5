//! The settings of a supervisor.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use webfill_service::claim_file::ClaimFile;
use webfill_service::disk::Disks;
use webfill_wire::Lane;
use webfill_wire::keys::ClientKeys;

/// How many workers a supervisor runs, and how many tasks it holds for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SupervisorConfig {
    /// The dispatcher's tasks socket, `tcp://HOST:PORT`; its outcomes socket is the next port. Separate several
    /// dispatchers by commas; one of them serves at a time.
    pub dispatcher: String,
    /// The supervisor's name, unique in the fleet. Default: the host name.
    pub id: Option<String>,
    /// The lane of this supervisor's workers: `browser` if they have browsers, for pages that need their scripts, or
    /// `http`.
    pub lane: Lane,
    /// The number of worker processes. 0: one per core.
    pub workers: u16,
    /// The maximum number of tasks held, in the queue and by the workers, not counting those that wait for a name
    /// server. 0: four per fetch permit.
    pub queue: u32,
    /// The maximum total size of the held URLs, in bytes.
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

/// The endpoints of a dispatcher's tasks and outcomes sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatcherSockets {
    pub tasks: String,
    pub outcomes: String,
}

/// Everything that a supervisor process needs, with the defaults filled in.
#[derive(Debug)]
pub struct SupervisorSetup {
    pub id: String,
    /// A number that distinguishes two supervisors of the same name; see [`webfill_wire::Hello`].
    pub instance: u64,
    pub lane: Lane,
    /// Whether this supervisor belongs to `webfill crawl`, which starts to supervise the dispatcher only once this
    /// supervisor reports `ready`.
    pub is_local: bool,
    /// The claim of `webfill crawl` to its crawl. While it is not valid, nothing is requested. `None` in a fleet.
    pub claim: Option<ClaimFile>,
    /// The address where metrics are served; `None` if they are not served.
    pub metrics: Option<SocketAddr>,
    /// How many times a supervisor was started with this state folder.
    pub starts: u64,
    /// The address where probes are answered; `None` if they are not answered.
    pub probes: Option<SocketAddr>,
    /// The maximum duration of one request, in milliseconds.
    pub longest_request_ms: u64,
    pub workers: u16,
    pub queue: u32,
    pub queue_url_bytes: u64,
    /// The dispatchers. One of them serves at a time.
    pub dispatchers: Vec<DispatcherSockets>,
    /// The keys for an encrypted connection; required if the dispatcher is on another machine.
    pub keys: Option<ClientKeys>,
    /// The folder of the sockets between this supervisor and its workers.
    pub sockets: PathBuf,
    /// The disks that must have free space; otherwise nothing is fetched.
    pub disks: Disks,
    /// The configuration file passed to the workers.
    pub config_file: PathBuf,
}
