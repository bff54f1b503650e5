//! The HTTP client: HTTP/1.1 and HTTP/2 over rustls, nothing taken from the environment, no
//! redirects, no cookies, no Referer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Proxy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use webfill_startup::Fault;

use crate::connections::IDLE;
use crate::fetch::FetchConfig;
use crate::politeness::PolitenessConfig;
use crate::resolve::{ClientPart, Clients, Resolver};

/// Builds the clients, one per port that `--resolve` speaks of.
pub fn build(
    fetch: &FetchConfig,
    politeness: &PolitenessConfig,
    resolver: &Resolver,
) -> Result<Clients, Fault> {
    let tls = tls(fetch)?;
    Clients::build(resolver, |part| build_one(fetch, politeness, &tls, part))
}

fn build_one(
    fetch: &FetchConfig,
    politeness: &PolitenessConfig,
    tls: &rustls::ClientConfig,
    part: ClientPart,
) -> Result<Client, Fault> {
    let mut tls = tls.clone();
    // The client offers no protocol by itself over a TLS configuration that it is given.
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
        .pool_max_idle_per_host(1);
    if part.http1_only {
        builder = builder.http1_only();
    }
    if let Some(proxy) = &fetch.proxy {
        const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];
        let scheme = proxy.split_once("://").map_or("http", |(scheme, _)| scheme);
        if !SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) {
            let known = SCHEMES.join(", ");
            return Err(Fault::usage(format!(
                "--proxy `{}`: `{scheme}` is none of {known}",
                hidden(proxy)
            )));
        }
        let proxy = Proxy::all(proxy)
            .map_err(|error| Fault::usage(format!("--proxy `{}`: {error}", hidden(proxy))))?;
        builder = builder.proxy(proxy);
    }
    builder
        .build()
        .map_err(|error| Fault::error(format!("cannot set up the HTTP client: {error}")))
}

/// Judges the settings of a fetch before anything is opened.
pub fn check(fetch: &FetchConfig, politeness: &PolitenessConfig) -> Result<(), Fault> {
    let resolver = Resolver::new(fetch, politeness).map_err(Fault::usage)?;
    build(fetch, politeness, &resolver).map(drop)
}

/// The proxy's address without its user name and password.
fn hidden(proxy: &str) -> String {
    match (proxy.split_once("://"), proxy.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => proxy.to_owned(),
    }
}

fn tls(fetch: &FetchConfig) -> Result<rustls::ClientConfig, Fault> {
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
