//! The canonical form of URLs. They are compared, stored, hashed and fetched in this form.

use url::{ParseError, Url};

use crate::{Encoding, normalise_escapes, ports, queries};

/// The longest canonical URL, in bytes; longer ones are refused.
pub const MAX_URL_BYTES: usize = 4096;

/// The longest text that is parsed. A longer one could shrink to [`MAX_URL_BYTES`] only by dropping a fragment or dot
/// segments, so parsing it would only serve an attacker.
const MAX_TEXT_BYTES: usize = 4 * MAX_URL_BYTES;

/// How many characters of a refused URL are shown in an error.
const SHOWN_CHARS: usize = 120;

/// The longest host name that DNS can carry (RFC 1035, 2.3.4).
const MAX_HOST_BYTES: usize = 253;

/// Why a text is not a URL that can be crawled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    #[error("invalid URL {text:?}: {reason}")]
    Invalid { text: String, reason: &'static str },
    #[error("unsupported scheme {scheme:?} in {text:?}: only http and https are crawled")]
    UnsupportedScheme { text: String, scheme: String },
}

impl UrlRefusal {
    /// The reason code for counting a discovered link with this fault as skipped.
    pub fn code(&self) -> &'static str {
        match self {
            UrlRefusal::Invalid { .. } => "invalid_url",
            UrlRefusal::UnsupportedScheme { .. } => "unsupported_scheme",
        }
    }

    fn invalid(text: &str, reason: &'static str) -> Self {
        UrlRefusal::Invalid {
            text: shorten(text),
            reason,
        }
    }

    pub(crate) fn too_long(text: &str) -> Self {
        UrlRefusal::invalid(text, TOO_LONG)
    }

    fn unsupported_scheme(text: &str, scheme: &str) -> Self {
        UrlRefusal::UnsupportedScheme {
            text: shorten(text),
            scheme: shorten(scheme).to_ascii_lowercase(),
        }
    }
}

/// The canonical form of `text`. If `base` is given, `text` is read as a link on that page.
///
/// The text is parsed by the WHATWG URL Standard. This lower-cases the host (IDNA), resolves dot segments, drops a
/// default port and turns every spelling of an IP address into the address. In addition, the fragment, the user name,
/// the password and a trailing dot of the host are removed. Escapes in the path are normalised (see
/// [`normalise_escapes`]), and `^` and `|` are escaped there, as browsers do. The query stays as the parser leaves
/// it, because servers may distinguish any two spellings.
///
/// # Errors
///
/// [`UrlRefusal::UnsupportedScheme`] unless the scheme is http or https.
/// [`UrlRefusal::Invalid`] if the text cannot be parsed, is longer than [`MAX_URL_BYTES`], names a host that DNS
/// cannot hold, or names a port that the Fetch Standard blocks.
pub fn canonical_url(text: &str, base: Option<&Url>) -> Result<Url, UrlRefusal> {
    if let Some(scheme) = leading_scheme(text)
        && !is_crawlable(scheme)
    {
        return Err(UrlRefusal::unsupported_scheme(text, scheme));
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(UrlRefusal::invalid(text, TOO_LONG));
    }
    let mut url = Url::options()
        .base_url(base)
        .parse(base.map_or(text, |_| trim_leading_slashes(text)))
        .map_err(|error| UrlRefusal::invalid(text, parse_error_reason(error)))?;
    if !is_crawlable(url.scheme()) {
        return Err(UrlRefusal::unsupported_scheme(text, url.scheme()));
    }
    normalise(&mut url).map_err(|reason| UrlRefusal::invalid(text, reason))?;
    Ok(url)
}

/// The canonical form of a link on a page in `encoding`. Browsers send the query of such a link in that encoding.
///
/// # Errors
///
/// Those of [`canonical_url`].
pub fn canonical_url_on_page(
    text: &str,
    base: &Url,
    encoding: &'static Encoding,
) -> Result<Url, UrlRefusal> {
    let is_short = text.len() <= MAX_TEXT_BYTES;
    match is_short
        .then(|| queries::escape_query(text, encoding))
        .flatten()
    {
        Some(text) => canonical_url(&text, Some(base)),
        None => canonical_url(text, Some(base)),
    }
}

/// The link with at most two leading slashes. The URL Standard ignores further ones before the host of an http URL,
/// but our parser does so only after a scheme.
fn trim_leading_slashes(text: &str) -> &str {
    let link = text.trim_start_matches(|c: char| c <= ' ');
    let slashes = link.bytes().take_while(|b| matches!(b, b'/' | b'\\'));
    match slashes.count() {
        0..=2 => text,
        count => &link[count - 2..],
    }
}

const TOO_LONG: &str = "longer than 4096 bytes";
const NO_HOST_NAME: &str = "the host is not a name that DNS can hold";

/// The scheme that `text` begins with, if one is plainly visible. This saves parsing the many `javascript:`, `mailto:`
/// and `data:` links of real pages.
fn leading_scheme(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|c: char| c <= ' ');
    let end = text
        .bytes()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))?;
    let starts_as_scheme = text.as_bytes()[0].is_ascii_alphabetic();
    (starts_as_scheme && text.as_bytes()[end] == b':').then(|| &text[..end])
}

fn is_crawlable(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

/// Applies the normalisations beyond the URL Standard to a parsed http(s) URL. Each step first checks whether it is
/// needed, because it rarely is.
fn normalise(url: &mut Url) -> Result<(), &'static str> {
    const HTTP_TAKES_THEM: &str = "an http URL has a host, so it can have no cannot-be-a-base form";
    if url.fragment().is_some() {
        url.set_fragment(None);
    }
    if !url.username().is_empty() {
        url.set_username("").expect(HTTP_TAKES_THEM);
    }
    if url.password().is_some() {
        url.set_password(None).expect(HTTP_TAKES_THEM);
    }
    if let Some(path) = normalise_escapes(url.path()) {
        url.set_path(&path);
    }
    if url.path().contains(['^', '|']) {
        let path = url.path().replace('^', "%5E").replace('|', "%7C");
        url.set_path(&path);
    }
    drop_trailing_dot(url)?;
    if url.domain().is_some_and(|host| !fits_dns(host)) {
        return Err(NO_HOST_NAME);
    }
    if url.port().is_some_and(ports::is_bad_port) {
        return Err("the port belongs to another protocol and is blocked by the Fetch Standard");
    }
    if url.as_str().len() > MAX_URL_BYTES {
        return Err(TOO_LONG);
    }
    Ok(())
}

/// Removes a trailing dot from the host: `example.com.` and `example.com` are the same host.
fn drop_trailing_dot(url: &mut Url) -> Result<(), &'static str> {
    let Some(name) = url.domain().and_then(|host| host.strip_suffix('.')) else {
        return Ok(());
    };
    // Checked before the dot is removed: of two dots one would stay, and "1.2.3.4." would turn into an address.
    if !fits_dns(name) {
        return Err(NO_HOST_NAME);
    }
    let name = name.to_owned();
    url.set_host(Some(&name)).map_err(parse_error_reason)
}

fn fits_dns(host: &str) -> bool {
    host.len() <= MAX_HOST_BYTES && host.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn parse_error_reason(error: ParseError) -> &'static str {
    match error {
        ParseError::EmptyHost => "it has no host",
        ParseError::IdnaError => "the host is not a valid international domain name",
        ParseError::InvalidPort => "the port is not a number from 0 to 65535",
        ParseError::InvalidIpv4Address => "the host is not a valid IPv4 address",
        ParseError::InvalidIpv6Address => "the host is not a valid IPv6 address",
        ParseError::InvalidDomainCharacter => "the host contains an invalid character",
        ParseError::RelativeUrlWithoutBase => "it does not start with http:// or https://",
        ParseError::Overflow => TOO_LONG,
        _ => "it cannot be parsed",
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
