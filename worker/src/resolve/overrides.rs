//! Parses the values of `--resolve`, which give hosts fixed addresses: `HOST:PORT:ADDR[:PORT]`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use webfill_urls::canonical_url;

/// A `--resolve` value that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid --resolve value {value:?}: {reason}; the form is HOST:PORT:ADDR[:PORT], as in example.com:443:127.0.0.1:8443"
)]
pub struct OverrideError {
    value: String,
    reason: &'static str,
}

/// The values of `--resolve`, in the order given.
#[derive(Debug, Default)]
pub(super) struct Overrides(Vec<Override>);

#[derive(Debug, PartialEq, Eq)]
struct Override {
    /// The host; `None` is the wildcard `*`, which stands for every host.
    host: Option<String>,
    port: u16,
    address: IpAddr,
    /// The port to connect to instead of the port of the URL.
    connect_port: Option<u16>,
}

impl Overrides {
    pub(super) fn parse(values: &[String]) -> Result<Self, OverrideError> {
        let parsed: Result<_, _> = values.iter().map(|value| Override::parse(value)).collect();
        Ok(Overrides(parsed?))
    }

    /// The address for a host at a port. Its port is 0 unless the value names a
    /// port to connect to instead of the URL's. A named host takes precedence over
    /// the wildcard, and later values over earlier ones.
    pub(super) fn find(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let of_host = |wanted: Option<&str>| {
            let fits = |o: &&Override| o.port == port && o.host.as_deref() == wanted;
            self.0.iter().rfind(fits)
        };
        let found = of_host(Some(host)).or_else(|| of_host(None))?;
        Some(SocketAddr::new(
            found.address,
            found.connect_port.unwrap_or(0),
        ))
    }

    pub(super) fn ports(&self) -> BTreeSet<u16> {
        self.0.iter().map(|o| o.port).collect()
    }

    /// Whether a value redirects connections from this port to another one.
    pub(super) fn is_port_changed(&self, port: u16) -> bool {
        self.0
            .iter()
            .any(|o| o.port == port && o.connect_port.is_some())
    }
}

impl Override {
    fn parse(value: &str) -> Result<Self, OverrideError> {
        Self::read(value).map_err(|reason| OverrideError {
            value: value.to_owned(),
            reason,
        })
    }

    fn read(value: &str) -> Result<Self, &'static str> {
        let mut parts = value.trim().splitn(3, ':');
        let mut part = |missing| parts.next().filter(|part| !part.is_empty()).ok_or(missing);
        let host = part("the host is missing")?;
        let port = part("the port is missing")?;
        let target = part("the address is missing")?;
        let (address, connect_port) = read_target(target)?;
        Ok(Override {
            host: read_host(host)?,
            port: read_port(port)?,
            address,
            connect_port,
        })
    }
}

/// Reads a host in the form used in URLs; `None` for the wildcard.
fn read_host(host: &str) -> Result<Option<String>, &'static str> {
    const NO_NAME: &str = "the host is neither a host name nor *";
    if host == "*" {
        return Ok(None);
    }
    if host.contains(['/', '\\', '?', '#', '@', '*']) {
        return Err(NO_NAME);
    }
    let url = canonical_url(&format!("http://{host}/"), None).map_err(|_| NO_NAME)?;
    match url.domain() {
        Some(name) => Ok(Some(name.to_owned())),
        None => Err("the host is an address, which is never resolved"),
    }
}

fn read_target(target: &str) -> Result<(IpAddr, Option<u16>), &'static str> {
    const NO_ADDRESS: &str = "the address is not an IP address";
    if target.parse::<Ipv6Addr>().is_ok() {
        return Err("an IPv6 address goes in brackets");
    }
    let (address, port) = match target.strip_prefix('[') {
        Some(bracketed) => {
            let (address, rest) = bracketed.split_once(']').ok_or("a bracket is not closed")?;
            let address: Ipv6Addr = address.parse().map_err(|_| NO_ADDRESS)?;
            let port = match rest.strip_prefix(':') {
                None if rest.is_empty() => None,
                None => return Err("something is between the address and its port"),
                port => port,
            };
            (IpAddr::V6(address), port)
        }
        None => {
            let (address, port) = match target.split_once(':') {
                Some((address, port)) => (address, Some(port)),
                None => (target, None),
            };
            (IpAddr::V4(address.parse().map_err(|_| NO_ADDRESS)?), port)
        }
    };
    Ok((address, port.map(read_port).transpose()?))
}

fn read_port(port: &str) -> Result<u16, &'static str> {
    match port.parse() {
        Ok(0) | Err(_) => Err("a port is a number from 1 to 65535"),
        Ok(port) => Ok(port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(values: &[&str]) -> Overrides {
        let values: Vec<String> = values.iter().map(|&value| value.into()).collect();
        Overrides::parse(&values).unwrap()
    }

    fn find_addresses(values: &[&str], host: &str, port: u16) -> Option<String> {
        overrides(values).find(host, port).map(|a| a.to_string())
    }

    #[test]
    fn a_host_at_a_port_is_found_and_no_other() {
        let values = ["example.com:443:127.0.0.1:8443", "example.com:80:[::1]"];
        assert_eq!(
            find_addresses(&values, "example.com", 443).unwrap(),
            "127.0.0.1:8443"
        );
        assert_eq!(
            find_addresses(&values, "example.com", 80).unwrap(),
            "[::1]:0"
        );
        assert_eq!(find_addresses(&values, "example.com", 8080), None);
        assert_eq!(find_addresses(&values, "www.example.com", 443), None);
    }

    #[test]
    fn a_name_goes_before_the_wildcard_and_the_last_before_the_first() {
        let values = [
            "example.com:80:10.0.0.1",
            "*:80:10.0.0.2:8080",
            "EXAMPLE.com.:80:10.0.0.3",
            "bücher.example:80:[fe80::1]:81",
        ];
        assert_eq!(
            find_addresses(&values, "example.com", 80).unwrap(),
            "10.0.0.3:0"
        );
        assert_eq!(
            find_addresses(&values, "example.org", 80).unwrap(),
            "10.0.0.2:8080"
        );
        assert_eq!(find_addresses(&values, "example.org", 443), None);
        assert_eq!(
            find_addresses(&values, "xn--bcher-kva.example", 80).unwrap(),
            "[fe80::1]:81"
        );
    }

    #[test]
    fn a_value_that_cannot_be_read_is_named_with_the_reason() {
        for (value, reason) in [
            ("", "the host is missing"),
            ("example.com", "the port is missing"),
            ("example.com:443", "the address is missing"),
            ("example.com:443:", "the address is missing"),
            ("example.com:https:127.0.0.1", "a port is a number"),
            ("example.com:0:127.0.0.1", "a port is a number"),
            ("example.com:443:127.0.0.1:65536", "a port is a number"),
            ("example.com:443:127.0.0.1:", "a port is a number"),
            ("example.com:443:localhost", "not an IP address"),
            ("example.com:443:127.1", "not an IP address"),
            ("example.com:443:::1", "in brackets"),
            ("example.com:443:[::1", "not closed"),
            (
                "example.com:443:[::1]8443",
                "between the address and its port",
            ),
            ("127.0.0.1:80:127.0.0.2", "never resolved"),
            ("exa mple:80:127.0.0.1", "neither a host name"),
            ("*.example.com:80:127.0.0.1", "neither a host name"),
            ("user@example.com:80:127.0.0.1", "neither a host name"),
        ] {
            let error = Overrides::parse(&[value.to_owned()])
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{error}");
            assert!(
                error.starts_with(&format!("invalid --resolve value {value:?}: ")),
                "{error}"
            );
        }
    }
}
