//! Many machines on one cable: a bridge in the isolated network, and a separate network for each machine.

use std::process::Command;

use super::{Network, is_isolated, run};

/// The address of the isolated network itself. All machines can reach it.
const ITS_ADDRESS: &str = "10.78.255.254";

pub struct Bridge;

impl Bridge {
    pub fn build() -> Bridge {
        assert!(is_isolated(), "bridges are only built in isolation");
        run("ip", &["link", "add", "lan", "type", "bridge"]);
        let address = format!("{ITS_ADDRESS}/16");
        run("ip", &["address", "add", &address, "dev", "lan"]);
        run("ip", &["link", "set", "lan", "up"]);
        Bridge
    }

    /// The address where servers for all machines must listen.
    pub fn address(&self) -> &'static str {
        ITS_ADDRESS
    }

    /// Creates the network of a machine. Each number may be used only once.
    pub fn add_machine(&self, number: u16) -> Network {
        let mut holder = Command::new("setpriv");
        holder.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "20000"]);
        let network = Network {
            holder: holder.spawn().expect("unshare was found a moment ago"),
        };
        network.wait_until_link_is_up();
        let (pid, ours) = (network.holder.id().to_string(), format!("m{number}"));
        let cable = [
            "link", "add", &ours, "type", "veth", "peer", "name", "its", "netns", &pid,
        ];
        run("ip", &cable);
        run("ip", &["link", "set", &ours, "master", "lan", "up"]);
        let [high, low] = (number + 1).to_be_bytes();
        let address = format!("10.78.{high}.{low}/16");
        network.run("ip", &["address", "add", &address, "dev", "its"]);
        network.run("ip", &["link", "set", "its", "up"]);
        network.run("ip", &["link", "set", "lo", "up"]);
        network
    }
}
