//! Recognises endpoints that need no CURVE keys.

use std::net::IpAddr;

/// Whether an endpoint cannot be reached from other machines: a Unix socket, or a loopback address. A host name other
/// than `localhost` is never local, whatever it resolves to.
pub fn is_local(endpoint: &str) -> bool {
    if endpoint.starts_with("ipc://") || endpoint.starts_with("inproc://") {
        return true;
    }
    let Some(address) = endpoint.strip_prefix("tcp://") else {
        return false;
    };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_of_this_machine_are_local() {
        for local in [
            "ipc:///run/webfill/tasks",
            "tcp://127.0.0.1:5555",
            "tcp://127.8.9.1:5555",
            "tcp://[::1]:5555",
            "tcp://localhost:5555",
        ] {
            assert!(is_local(local), "{local}");
        }
        for remote in [
            "tcp://*:5555",
            "tcp://0.0.0.0:5555",
            "tcp://[::]:5555",
            "tcp://10.0.0.1:5555",
            "tcp://169.254.169.254:5555",
            "tcp://[::ffff:10.0.0.1]:5555",
            "tcp://localhost.example.org:5555",
            "tcp://127.0.0.1.example.org:5555",
            "tcp://lo:5555",
            "tcp://127.0.0.1:0;10.0.0.1:5555",
            "tcp://2130706433:5555",
            "udp://127.0.0.1:5555",
            "",
        ] {
            assert!(!is_local(remote), "{remote}");
        }
    }
}
