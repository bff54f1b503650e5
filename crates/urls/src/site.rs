//! The site of a URL, which is the unit of routing and politeness, and its
//! origin, which is the unit of robots.txt.

use url::{Host, Position, Url};

/// The site of a URL: its registrable domain by the public suffix list, private section included (`a.github.io` and
/// `b.github.io` are two sites).
///
/// A host that is itself a public suffix, or has only one label, is its own site. So is an IP address; IPv6 is in
/// brackets.
pub fn site(url: &Url) -> String {
    match url.host() {
        Some(Host::Domain(name)) => psl::domain_str(name).unwrap_or(name).to_owned(),
        _ => url.host_str().unwrap_or_default().to_owned(),
    }
}

/// The provider that hosts a site: the public suffix that the site is below or equal to, if it is in the private
/// section of the list (`github.io` for `alice.github.io`).
pub fn provider(site: &str) -> Option<&str> {
    let suffix = psl::suffix(site.as_bytes())?;
    if suffix.typ() != Some(psl::Type::Private) {
        return None;
    }
    // The suffix is the end of the name.
    let start = site.len().checked_sub(suffix.as_bytes().len())?;
    site.get(start..)
}

/// The origin of a URL: scheme, host and port, without a default port: `https://example.com`, `http://[::1]:8080`.
/// User name and password are not part of it (RFC 6454, section 4).
pub fn origin(url: &Url) -> String {
    format!(
        "{}://{}",
        url.scheme(),
        &url[Position::BeforeHost..Position::AfterPort]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn the_site_is_the_registrable_domain() {
        for (text, expected) in [
            ("https://www.example.com/a", "example.com"),
            ("https://example.com/", "example.com"),
            ("https://a.b.example.co.uk/", "example.co.uk"),
            ("https://alice.github.io/x", "alice.github.io"),
            ("https://deep.alice.github.io/x", "alice.github.io"),
            ("https://www.xn--bcher-kva.de/", "xn--bcher-kva.de"),
            ("https://www.bücher.de/", "xn--bcher-kva.de"),
            ("https://a.b.no-such-tld/", "b.no-such-tld"),
        ] {
            assert_eq!(site(&url(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_host_that_is_a_suffix_is_its_own_site() {
        for host in ["github.io", "co.uk", "com", "localhost"] {
            assert_eq!(site(&url(&format!("http://{host}/"))), host);
        }
    }

    #[test]
    fn an_address_is_its_own_site() {
        assert_eq!(site(&url("http://127.0.0.1:8080/")), "127.0.0.1");
        assert_eq!(site(&url("http://2130706433/")), "127.0.0.1");
        assert_eq!(site(&url("http://[2001:DB8:0::1]/")), "[2001:db8::1]");
    }

    #[test]
    fn sites_below_a_private_suffix_have_a_provider() {
        for (site, expected) in [
            ("alice.github.io", Some("github.io")),
            ("github.io", Some("github.io")),
            ("alice.blogspot.com", Some("blogspot.com")),
            ("example.com", None),
            ("example.co.uk", None),
            ("com", None),
            ("localhost", None),
            ("b.no-such-tld", None),
            ("127.0.0.1", None),
            ("[2001:db8::1]", None),
            ("", None),
        ] {
            assert_eq!(provider(site), expected, "{site}");
        }
    }

    #[test]
    fn the_origin_has_only_scheme_host_and_port() {
        for (text, expected) in [
            ("https://Example.com:443/a?b", "https://example.com"),
            ("http://example.com:443/", "http://example.com:443"),
            (
                "http://user:pass@example.com:8080/",
                "http://example.com:8080",
            ),
            ("http://[::1]:8080/x", "http://[::1]:8080"),
        ] {
            assert_eq!(origin(&url(text)), expected);
        }
    }
}
