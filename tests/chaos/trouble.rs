//! Trouble of sites: for a while a site answers everything with an error, blocks, or breaks its connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use webfill_tests::site::{Page, Reply, script, status};

/// A site's answers instead of its pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Trouble {
    /// An HTTP error. A server error is also the answer for robots.txt, and then nothing may be fetched. A client
    /// error is not, because without a robots.txt everything may be fetched.
    Fails(u16),
    /// A challenge for everyone.
    Blocks,
    /// Each connection is reset, as behind a lost route.
    Resets,
}

/// The sites currently in trouble.
#[derive(Debug, Clone, Default)]
pub(crate) struct Troubles {
    of_hosts: Arc<Mutex<BTreeMap<String, Trouble>>>,
}

impl Troubles {
    pub(crate) fn begin(&self, host: &str, trouble: Trouble) {
        self.of_hosts().insert(host.to_owned(), trouble);
    }

    pub(crate) fn end(&self, host: &str) {
        self.of_hosts().remove(host);
    }

    /// The answer for a path of a host: `content` while the host has no trouble.
    pub(crate) fn answer(&self, host: &str, path: &str, content: &Page) -> Reply {
        let trouble = self.of_hosts().get(host).copied();
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

    fn of_hosts(&self) -> MutexGuard<'_, BTreeMap<String, Trouble>> {
        self.of_hosts
            .lock()
            .expect("nobody panics while holding it")
    }
}
