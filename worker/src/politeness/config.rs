//! Settings of politeness: delays, limits per IP address, and the contact in the user agent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Pace;

/// Settings of politeness: how much load the crawler puts on sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolitenessConfig {
    /// Seconds between two requests to one site, if robots.txt names no delay.
    pub delay: f64,
    /// The longest wait that a server can demand (Crawl-delay, Retry-After), in seconds. Longer waits are reduced to
    /// this.
    pub max_delay: f64,
    /// Seconds between the starts of two requests to one IP address, or to all sites of one provider. All workers on
    /// all machines keep it together. See [`address_in_flight`](Self::address_in_flight).
    pub address_delay: Option<f64>,
    /// The number of requests to one IP address, or to one provider, at the same time. If neither this nor
    /// `address_delay` is set, 0.2 seconds and 8 requests apply to public addresses; loopback and private addresses
    /// have no limits. If either is set, both limits apply to every address.
    pub address_in_flight: Option<u32>,
    /// The page that explains the crawl, sent in the user agent; required for public addresses.
    pub contact: Option<String>,
    /// Whether the `useragent` of a crawl request replaces webfill's name in the user agent, instead of following it.
    pub useragent_replaces_name: bool,
    /// Whether robots.txt is not requested on loopback and private addresses.
    pub ignore_robots: bool,
    /// Whether loopback, private and link-local addresses may be fetched.
    pub allow_private_networks: bool,
    /// Whether a site gets no request, after a slow answer, for at least as long as the answer took.
    pub adaptive: bool,
    /// The process that keeps the sites' clocks (the times of their next requests).
    pub clock: ClockOwner,
}

/// The process that keeps a site's clock: the time of its next request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockOwner {
    /// The worker that the site's tasks go to; the cache gets a copy.
    #[default]
    Owner,
    /// The cache: each request is reserved there before it is sent.
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

/// The limits for public IP addresses that apply if none are set.
const ADDRESS_DELAY_S: f64 = 0.2;
const ADDRESS_IN_FLIGHT: u32 = 8;

impl PolitenessConfig {
    /// Seconds between the starts of two requests to one IP address.
    pub fn address_delay(&self) -> f64 {
        self.address_delay.unwrap_or(ADDRESS_DELAY_S)
    }

    /// The number of requests to one IP address at the same time.
    pub fn address_in_flight(&self) -> u32 {
        self.address_in_flight.unwrap_or(ADDRESS_IN_FLIGHT)
    }

    pub fn delay(&self) -> Duration {
        self.bounded_delay(self.delay)
    }

    pub fn longest_wait(&self) -> Duration {
        Duration::from_secs_f64(self.max_delay.clamp(0.0, 31_536_000.0))
    }

    /// The delay between two requests to a site: the longer one of the delays in robots.txt and in the operator's rule
    /// for the site, or the configured delay if there is neither.
    pub fn delay_in_force(&self, crawl_delay_ms: Option<u64>, wanted_ms: Option<u32>) -> Duration {
        let wanted = wanted_ms.map(u64::from).map(Duration::from_millis);
        let asked_for = crawl_delay_ms.map(|ms| Duration::from_millis(ms).min(self.longest_wait()));
        match (asked_for, wanted) {
            (Some(asked_for), Some(wanted)) => asked_for.max(wanted),
            (Some(delay), None) | (None, Some(delay)) => delay,
            (None, None) => self.delay(),
        }
    }

    /// Combines a delay with the longest wait that a server can demand.
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
