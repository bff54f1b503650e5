//! The routes from crawling machines to the web. Each machine reaches the web at another address. If this address is
//! removed, the machine has no route to the web, but can still reach the dispatcher. Routes can be removed only in an
//! isolated network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use webfill_tests::isolation::{
    add_address, give_up_closed_connections, is_isolated, remove_address,
};
use webfill_tests::site::Web;
use webfill_tests::workplace::files_under;

/// Starts a web that the routes of all machines lead to.
pub(crate) fn start_web() -> Web {
    match is_isolated() {
        true => Web::start_on([0, 0, 0, 0].into()),
        false => Web::start(),
    }
}

pub(crate) struct Routes {
    /// For each machine, the address where it reaches the web, and the number of faults that now block this route.
    addresses: Vec<(String, u32)>,
    port: u16,
}

impl Routes {
    /// Opens a route for each machine.
    pub(crate) fn open(web: &Web, machines: usize) -> Routes {
        static WAYS: AtomicU32 = AtomicU32::new(0);
        let first = WAYS.fetch_add(machines as u32, Ordering::Relaxed);
        let address = |machine: u32| match is_isolated() {
            true => format!("10.88.{}.{}", 1 + machine / 250, 1 + machine % 250),
            false => web.plain_address().ip().to_string(),
        };
        let addresses = (first..first + machines as u32).map(|machine| (address(machine), 0));
        let ways = Routes {
            addresses: addresses.collect(),
            port: web.plain_address().port(),
        };
        if is_isolated() {
            give_up_closed_connections();
            ways.addresses
                .iter()
                .for_each(|(address, _)| add_address(address));
        }
        ways
    }

    /// The value of `--resolve` for a machine. It maps every host to the address where this machine reaches the web.
    pub(crate) fn resolve_value(&self, machine: usize) -> String {
        let (address, _) = &self.addresses[machine];
        format!("*:80:{address}:{}", self.port)
    }

    /// Removes the route of a machine, and returns the machine's number. `None` if the network is not isolated, because
    /// then no route can be removed.
    pub(crate) fn remove_route(&mut self, pick: usize) -> Option<usize> {
        let machine = pick % self.addresses.len();
        let (address, faults) = &mut self.addresses[machine];
        if !is_isolated() {
            return None;
        }
        if *faults == 0 {
            remove_address(address);
        }
        *faults += 1;
        Some(machine)
    }

    pub(crate) fn restore_route(&mut self, machine: usize) {
        let (address, faults) = &mut self.addresses[machine];
        *faults -= 1;
        if *faults == 0 {
            add_address(address);
        }
    }
}

/// The URLs of the tasks that failed because there was no route, from the logs of the workers.
pub(crate) fn urls_without_route(state: &Path) -> BTreeSet<String> {
    let mut urls = BTreeSet::new();
    let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "log");
    for path in files_under(state).into_iter().filter(is_log) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        urls.extend(text.lines().filter_map(url_without_route));
    }
    urls
}

fn url_without_route(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let has_no_route = line["error"].as_str()?.contains("Network is unreachable");
    let is_end = line["event"] == "ended" && has_no_route;
    is_end.then(|| line["url"].as_str().map(str::to_owned))?
}
