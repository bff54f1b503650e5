//! How polite the crawler is: delays, bounds per address, and the contact in its user agent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Pace;

/// How polite the crawler is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolitenessConfig {
    /// Seconds between two requests to one site, if robots.txt names no delay.
    pub delay: f64,
    /// The longest wait that a server can ask for (Crawl-delay, Retry-After), in seconds. Longer waits are reduced to
    /// it, and nothing is dropped because of one.
    pub max_delay: f64,
    /// Seconds between the starts of two requests to one address, or to all sites of one provider, over all workers
    /// and machines. See [`address_in_flight`](Self::address_in_flight).
    pub address_delay: Option<f64>,
    /// Requests to one address, or to one provider, at the same time. If neither this nor `address_delay` is set, 0.2
    /// seconds and 8 requests apply to public addresses; loopback and private addresses, the operator's own, have no
    /// bounds. If either is set, both bounds apply to every address.
    pub address_in_flight: Option<u32>,
    /// The page that explains the crawl, sent in the user agent; required for public addresses.
    pub contact: Option<String>,
    /// The `useragent` of a crawl request replaces webfill's name instead of following it.
    pub useragent_replaces_name: bool,
    /// Do not request robots.txt on loopback and private addresses.
    pub ignore_robots: bool,
    /// Permit loopback, private and link-local targets.
    pub allow_private_networks: bool,
    /// After a slow answer, leave the site alone for at least as long as the answer took.
    pub adaptive: bool,
    /// The process that keeps the sites' clocks.
    pub clock: ClockOwner,
}

/// The process that keeps a site's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockOwner {
    /// The worker that the site's tasks go to; the cache gets a copy.
    #[default]
    Owner,
    /// The cache: each request reserves its site's next turn there.
    Shared,
}

impl Default for PolitenessConfig {
    fn default() -> Self {
        PolitenessConfig {
            delay: 15.0,
            max_delay: 86_400.0,
            address_delay: None,
            address_in_flight: None,
            contact: None,
            useragent_replaces_name: false,
            ignore_robots: false,
            allow_private_networks: false,
            adaptive: true,
            clock: ClockOwner::Owner,
        }
    }
}

/// The defaults for public addresses.
const ADDRESS_DELAY_S: f64 = 0.2;
const ADDRESS_IN_FLIGHT: u32 = 8;

impl PolitenessConfig {
    /// Seconds between the starts of two requests to one address.
    pub fn address_delay(&self) -> f64 {
        self.address_delay.unwrap_or(ADDRESS_DELAY_S)
    }

    /// Requests to one address at the same time.
    pub fn address_in_flight(&self) -> u32 {
        self.address_in_flight.unwrap_or(ADDRESS_IN_FLIGHT)
    }

    pub fn delay(&self) -> Duration {
        self.bounded_delay(self.delay)
    }

    pub fn longest_wait(&self) -> Duration {
        Duration::from_secs_f64(self.max_delay.clamp(0.0, 31_536_000.0))
    }

    /// The delay between two requests to a site: the longer of the delays that robots.txt and the operator ask for;
    /// the configured delay if there is neither.
    pub fn delay_in_force(&self, crawl_delay_ms: Option<u64>, wanted_ms: Option<u32>) -> Duration {
        let wanted = wanted_ms.map(u64::from).map(Duration::from_millis);
        let asked_for = crawl_delay_ms.map(|ms| Duration::from_millis(ms).min(self.longest_wait()));
        match (asked_for, wanted) {
            (Some(asked_for), Some(wanted)) => asked_for.max(wanted),
            (Some(delay), None) | (None, Some(delay)) => delay,
            (None, None) => self.delay(),
        }
    }

    /// A delay, together with the longest wait that a server can ask for.
    pub fn pace(&self, delay: Duration) -> Pace {
        Pace {
            delay,
            longest_wait: self.longest_wait(),
            is_adaptive: self.adaptive,
        }
    }

    fn bounded_delay(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds.clamp(0.0, self.longest_wait().as_secs_f64()))
    }

    /// The default user agent: `webfill/VERSION (+CONTACT)`.
    pub fn user_agent(&self) -> String {
        self.with_contact(concat!("webfill/", env!("CARGO_PKG_VERSION")))
    }

    /// The user agent of a crawl that adds its own text. The contact always stays in it: an application may choose
    /// the text, but the operator is responsible for the requests.
    pub fn user_agent_of(&self, wanted: Option<&str>) -> String {
        match wanted {
            None => self.user_agent(),
            Some(wanted) if self.useragent_replaces_name => self.with_contact(wanted),
            Some(wanted) => format!("{} {wanted}", self.user_agent()),
        }
    }

    fn with_contact(&self, name: &str) -> String {
        match &self.contact {
            Some(contact) => format!("{name} (+{contact})"),
            None => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn robots_txt_and_the_operator_can_only_lengthen_each_others_delay() {
        let config = PolitenessConfig {
            delay: 7.0,
            max_delay: 100.0,
            ..PolitenessConfig::default()
        };
        assert_eq!(config.delay_in_force(None, None), 7 * SECOND);
        assert_eq!(config.delay_in_force(None, Some(2_000)), 2 * SECOND);
        assert_eq!(config.delay_in_force(Some(3_000), None), 3 * SECOND);
        assert_eq!(config.delay_in_force(Some(3_000), Some(2_000)), 3 * SECOND);
        assert_eq!(config.delay_in_force(Some(3_000), Some(5_000)), 5 * SECOND);
        assert_eq!(config.delay_in_force(Some(999_000), None), 100 * SECOND);
    }

    #[test]
    fn the_user_agent_names_the_contact() {
        let mut config = PolitenessConfig::default();
        assert!(config.user_agent().starts_with("webfill/"));
        config.contact = Some("https://example.org/crawl".into());
        assert!(
            config
                .user_agent()
                .ends_with(" (+https://example.org/crawl)")
        );
    }

    #[test]
    fn a_crawl_may_choose_a_text_and_never_hide_the_contact() {
        let own = concat!("webfill/", env!("CARGO_PKG_VERSION"));
        let contact = "(+https://example.org/crawl)";
        for (wanted, replaces, sent) in [
            (None, false, format!("{own} {contact}")),
            (None, true, format!("{own} {contact}")),
            (Some("me/1"), false, format!("{own} {contact} me/1")),
            (Some("me/1"), true, format!("me/1 {contact}")),
            (
                Some("me/1 (+https://evil.example/)"),
                true,
                format!("me/1 (+https://evil.example/) {contact}"),
            ),
        ] {
            let config = PolitenessConfig {
                contact: Some("https://example.org/crawl".into()),
                useragent_replaces_name: replaces,
                ..PolitenessConfig::default()
            };
            assert_eq!(config.user_agent_of(wanted), sent);
        }
    }
}
