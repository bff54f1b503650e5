//! Addresses that a response sends the browser to. Recognises the addresses of challenges.

use serde::Deserialize;
use webfill_urls::{Url, site};

/// The conditions on the address of a challenge. All given conditions must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TargetCondition {
    /// The host is one of these, or a subdomain of one.
    hosts: Vec<String>,
    /// The path begins with one of these texts.
    path_prefixes: Vec<String>,
    /// The path is one of these.
    paths: Vec<String>,
    /// The query has all of these parameters, with any values.
    parameters: Vec<String>,
    /// The address has no query.
    without_query: bool,
}

impl TargetCondition {
    pub fn matches(&self, target: &Url) -> bool {
        let (host, path) = (target.host_str().unwrap_or_default(), target.path());
        let has = |wanted: &String| target.query_pairs().any(|(name, _)| name == *wanted);
        none_or_any(&self.hosts, |wanted| is_domain_or_subdomain(host, wanted))
            && none_or_any(&self.path_prefixes, |prefix| path.starts_with(prefix))
            && none_or_any(&self.paths, |wanted| path == wanted)
            && self.parameters.iter().all(has)
            && !(self.without_query && target.query().is_some())
    }
}

fn none_or_any(wanted: &[String], is_met: impl Fn(&str) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| is_met(wanted))
}

fn is_domain_or_subdomain(host: &str, domain: &str) -> bool {
    match host.strip_suffix(domain) {
        Some(before) => before.is_empty() || before.ends_with('.'),
        None => false,
    }
}

/// Whether two addresses are the same page, whatever their fragments.
pub fn is_same_page(one: &Url, other: &Url) -> bool {
    is_same_path(one, other) && one.query() == other.query()
}

/// Whether two addresses differ at most in their queries and fragments.
pub fn is_same_path(one: &Url, other: &Url) -> bool {
    one.host_str() == other.host_str() && one.path() == other.path()
}

/// Words of hosts and paths that stand for challenges and refusals wherever they occur.
const CHALLENGES: [&str; 12] = [
    "captcha",
    "challenge",
    "challenges",
    "antibot",
    "botcheck",
    "botdetection",
    "ddos",
    "waf",
    "punish",
    "blocked",
    "denied",
    "robotcheck",
];

/// Words that stand for challenges in the name of another host of the same site, such as `sec.site.example`, and in
/// its paths.
const GATES: [&str; 11] = [
    "sec",
    "security",
    "verify",
    "verification",
    "human",
    "bot",
    "bots",
    "shield",
    "block",
    "deny",
    "firewall",
];

/// Words that stand for challenges in the name of a host, but not in paths.
const OF_HOSTS: [&str; 1] = ["anti"];

/// Words that stand for challenges in the name of a separate site, such as `ddos-guard.example`. The words of the
/// second list count only if the address has a query, such as the page to return to. Without one, the site may only
/// have moved to a new name.
const OF_SITES: [&str; 5] = ["captcha", "antibot", "ddos", "botcheck", "robotcheck"];
const OF_SITES_WITH_QUERY: [&str; 4] = ["anti", "challenge", "challenges", "waf"];

/// Words in addresses that healthy sites send people to. An address with one of them does not count as a challenge.
const HEALTHY: [&str; 26] = [
    "login", "logon", "signin", "signup", "sign", "sso", "auth", "oauth", "oauth2", "account",
    "accounts", "session", "register", "consent", "cookie", "cookies", "privacy", "gdpr", "age",
    "email", "mail", "cart", "basket", "checkout", "lang", "language",
];

/// Whether an address that the page at `url` leads to names a challenge by the words of its host and path. A
/// log-in, a consent, a test of age, a shop and the like do not.
pub fn names_a_challenge(target: &Url, url: &Url) -> bool {
    let host = target.host_str().unwrap_or_default();
    let site = site(target);
    let own_host = host.strip_suffix(site.as_str()).unwrap_or_default();
    let has = |text: &str, names: &[&str]| {
        let mut words = text.split(['.', '-', '_', '/']);
        words.any(|word| names.iter().any(|name| name.eq_ignore_ascii_case(word)))
    };
    let path = target.path();
    if has(own_host, &HEALTHY) || has(path, &HEALTHY) {
        return false;
    }
    let is_of_site = site == webfill_urls::site(url);
    let names_itself =
        has(&site, &OF_SITES) || (target.query().is_some() && has(&site, &OF_SITES_WITH_QUERY));
    (names_itself && !is_of_site)
        || has(own_host, &CHALLENGES)
        || has(own_host, &OF_HOSTS)
        || has(path, &CHALLENGES)
        || (is_of_site && (has(own_host, &GATES) || has(path, &GATES)))
}

/// The content of `<meta http-equiv=refresh>`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refresh<'a> {
    pub seconds: u32,
    /// The target as written; `None` means the page itself.
    pub target: Option<&'a str>,
}

impl<'a> Refresh<'a> {
    /// Reads the value of the attribute `content`, such as `5; url='/next'`.
    pub fn read(content: &'a str) -> Option<Refresh<'a>> {
        let content = content.trim_ascii_start();
        let digits = content.bytes().take_while(u8::is_ascii_digit).count();
        let seconds = match digits {
            // A number such as `.5` is read as zero seconds, as browsers do.
            0 if content.starts_with('.') => 0,
            _ => content[..digits].parse().ok()?,
        };
        let rest = content[digits..].trim_start_matches(|c: char| {
            c.is_ascii_digit() || c.is_ascii_whitespace() || matches!(c, '.' | ';' | ',')
        });
        let target = strip_url_key(rest).trim_matches(|c: char| c.is_ascii_whitespace());
        let target = target.trim_matches(['"', '\'']);
        Some(Refresh {
            seconds,
            target: (!target.is_empty()).then_some(target),
        })
    }
}

/// The text without a leading `url=`, if it has one.
fn strip_url_key(text: &str) -> &str {
    let is_key = text
        .get(..3)
        .is_some_and(|key| key.eq_ignore_ascii_case("url"));
    let value = is_key.then(|| text[3..].trim_ascii_start().strip_prefix('='));
    value.flatten().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_is_read_with_and_without_an_address() {
        let read = |content| Refresh::read(content).map(|r| (r.seconds, r.target));
        assert_eq!(read("5"), Some((5, None)));
        assert_eq!(read(" 0;/next "), Some((0, Some("/next"))));
        assert_eq!(read("3 ; URL = '/a?b=c'"), Some((3, Some("/a?b=c"))));
        assert_eq!(read("1.5,url=\"x\""), Some((1, Some("x"))));
        assert_eq!(read("0;url="), Some((0, None)));
        assert_eq!(read("0; ünd"), Some((0, Some("ünd"))));
        assert_eq!(read(".5; url=/next"), Some((0, Some("/next"))));
        assert_eq!(read("soon"), None);
        assert_eq!(read("99999999999"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn challenges_are_distinguished_from_targets_of_healthy_sites() {
        let url = Url::parse("https://www.site.example/item/7").unwrap();
        for (target, expected) in [
            ("https://sec.site.example/", true),
            ("https://sec.site.example/?u=%2Fitem%2F7", true),
            ("https://bot-check.site.example/x", true),
            ("https://shield.site.example/", true),
            ("https://block.site.example/?u=7", true),
            ("https://security.site.example/", true),
            ("https://www.site.example/_sec/verify?u=7", true),
            ("https://geo.vendor.example/captcha/?r=7", true),
            ("https://challenge.vendor.example/", true),
            ("https://ddos-guard.example/check", true),
            ("https://captcha.example/?r=7", true),
            ("https://challenge.example/?r=7", true),
            ("https://challenge.example/", false),
            ("https://anti.vendor.example/", true),
            ("https://anti.example/?back=7", true),
            ("https://www.other.example/anti-aging", false),
            ("https://www.sec.example/ix?doc=7", false),
            ("https://sec.other.example/", false),
            ("https://shop.other.example/", false),
            ("https://login.site.example/?next=7", false),
            ("https://sec.site.example/login?next=7", false),
            ("https://verify-age.site.example/", false),
            ("https://www.site.example/verify-email", false),
            ("https://consent.site.example/challenge", false),
            ("https://de.site.example/item/7", false),
            ("https://m.site.example/blockedchain", false),
            ("https://secure.site.example/basket", false),
        ] {
            let target = Url::parse(target).unwrap();
            assert_eq!(names_a_challenge(&target, &url), expected, "{target}");
        }
    }

    #[test]
    fn a_host_is_matched_with_its_subdomains_only() {
        let condition = TargetCondition {
            hosts: vec!["captcha.example".into()],
            ..TargetCondition::default()
        };
        for (target, expected) in [
            ("https://captcha.example/", true),
            ("https://geo.captcha.example/x", true),
            ("https://notcaptcha.example/", false),
            ("https://captcha.example.org/", false),
            ("https://site.example/captcha.example", false),
        ] {
            let url = Url::parse(target).unwrap();
            assert_eq!(condition.matches(&url), expected, "{target}");
        }
    }
}
