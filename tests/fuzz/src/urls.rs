//! Fuzzes links as pages contain them: absolute, or relative to the page's URL.

use webfill_urls::address::classify;
use webfill_urls::{Host, MAX_URL_BYTES, Url, canonical_url, origin, page_hash, site};

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let base = Url::parse("https://www.example.com/people/ada?page=2").expect("it is one");
    for base in [None, Some(&base)] {
        match canonical_url(&text, base) {
            Ok(url) => assert_canonical(&url),
            Err(refusal) => assert!(refusal.to_string().len() < 4_096, "errors are short"),
        }
    }
}

fn assert_canonical(url: &Url) {
    assert!(matches!(url.scheme(), "http" | "https"));
    assert!(url.as_str().len() <= MAX_URL_BYTES);
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    assert_eq!(
        canonical_url(url.as_str(), None).as_ref(),
        Ok(url),
        "the canonical form is its own canonical form"
    );
    match url.host().expect("an http URL has a host") {
        Host::Ipv4(address) => drop(classify(address.into())),
        Host::Ipv6(address) => drop(classify(address.into())),
        // A host that was read as a name must not be an IP address for the system's resolver.
        Host::Domain(name) => assert!(name.parse::<std::net::IpAddr>().is_err(), "{name}"),
    }
    assert!(!site(url).is_empty());
    assert!(url.as_str().starts_with(&origin(url)));
    page_hash(url.as_str());
}
