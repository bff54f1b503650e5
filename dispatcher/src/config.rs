//! The configuration of a dispatcher.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webfill_dashboard::DashboardSetup;
use webfill_scheduler::ApplicationLimits;
use webfill_scheduler::BackoffTable;
use webfill_scheduler::GroupBounds;
use webfill_scheduler::RetryTable;
use webfill_scheduler::frontier::Restoring;
use webfill_service::disk::Disks;
use webfill_service::http::{HttpFiles, Protection};
use webfill_service::log::audit::AuditFile;
use webfill_store::{MappingRules, MongoUri, RetentionConfig, StoreUri};
use webfill_urls::DroppedParameters;
use webfill_wire::keys::ServerKeys;

use crate::feeders::FeederSetup;

/// Where a dispatcher listens and how much memory it may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatcherConfig {
    /// The host name or address to listen on.
    pub listen: String,
    /// The tasks socket's port; outcomes, control and firehose are the next three.
    pub port: u16,
    /// The address that takes HTTP requests, `ADDRESS:PORT`, or `off`. Beyond loopback, TLS and tokens are required.
    pub http: String,
    /// The PEM file with the certificate for HTTP, followed by its chain to the certificate authority.
    pub http_certificate: Option<PathBuf>,
    /// The PEM file with the certificate's key.
    pub http_key: Option<PathBuf>,
    /// The file with the tokens of HTTP clients.
    pub http_tokens: Option<PathBuf>,
    /// The maximum number of sites whose tasks are held in memory; all others wait on disk.
    pub window_sites: usize,
    /// The memory for the index of seen URLs, in MiB.
    pub seen_memory_mib: usize,
    /// How many seconds after its last acknowledged heartbeat a supervisor may start fetches.
    pub lease: f64,
    /// Domains never crawled: `FILE`, or `FILE:N` for its first N.
    pub exclude_sites: Option<String>,
    /// Whether a state folder that was restored from a backup is treated as one, as if `--restored` was given. Other
    /// state folders are opened as usual.
    pub restored: bool,
    /// How many seconds to wait for unreachable and failing sites before their URLs end with a failure; `None`: as long
    /// as the tables of retries and backoffs say.
    pub patience: Option<f64>,
    /// Query parameters that do not distinguish URLs: names, or prefixes of names followed by `*`.
    pub drop_parameters: Vec<String>,
    /// Whether commits go to a journal in the store, so that another dispatcher can take over.
    pub journal: bool,
    /// How much of the journal is kept, in MiB.
    pub journal_mib: usize,
}

impl Default for DispatcherConfig {
    fn default() -> Self {
        DispatcherConfig {
            listen: "127.0.0.1".into(),
            port: 5555,
            http: "127.0.0.1:8080".into(),
            http_certificate: None,
            http_key: None,
            http_tokens: None,
            window_sites: 20_000,
            seen_memory_mib: 64,
            lease: 10.0,
            exclude_sites: None,
            restored: false,
            patience: None,
            drop_parameters: vec![DroppedParameters::USUAL.into()],
            journal: false,
            journal_mib: 1_024,
        }
    }
}

impl DispatcherConfig {
    pub fn lease_ms(&self) -> u64 {
        (self.lease * 1_000.0).ceil() as u64
    }

    /// The TLS and token files for HTTP.
    pub fn http_files(&self) -> Result<HttpFiles, String> {
        let tls = match (&self.http_certificate, &self.http_key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => {
                return Err(
                    "dispatcher.http_certificate and dispatcher.http_key belong together: one of them is not set"
                        .into(),
                );
            }
        };
        let tokens = self.http_tokens.clone();
        Ok(HttpFiles { tls, tokens })
    }

    /// The address for HTTP requests; `None` if HTTP is off. An address beyond loopback requires TLS and tokens.
    pub fn http_address(&self) -> Result<Option<SocketAddr>, String> {
        if self.http == "off" {
            return Ok(None);
        }
        let wrong = |why| format!("dispatcher.http = \"{}\": {why}", self.http);
        let address: SocketAddr = self
            .http
            .parse()
            .map_err(|_| wrong("expected ADDRESS:PORT, such as 127.0.0.1:8080, or `off`"))?;
        match self.http_files()?.permits_address(address) {
            true => Ok(Some(address)),
            false => Err(wrong(
                "other machines can reach it, so it needs TLS and tokens: set dispatcher.http_certificate, dispatcher.http_key and dispatcher.http_tokens, or choose an address of loopback",
            )),
        }
    }
}

/// The endpoints of a dispatcher's sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    pub tasks: String,
    pub outcomes: String,
    pub control: String,
    pub firehose: String,
}

impl Endpoints {
    /// Sockets on four consecutive TCP ports.
    pub fn tcp(host: &str, port: u16) -> Endpoints {
        let at = |offset| format!("tcp://{host}:{}", u32::from(port) + offset);
        Endpoints {
            tasks: at(0),
            outcomes: at(1),
            control: at(2),
            firehose: at(3),
        }
    }

    /// Unix sockets in a folder.
    pub fn ipc(sockets: &std::path::Path) -> Endpoints {
        let at = |name| format!("ipc://{}/dispatcher-{name}", sockets.display());
        Endpoints {
            tasks: at("tasks"),
            outcomes: at("outcomes"),
            control: at("control"),
            firehose: at("firehose"),
        }
    }
}

/// The journal, which lets another dispatcher of the fleet take over. Only one dispatcher serves at a time.
#[derive(Debug, Clone)]
pub struct JournalSetup {
    pub store: MongoUri,
    /// A number that distinguishes this state folder from those of other dispatchers.
    pub instance: u64,
    /// The name users recognise this dispatcher by.
    pub name: String,
    /// Whether this dispatcher only waits for the journal of another one, and never begins a journal.
    pub only_stands_by: bool,
    /// The memory of the index of seen URLs.
    pub seen_memory_bytes: usize,
    pub dropped_parameters: DroppedParameters,
    /// How many bytes of records the journal keeps at least. Older records are removed only when a snapshot contains
    /// them.
    pub kept_bytes: u64,
}

/// Everything that a dispatcher process needs.
#[derive(Debug)]
pub struct DispatcherSetup {
    pub endpoints: Endpoints,
    /// The address for HTTP requests; `None`: off.
    pub http: Option<SocketAddr>,
    /// The address that serves metrics; `None` if they are not served.
    pub metrics: Option<SocketAddr>,
    /// How often a dispatcher was started with this state folder.
    pub starts: u64,
    /// The address that answers health probes; `None` if there is none.
    pub probes: Option<SocketAddr>,
    /// The tokens and TLS files that protect HTTP requests.
    pub protection: Protection,
    /// The settings of the dashboard, which is served at the same address as HTTP requests.
    pub dashboard: DashboardSetup,
    /// The keys of the sockets; required if other machines can reach the endpoints.
    pub keys: Option<ServerKeys>,
    /// The state folder.
    pub state: PathBuf,
    /// The file that logs the actions of clients; `None`: not logged, because the only client is the process that
    /// started this dispatcher.
    pub audit: Option<AuditFile>,
    /// The disks that must have free space.
    pub disks: Disks,
    pub store: StoreUri,
    pub cache: Option<StoreUri>,
    /// How long the store keeps pages.
    pub retention: RetentionConfig,
    /// The rules that mappings follow to fill records. They are needed to apply stored pages to further records
    /// (backfills).
    pub mapping_rules: Arc<dyn MappingRules>,
    /// The delay between two requests to a site whose own delay is not known yet, in milliseconds.
    pub default_delay_ms: u32,
    /// The limits on sites that share an address or a provider.
    pub group_bounds: GroupBounds,
    /// Which failures are retried, and when.
    pub retries: RetryTable,
    /// How long sites in trouble back off.
    pub backoff: BackoffTable,
    /// The limits of applications, by name.
    pub applications: BTreeMap<String, ApplicationLimits>,
    /// Whether the first signal ends only the dispatcher, and its supervisors wait for the next dispatcher. Otherwise
    /// the signal drains the supervisors first, and the dispatcher ends when they have left.
    pub ends_alone: bool,
    /// How to start on a state folder that is a restored backup or a copy.
    pub restoring: Restoring,
    /// How to start the feeders, the processes that read the seeds of watches; `None`: this dispatcher has no watches.
    pub feeders: Option<FeederSetup>,
    /// The journal that commits go to; `None`: this is the only dispatcher.
    pub journal: Option<JournalSetup>,
    pub config: DispatcherConfig,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_for_other_machines_only_with_tls_and_tokens() {
        let with = |certificate: bool, key: bool, tokens: bool| {
            let file = |is_set: bool| is_set.then(|| PathBuf::from("file"));
            let config = DispatcherConfig {
                http: "0.0.0.0:8443".into(),
                http_certificate: file(certificate),
                http_key: file(key),
                http_tokens: file(tokens),
                ..DispatcherConfig::default()
            };
            config.http_address().is_ok()
        };
        for bits in 0..8 {
            let [certificate, key, tokens] = [1, 2, 4].map(|bit| bits & bit != 0);
            let is_protected = certificate && key && tokens;
            assert_eq!(with(certificate, key, tokens), is_protected, "{bits}");
        }
    }

    #[test]
    fn http_without_protection_is_only_for_this_machine() {
        let at = |http: &str| {
            let http = http.to_owned();
            DispatcherConfig {
                http,
                ..DispatcherConfig::default()
            }
            .http_address()
        };
        assert_eq!(at("off"), Ok(None));
        for fine in ["127.0.0.1:8080", "127.9.9.9:1", "[::1]:80"] {
            assert_eq!(at(fine), Ok(Some(fine.parse().unwrap())));
        }
        for wrong in [
            "0.0.0.0:8080",
            "192.168.1.1:80",
            "[::]:80",
            "localhost",
            "8080",
            "",
        ] {
            assert!(
                at(wrong).unwrap_err().contains("dispatcher.http"),
                "{wrong}"
            );
        }
    }
}
