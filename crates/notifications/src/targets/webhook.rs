//! Webhooks: a notification is posted as JSON, signed if there is a key. Redirects are not followed. Addresses are
//! checked like those of pages: every address that a name resolves to, before connecting, and every address in a URL.

use std::fs::OpenOptions;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, StatusCode, Url};
use webfill_urls::address::{AddressClass, classify};

use super::target::{DeliveryResources, Target, TargetRefusal, notification_with_key};
use crate::config::NotificationsConfig;
use crate::delivery::Delivery;
use crate::folder::is_below;
use crate::permissions::Permissions;
use crate::signature::sign;
use crate::tls;
use crate::verdict::Verdict;

/// The time limit for a receiver to answer.
const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes that are read of a file with a signing key.
const MOST_SECRET_BYTES: u64 = 4_096;

const NO_SECRETS: &str = "expected a file in the folder of the webhook's host below `notifications.secrets_dir` of the dispatcher's settings";

pub(super) struct Webhook<'a> {
    pub(super) url: &'a str,
    pub(super) secret_file: Option<&'a str>,
}

#[async_trait]
impl Target for Webhook<'_> {
    fn check(&self, permissions: &Permissions) -> Result<(), TargetRefusal> {
        if !permissions.is_of_fleet() {
            return Ok(());
        }
        // Only an address in the URL itself can be checked now; a name is resolved at each post.
        AddressGuard::new(permissions.allows_private_webhooks())
            .check_url_address(self.url)
            .map_err(|why| ("webhook", why))?;
        let folder = secrets_dir_of(permissions, self.url);
        let is_allowed = |file| folder.as_deref().is_some_and(|dir| is_below(dir, file));
        match self.secret_file.is_none_or(is_allowed) {
            true => Ok(()),
            false => Err(("secret_file", NO_SECRETS.to_owned())),
        }
    }

    async fn deliver(&self, means: &Arc<DeliveryResources>, delivery: &Arc<Delivery>) -> Verdict {
        let body = notification_with_key(delivery).to_string().into_bytes();
        let secret = self
            .secret_file
            .map(|file| read_secret(&means.permissions, self.url, file));
        let signature = match secret.transpose() {
            Ok(secret) => secret.map(|secret| sign(&secret, now_s(), &body)),
            Err(why) => return Verdict::Failed(why),
        };
        let post = Post {
            url: self.url,
            key: &delivery.key,
            signature,
            body,
        };
        means.webhooks.post(post).await
    }
}

/// The folder of the keys that may sign posts to this host. A watch may not use another host's key, because it could
/// send that host forged posts with a valid signature.
fn secrets_dir_of(permissions: &Permissions, url: &str) -> Option<PathBuf> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let is_name = !host.is_empty() && !host.starts_with('.') && !host.contains('/');
    let folder = permissions.config.secrets_dir.as_ref();
    is_name.then(|| folder.map(|folder| folder.join(host)))?
}

/// Reads a key from a file, without the line end.
fn read_secret(permissions: &Permissions, url: &str, file: &str) -> Result<Vec<u8>, String> {
    let folder = secrets_dir_of(permissions, url);
    let mut options = OpenOptions::new();
    let options = options.read(true);
    let opened = permissions.open(file, options, folder.as_deref(), NO_SECRETS)?;
    let mut secret = Vec::new();
    opened
        .take(MOST_SECRET_BYTES)
        .read_to_end(&mut secret)
        .map_err(|error| format!("cannot read `secret_file` {file}: {error}"))?;
    while secret.last().is_some_and(u8::is_ascii_whitespace) {
        secret.pop();
    }
    match secret.is_empty() {
        true => Err(format!("`secret_file` {file} is empty")),
        false => Ok(secret),
    }
}

fn now_s() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |passed| passed.as_secs() as i64)
}

/// The HTTP client that all webhooks share.
pub(crate) struct Webhooks {
    client: Client,
    guard: AddressGuard,
}

/// The parts of a webhook's HTTP request.
struct Post<'a> {
    url: &'a str,
    key: &'a str,
    signature: Option<String>,
    body: Vec<u8>,
}

impl Webhooks {
    pub(crate) fn new(
        config: &NotificationsConfig,
        may_be_private: bool,
    ) -> Result<Webhooks, String> {
        let guard = AddressGuard::new(may_be_private);
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

    async fn post(&self, post: Post<'_>) -> Verdict {
        let url = match Url::parse(post.url) {
            Ok(url) => url,
            Err(error) => return Verdict::Dropped(format!("its URL cannot be read: {error}")),
        };
        if let Err(why) = self.guard.check_literal(&url) {
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
            Ok(response) => verdict_of_status(response.status()),
            Err(error) => Verdict::Failed(error_reason(error)),
        }
    }
}

fn verdict_of_status(status: StatusCode) -> Verdict {
    match status {
        StatusCode::GONE => Verdict::Dropped("it returned 410: gone permanently".into()),
        status if status.is_success() => Verdict::Delivered,
        status if status.is_redirection() => {
            Verdict::Failed(format!("it returned {status}; redirects are not followed"))
        }
        status => Verdict::Failed(format!("it returned {status}")),
    }
}

/// The innermost cause of an error, because it is the most specific. The URL is omitted, because it may contain a
/// secret.
fn error_reason(error: reqwest::Error) -> String {
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
struct AddressGuard {
    may_be_private: bool,
}

impl AddressGuard {
    fn new(may_be_private: bool) -> AddressGuard {
        AddressGuard { may_be_private }
    }

    /// Checks the host of a URL, if it is a literal address.
    fn check_url_address(self, url: &str) -> Result<(), String> {
        match Url::parse(url) {
            Ok(url) => self.check_literal(&url),
            Err(error) => Err(format!("its URL cannot be read: {error}")),
        }
    }

    fn check_address(self, address: IpAddr) -> Result<(), String> {
        match classify(address) {
            AddressClass::Never => Err(format!("no host has the address {address}")),
            AddressClass::Private if !self.may_be_private => Err(format!(
                "{address} is a private address: allow it by `notifications.allow_private_webhooks`"
            )),
            AddressClass::Private | AddressClass::Public => Ok(()),
        }
    }

    /// Checks the host of a URL if it is a literal address, because the client does not resolve such hosts.
    fn check_literal(self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.check_address(address),
            Err(_) => Ok(()),
        }
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let refused = found
                .iter()
                .find_map(|found| guard.check_address(found.ip()).err());
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|found| guard.check_address(found.ip()).is_ok())
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

    #[test]
    fn each_host_has_keys_of_its_own() {
        let work = tempfile::tempdir().unwrap();
        for host in ["a.org", "b.org"] {
            std::fs::create_dir(work.path().join(host)).unwrap();
            std::fs::write(work.path().join(host).join("key"), host).unwrap();
        }
        let of = |secrets_dir: Option<PathBuf>| {
            Permissions::for_fleet(NotificationsConfig {
                secrets_dir,
                ..NotificationsConfig::default()
            })
        };
        let (named, none) = (of(Some(work.path().to_owned())), of(None));
        let read = |permissions, host: &str| {
            read_secret(permissions, &format!("https://{host}/x"), "key").ok()
        };
        assert_eq!(read(&named, "a.org").unwrap(), b"a.org");
        assert_eq!(read(&named, "b.org").unwrap(), b"b.org");
        assert_eq!(read(&named, "c.org"), None);
        assert_eq!(read(&none, "a.org"), None);
    }

    fn is_address_allowed(url: &str, may_be_private: bool) -> bool {
        let guard = AddressGuard { may_be_private };
        guard.check_literal(&Url::parse(url).unwrap()).is_ok()
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
            assert!(!is_address_allowed(private, false), "{private}");
            assert!(is_address_allowed(private, true), "{private}");
        }
        assert!(!is_address_allowed("http://0.0.0.0/", true), "of no host");
        assert!(is_address_allowed("http://8.8.8.8/", false));
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
        let of = |code: u16| verdict_of_status(StatusCode::from_u16(code).unwrap());
        assert_eq!(of(204), Verdict::Delivered);
        assert!(matches!(of(410), Verdict::Dropped(_)));
        for again in [301, 400, 404, 429, 500, 503] {
            assert!(matches!(of(again), Verdict::Failed(_)), "{again}");
        }
    }
}
