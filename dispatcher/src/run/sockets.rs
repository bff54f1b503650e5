//! The dispatcher's sockets, and who may use them.

use std::io::ErrorKind;
use std::net::TcpListener;

use webfill_service::Fault;
use webfill_wire::keys::Role;
use webfill_wire::socket::{Pattern, SocketError, SocketName, SocketSpec};

use crate::config::{DispatcherSetup, Endpoints};

pub(super) const TASKS: SocketName = 1;
pub(super) const OUTCOMES: SocketName = 2;
pub(super) const CONTROL: SocketName = 3;
pub(super) const FIREHOSE: SocketName = 4;
pub(super) const FEEDERS: SocketName = 5;

/// The name of a socket in the metrics.
pub(super) fn socket_metric_name(socket: SocketName) -> &'static str {
    match socket {
        TASKS => "tasks",
        OUTCOMES => "outcomes",
        CONTROL => "control",
        FIREHOSE => "firehose",
        _ => "feeders",
    }
}

/// Checks that the ports are free before the frontier (the file of tasks) is opened.
pub(super) fn check_ports(at: &Endpoints) -> Result<(), Fault> {
    for endpoint in [&at.tasks, &at.outcomes, &at.control, &at.firehose] {
        let Some(address) = endpoint.strip_prefix("tcp://") else {
            continue;
        };
        if let Err(error) = TcpListener::bind(address)
            && error.kind() == ErrorKind::AddrInUse
        {
            let endpoint = endpoint.clone();
            return Err(Fault::error(SocketError::InUse { endpoint }));
        }
    }
    Ok(())
}

pub(super) fn socket_specs(setup: &DispatcherSetup) -> Vec<SocketSpec> {
    let at = &setup.endpoints;
    let keys = setup.keys.as_ref();
    for file in keys
        .iter()
        .flat_map(|keys| keys.of_rotation.existing_files())
    {
        tracing::warn!(
            event = "key_is_replaced", file = %file.display(),
            "the replacement of this dispatcher's key has not ended: for a week, callers with another key are not refused as strangers"
        );
    }
    let control = SocketSpec::bind(CONTROL, Pattern::Router, &at.control)
        .with_server_keys(keys, Role::Client);
    let control = match at.control.starts_with("ipc://") {
        // If only `webfill crawl` reaches this socket, it needs no limits: `webfill crawl` waits for each answer,
        // however long its list of seeds is.
        true => control,
        false => control.for_clients(),
    };
    let mut specs = vec![
        SocketSpec::bind(TASKS, Pattern::Router, &at.tasks)
            .with_server_keys(keys, Role::Supervisor),
        SocketSpec::bind(OUTCOMES, Pattern::Pull, &at.outcomes)
            .with_server_keys(keys, Role::Supervisor),
        control,
        SocketSpec::bind(FIREHOSE, Pattern::Publish, &at.firehose)
            .with_server_keys(keys, Role::Client),
    ];
    if let Some(feeders) = &setup.feeders {
        // The socket of the feeders is in a folder that only this user can access, so it needs no keys.
        let endpoint = &feeders.endpoint;
        specs.push(
            SocketSpec::bind(FEEDERS, Pattern::Router, endpoint)
                .with_server_keys(None, Role::Client),
        );
    }
    specs
}
