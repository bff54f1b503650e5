//! The HTTP client: HTTP/1.1 and HTTP/2 over rustls, without proxies of the environment, redirects, cookies and
//! `Referer`.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Proxy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use webfill_service::Fault;
use webfill_urls::Url;

use crate::connections::IDLE;
use crate::fetch::FetchConfig;
use crate::politeness::PolitenessConfig;
use crate::resolve::{ClientPart, Clients, Resolver};
use crate::site_headers::SiteHeaders;

/// The most headers of one answer. Before the client reads a head, it fills two lists of this many headers, each of 32
/// bytes. Lists of more than 128 KiB would cost 75 page faults per answer, because the allocator returns their memory
/// to the system each time. The size of the head is bounded by the client's read buffer (some 400 KiB).
const MOST_HEADERS: usize = 3_050;

/// The size limit of an HTTP/2 head. The client's default is 16 KiB, but sites send more and browsers accept it.
const HEAD_BYTES: u32 = 400 << 10;

/// The flow-control window of an HTTP/2 stream.
const WINDOW_BYTES: u32 = 256 << 10;

/// Builds the clients: one for each port that a `--resolve` value names, and one for all other ports.
pub fn build(
    fetch: &FetchConfig,
    politeness: &PolitenessConfig,
    resolver: &Resolver,
) -> Result<Clients, Fault> {
    let tls = tls_config(fetch)?;
    Clients::build(resolver, |part| build_client(fetch, politeness, &tls, part))
}

fn build_client(
    fetch: &FetchConfig,
    politeness: &PolitenessConfig,
    tls: &rustls::ClientConfig,
    part: ClientPart,
) -> Result<Client, Fault> {
    let mut tls = tls.clone();
    // The client sets no ALPN protocols by itself if it gets a complete TLS configuration, as here.
    tls.alpn_protocols = match part.http1_only {
        true => vec![b"http/1.1".to_vec()],
        false => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(part.resolver)
        .user_agent(politeness.user_agent())
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .connect_timeout(Duration::from_secs_f64(fetch.connect_timeout))
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(1)
        // Like browsers and curl, skip invalid header lines.
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_max_headers(MOST_HEADERS)
        .http2_max_header_list_size(HEAD_BYTES)
        // How many bytes a server may send while a body waits for memory. The client's default is megabytes.
        .http2_initial_stream_window_size(WINDOW_BYTES)
        .http2_initial_connection_window_size(2 * WINDOW_BYTES);
    if part.http1_only {
        builder = builder.http1_only();
    }
    if let Some(proxy) = &fetch.proxy {
        builder = builder.proxy(read_proxy(proxy)?);
    }
    builder
        .build()
        .map_err(|error| Fault::error(format!("cannot set up the HTTP client: {error}")))
}

/// Checks the settings of fetches (`--proxy`, headers and the like) before the crawl opens anything.
pub fn check(fetch: &FetchConfig, politeness: &PolitenessConfig) -> Result<(), Fault> {
    SiteHeaders::parse(&fetch.headers).map_err(Fault::usage)?;
    let resolver = Resolver::new(fetch, politeness).map_err(Fault::usage)?;
    build(fetch, politeness, &resolver).map(drop)
}

const PROXY_SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// Parses the value of `--proxy`. The library's own error does not say what is wrong.
fn read_proxy(text: &str) -> Result<Proxy, Fault> {
    let fault = |reason: &str| {
        let shown = without_credentials(text);
        Fault::usage(format!(
            "--proxy `{shown}`: {reason}; write SCHEME://[USER:PASSWORD@]HOST[:PORT], with a scheme \
             of {} and special characters of user and password percent-encoded",
            PROXY_SCHEMES.join(", ")
        ))
    };
    let (scheme, authority) = text.split_once("://").unwrap_or(("http", text));
    if !PROXY_SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err(fault(&format!("unsupported scheme `{scheme}`")));
    }
    if without_credentials(authority)
        .trim_end_matches('/')
        .is_empty()
    {
        return Err(fault("it names no host"));
    }
    let url = Url::parse(&format!("{scheme}://{authority}"));
    let url = url.map_err(|error| fault(&error.to_string()))?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(fault("it names no host"));
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err(fault("unexpected text after host and port"));
    }
    Proxy::all(text).map_err(|_| fault("it cannot be read"))
}

/// A proxy's address without its user name and password. A malformed address may have an `@` or a
/// slash in its password, so everything up to the last `@` is removed.
fn without_credentials(proxy: &str) -> String {
    match (proxy.split_once("://"), proxy.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => proxy.to_owned(),
    }
}

fn tls_config(fetch: &FetchConfig) -> Result<rustls::ClientConfig, Fault> {
    let mut roots = rustls::RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = &fetch.ca_file {
        let unreadable =
            |reason: String| Fault::usage(format!("--ca-file {}: {reason}", path.display()));
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unreadable(error.to_string()))?;
        if certificates.is_empty() {
            return Err(unreadable("no certificate in it".into()));
        }
        for certificate in certificates {
            roots
                .add(certificate)
                .map_err(|error| unreadable(error.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::error(format!("cannot set up TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(proxy: &str) -> Option<String> {
        read_proxy(proxy).err().map(|fault| fault.message)
    }

    #[test]
    fn proxies_are_read_in_every_form() {
        for proxy in [
            "http://127.0.0.1:3128",
            "http://proxy.example:3128/",
            "HTTPS://me:secret@proxy.example",
            "socks5://[::1]:1080",
            "socks5h://me:s%40cret@proxy.example:1080",
            "proxy.example:3128",
            "me:secret@proxy.example:3128",
        ] {
            assert_eq!(refusal(proxy), None, "{proxy}");
        }
    }

    #[test]
    fn a_wrong_proxy_is_refused_with_a_reason_and_without_its_password() {
        for (proxy, reason) in [
            ("", "no host"),
            ("http://", "no host"),
            ("http:///", "no host"),
            ("http://me:hidden@", "no host"),
            ("http://:3128", "empty host"),
            ("socks5://me:hidden@:1080", "empty host"),
            ("http://me:hidden@proxy.example:99999", "invalid port"),
            ("http://me:hid/den@proxy.example:3128", "invalid port"),
            ("me:hidden@proxy.example:port", "invalid port"),
            (
                "gopher://me:hidden@proxy.example",
                "unsupported scheme `gopher`",
            ),
            ("socks4://proxy.example", "unsupported scheme `socks4`"),
            ("http://proxy.example/path", "unexpected text after"),
            ("http://proxy.example?hidden", "unexpected text after"),
        ] {
            let refusal = refusal(proxy).unwrap_or_else(|| panic!("{proxy} was taken"));
            assert!(refusal.contains(reason), "{refusal}");
            assert!(
                proxy.contains("?hidden") || !refusal.contains("hid"),
                "{refusal}"
            );
        }
    }
}
