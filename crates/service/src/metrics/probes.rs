//! Probes for load balancers and supervisors of containers: `/healthz` says whether a process is alive, `/readyz`
//! whether it does its work. They have a separate listener, because the clients that send them have neither a token nor
//! a key.

use std::net::SocketAddr;

use crate::Fault;
use serde::{Deserialize, Serialize};

use crate::metrics::config::parse_listener_address;
use crate::metrics::server::{Answer, Purpose, listen};

/// Where each role answers probes, without authentication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbesConfig {
    /// The dispatcher's listener: `ADDRESS:PORT`, or `off`.
    pub dispatcher: String,
    /// The supervisor's listener: `ADDRESS:PORT`, or `off`.
    pub supervisor: String,
    /// Whether both may listen at addresses that other machines can reach. Answers to other machines do not give
    /// reasons.
    pub allow_network: bool,
}

impl Default for ProbesConfig {
    fn default() -> Self {
        ProbesConfig {
            dispatcher: "off".into(),
            supervisor: "off".into(),
            allow_network: false,
        }
    }
}

impl ProbesConfig {
    /// The dispatcher's address; `None` if it is off.
    pub fn dispatcher_address(&self) -> Result<Option<SocketAddr>, String> {
        self.parse_address("probes.dispatcher", &self.dispatcher)
    }

    /// The supervisor's address; `None` if it is off.
    pub fn supervisor_address(&self) -> Result<Option<SocketAddr>, String> {
        self.parse_address("probes.supervisor", &self.supervisor)
    }

    fn parse_address(&self, key: &str, text: &str) -> Result<Option<SocketAddr>, String> {
        parse_listener_address(key, text, self.allow_network, "probes.allow_network")
    }
}

/// What a probe wants to know about the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// Whether the process is alive. If not, it should be replaced.
    Health,
    /// Whether the process does its work.
    Readiness,
}

/// Answers probes until the process ends. `faults` returns the reasons for a negative answer; the answer is positive if
/// there are none. Errors name the address by its `setting`.
pub fn serve_probes<F>(address: SocketAddr, setting: &str, faults: F) -> Result<(), Fault>
where
    F: Fn(Probe) -> Vec<String> + Send + Sync + 'static,
{
    let purpose = Purpose {
        what: "probes",
        paths: "GET /healthz and GET /readyz",
        thread: "probes",
    };
    // Reasons name folders and addresses, so only clients on this machine get them.
    let says_why = address.ip().is_loopback();
    listen(address, setting, purpose, move |path| {
        let (probe, word) = match path {
            "/healthz" => (Probe::Health, "ok"),
            "/readyz" => (Probe::Readiness, "ready"),
            _ => return None,
        };
        Some(probe_answer(word, &faults(probe), says_why))
    })
}

fn probe_answer(word: &str, faults: &[String], says_why: bool) -> Answer {
    let text = match faults {
        [] => format!("{{\"{word}\":true}}"),
        faults if says_why => {
            let why = serde_json::Value::from(faults);
            format!("{{\"{word}\":false,\"why\":{why}}}")
        }
        _ => format!("{{\"{word}\":false}}"),
    };
    Answer {
        status: if faults.is_empty() { 200 } else { 503 },
        media_type: "application/json",
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_given_only_to_this_machine() {
        let fault = [String::from("the disk of \"/var\" is full")];
        for (faults, says_why, status, text) in [
            (&[] as &[String], true, 200, "{\"ok\":true}"),
            (&[], false, 200, "{\"ok\":true}"),
            (
                &fault,
                true,
                503,
                "{\"ok\":false,\"why\":[\"the disk of \\\"/var\\\" is full\"]}",
            ),
            (&fault, false, 503, "{\"ok\":false}"),
        ] {
            let answer = probe_answer("ok", faults, says_why);
            assert_eq!((answer.status, &*answer.text), (status, text));
        }
    }
}
