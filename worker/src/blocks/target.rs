//! Addresses that a response sends the browser to, and those among them that are challenges.

use serde::Deserialize;
use webfill_urls::Url;

/// What an address must have to be a challenge. All conditions that are given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TargetCondition {
    /// One of these hosts, or a subdomain of one.
    hosts: Vec<String>,
    /// A path that begins with one of these.
    path_prefixes: Vec<String>,
    /// One of these paths, as a whole.
    paths: Vec<String>,
    /// All of these query parameters, with whatever value.
    parameters: Vec<String>,
    /// No query at all.
    without_query: bool,
}

impl TargetCondition {
    pub fn matches(&self, target: &Url) -> bool {
        let (host, path) = (target.host_str().unwrap_or_default(), target.path());
        let has = |wanted: &String| target.query_pairs().any(|(name, _)| name == *wanted);
        none_or_any(&self.hosts, |wanted| is_within(host, wanted))
            && none_or_any(&self.path_prefixes, |prefix| path.starts_with(prefix))
            && none_or_any(&self.paths, |wanted| path == wanted)
            && self.parameters.iter().all(has)
            && !(self.without_query && target.query().is_some())
    }
}

fn none_or_any(wanted: &[String], is_met: impl Fn(&str) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| is_met(wanted))
}

fn is_within(host: &str, domain: &str) -> bool {
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

/// What `<meta http-equiv=refresh>` asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refresh<'a> {
    pub seconds: u32,
    /// As it is written; `None` means the page itself.
    pub target: Option<&'a str>,
}

impl<'a> Refresh<'a> {
    /// Reads the attribute `content`, such as `5; url='/next'`.
    pub fn read(content: &'a str) -> Option<Refresh<'a>> {
        let content = content.trim_ascii_start();
        let digits = content.bytes().take_while(u8::is_ascii_digit).count();
        let seconds = content[..digits].parse().ok()?;
        let rest = content[digits..].trim_start_matches(|c: char| {
            c.is_ascii_digit() || c.is_ascii_whitespace() || matches!(c, '.' | ';' | ',')
        });
        let target = without_key(rest).trim_matches(|c: char| c.is_ascii_whitespace());
        let target = target.trim_matches(['"', '\'']);
        Some(Refresh {
            seconds,
            target: (!target.is_empty()).then_some(target),
        })
    }
}

/// What follows `url=`, if that is there.
fn without_key(text: &str) -> &str {
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
        assert_eq!(read("soon"), None);
        assert_eq!(read("99999999999"), None);
        assert_eq!(read(""), None);
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
