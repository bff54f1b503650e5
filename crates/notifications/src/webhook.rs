//! Webhooks: a notification is posted as JSON, signed if there is a key. Redirects are not followed. Addresses are
//! checked like those of pages: every address that a name resolves to, before connecting, and every address in a URL.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, StatusCode, Url};
use webfill_urls::address::{Judgement, judge};

use crate::config::NotificationsConfig;
use crate::tls;
use crate::verdict::Verdict;

/// The time limit of a receiver.
const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Webhooks {
    client: Client,
    guard: Guard,
}

/// A webhook post.
pub(crate) struct Post<'a> {
    pub(crate) url: &'a str,
    pub(crate) key: &'a str,
    pub(crate) signature: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Webhooks {
    pub(crate) fn new(
        config: &NotificationsConfig,
        may_be_private: bool,
    ) -> Result<Webhooks, String> {
        let guard = Guard::new(may_be_private);
        let mut tls = tls::config(config)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(guard))
            .user_agent(concat!("webfill/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .no_proxy()
            .http1_only()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| format!("cannot set up the client of webhooks: {error}"))?;
        Ok(Webhooks { client, guard })
    }

    pub(crate) async fn post(&self, post: Post<'_>) -> Verdict {
        let url = match Url::parse(post.url) {
            Ok(url) => url,
            Err(error) => return Verdict::Dropped(format!("its URL cannot be read: {error}")),
        };
        if let Err(why) = self.guard.judge_literal(&url) {
            return Verdict::Failed(why);
        }
        let mut request = self
            .client
            .post(url)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", post.key)
            .body(post.body);
        if let Some(signature) = post.signature {
            request = request.header("Webfill-Signature", signature);
        }
        match request.send().await {
            Ok(response) => verdict(response.status()),
            Err(error) => Verdict::Failed(reason(error)),
        }
    }
}

fn verdict(status: StatusCode) -> Verdict {
    match status {
        StatusCode::GONE => Verdict::Dropped("it answers 410: it is gone for good".into()),
        status if status.is_success() => Verdict::Delivered,
        status if status.is_redirection() => {
            Verdict::Failed(format!("it answers {status}; redirects are not followed"))
        }
        status => Verdict::Failed(format!("it answers {status}")),
    }
}

/// The innermost reason is the most specific. The URL may contain a secret.
fn reason(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer in time".into();
    }
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Rejects addresses that must not be connected to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    may_be_private: bool,
}

impl Guard {
    pub(crate) fn new(may_be_private: bool) -> Guard {
        Guard { may_be_private }
    }

    /// Checks the address in a URL, if there is one.
    pub(crate) fn judge_address_in(self, url: &str) -> Result<(), String> {
        match Url::parse(url) {
            Ok(url) => self.judge_literal(&url),
            Err(error) => Err(format!("its URL cannot be read: {error}")),
        }
    }

    fn judge(self, address: IpAddr) -> Result<(), String> {
        match judge(address) {
            Judgement::Never => Err(format!("no host has the address {address}")),
            Judgement::Private if !self.may_be_private => Err(format!(
                "{address} is a private address: allow it by `notifications.allow_private_webhooks`"
            )),
            Judgement::Private | Judgement::Public => Ok(()),
        }
    }

    /// The client does not resolve a literal address.
    fn judge_literal(self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.judge(address),
            Err(_) => Ok(()),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let refused = found.iter().find_map(|found| guard.judge(found.ip()).err());
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|found| guard.judge(found.ip()).is_ok())
                .collect();
            match (allowed.is_empty(), refused) {
                (true, Some(why)) => Err(std::io::Error::other(why).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(url: &str, may_be_private: bool) -> bool {
        let guard = Guard { may_be_private };
        guard.judge_literal(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn private_addresses_are_refused_in_every_notation_unless_allowed() {
        for private in [
            "http://127.0.0.1/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://[::1]/",
            "http://169.254.169.254/",
            "http://[::ffff:10.0.0.1]/",
            "https://192.168.1.1:8443/x",
        ] {
            assert!(!judged(private, false), "{private}");
            assert!(judged(private, true), "{private}");
        }
        assert!(!judged("http://0.0.0.0/", true), "of no host");
        assert!(judged("http://8.8.8.8/", false));
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_refused() {
        let config = NotificationsConfig::default();
        let webhooks = Webhooks::new(&config, false).unwrap();
        let post = Post {
            url: "http://localhost:9/secret",
            key: "k",
            signature: None,
            body: Vec::new(),
        };
        match webhooks.post(post).await {
            Verdict::Failed(why) => {
                assert!(why.contains("is a private address"), "{why}");
                assert!(!why.contains("secret"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_of_receivers_are_judged() {
        let of = |code: u16| verdict(StatusCode::from_u16(code).unwrap());
        assert_eq!(of(204), Verdict::Delivered);
        assert!(matches!(of(410), Verdict::Dropped(_)));
        for again in [301, 400, 404, 429, 500, 503] {
            assert!(matches!(of(again), Verdict::Failed(_)), "{again}");
        }
    }
}
