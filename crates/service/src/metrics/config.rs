//! Settings: where metrics are served.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Where each role serves its metrics, without authentication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// The dispatcher's listener: `ADDRESS:PORT`, or `off`.
    pub dispatcher: String,
    /// The supervisor's listener: `ADDRESS:PORT`, or `off`. Its metrics cover its workers as well.
    pub supervisor: String,
    /// Whether both may listen at addresses that other machines can reach.
    pub allow_network: bool,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        MetricsConfig {
            dispatcher: "off".into(),
            supervisor: "off".into(),
            allow_network: false,
        }
    }
}

impl MetricsConfig {
    /// The dispatcher's address; `None` if it is off.
    pub fn dispatcher_address(&self) -> Result<Option<SocketAddr>, String> {
        self.parse_address("metrics.dispatcher", &self.dispatcher)
    }

    /// The supervisor's address; `None` if it is off.
    pub fn supervisor_address(&self) -> Result<Option<SocketAddr>, String> {
        self.parse_address("metrics.supervisor", &self.supervisor)
    }

    fn parse_address(&self, key: &str, text: &str) -> Result<Option<SocketAddr>, String> {
        parse_listener_address(key, text, self.allow_network, "metrics.allow_network")
    }
}

/// Parses the address of a listener without authentication; `None` for `off`. Errors name the settings `key` and
/// `permission`.
pub(crate) fn parse_listener_address(
    key: &str,
    text: &str,
    is_network_allowed: bool,
    permission: &str,
) -> Result<Option<SocketAddr>, String> {
    if text == "off" {
        return Ok(None);
    }
    let address: SocketAddr = text.parse().map_err(|_| {
        format!("{key} = \"{text}\": expected ADDRESS:PORT, such as 127.0.0.1:9464, or `off`")
    })?;
    match address.ip().is_loopback() || is_network_allowed {
        true => Ok(Some(address)),
        false => Err(format!(
            "{key} = \"{text}\": other machines can reach this address, and nobody is asked for a key there: choose one of loopback, or set {permission}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_for_other_machines_needs_permission() {
        let at = |listen: &str, allow_network| {
            let config = MetricsConfig {
                supervisor: listen.into(),
                allow_network,
                ..MetricsConfig::default()
            };
            config.supervisor_address()
        };
        assert_eq!(at("off", false), Ok(None));
        for fine in ["127.0.0.1:9464", "127.9.9.9:1", "[::1]:80"] {
            assert_eq!(at(fine, false), Ok(Some(fine.parse().unwrap())));
        }
        for open in ["0.0.0.0:9464", "10.0.0.1:9464", "[::]:9464"] {
            let refusal = at(open, false).unwrap_err();
            assert!(refusal.contains("metrics.allow_network"), "{refusal}");
            assert_eq!(at(open, true), Ok(Some(open.parse().unwrap())));
        }
        for wrong in ["localhost", "9464", ""] {
            let refusal = at(wrong, true).unwrap_err();
            assert!(refusal.contains("metrics.supervisor"), "{refusal}");
        }
    }
}
