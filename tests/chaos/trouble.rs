//! The troubles of sites: for a while, a site answers everything with an error, blocks, or breaks its connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use webfill_tests::site::{Page, Reply, script, status};

/// The answer of a site in place of its pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Trouble {
    /// An HTTP error. A server error is also the answer for robots.txt, so nothing may be fetched. A client error is
    /// not, because a missing robots.txt would allow everything.
    Fails(u16),
    /// A challenge, whoever asks.
    Blocks,
    /// Each connection is reset, as it is when a route is lost.
    Resets,
}

/// The sites that are in trouble now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Troubles {
    of_hosts: Arc<Mutex<BTreeMap<String, Trouble>>>,
}

impl Troubles {
    pub(crate) fn begin(&self, host: &str, trouble: Trouble) {
        self.lock_hosts().insert(host.to_owned(), trouble);
    }

    pub(crate) fn end(&self, host: &str) {
        self.lock_hosts().remove(host);
    }

    /// The answer for a path of a host, which is `content` unless the host is in trouble.
    pub(crate) fn answer(&self, host: &str, path: &str, content: &Page) -> Reply {
        let trouble = self.lock_hosts().get(host).copied();
        match trouble {
            None => content.clone().into(),
            Some(Trouble::Fails(..500) | Trouble::Blocks) if path == "/robots.txt" => {
                content.clone().into()
            }
            Some(Trouble::Fails(code)) => status(code).into(),
            Some(Trouble::Blocks) => status(403).header("cf-mitigated", "challenge").into(),
            Some(Trouble::Resets) => script().reset().into(),
        }
    }

    fn lock_hosts(&self) -> MutexGuard<'_, BTreeMap<String, Trouble>> {
        self.of_hosts
            .lock()
            .expect("nobody panics while holding it")
    }
}
