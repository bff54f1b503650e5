//! Recognises the names of this machine in HTTP requests.

use std::net::IpAddr;

/// Whether a `Host` header names this machine: `localhost` or a loopback address, with or without a port. A web page
/// can make a browser on this machine send requests to this machine, but only with the page's own host name in `Host`.
pub fn is_of_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let inner = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address: Option<IpAddr> = inner.unwrap_or(name).parse().ok();
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_of_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "127.8.8.8",
            "[::1]:80",
            "[::1]",
        ] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in [
            "evil.org",
            "evil.org:8080",
            "localhost.evil.org",
            "192.168.0.1",
            "[::]:80",
            "",
            "::1:x",
        ] {
            assert!(!is_of_this_machine(host), "{host}");
        }
    }
}
