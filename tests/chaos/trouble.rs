//! The troubles of sites. For some time, a site answers all requests with an error, blocks the crawler, or resets its
//! connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use webfill_tests::site::{Page, Reply, script, status};

/// What a site in trouble does instead of serving its pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Trouble {
    /// An HTTP error. Requests for robots.txt get it only if it is a server error, so that nothing may be fetched. With
    /// a client error, robots.txt would count as missing and allow everything.
    Fails(u16),
    /// A challenge page for every request.
    Blocks,
    /// Each connection is reset, as if a route was lost on the way.
    Resets,
}

/// The hosts that are in trouble now.
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

    /// The answer for a path: `content`, unless the host is in trouble.
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
