//! The ranges of settings. A value out of range is refused, with its key, before anything is opened,
//! whether it comes from the file, the environment or a flag.

use webfill_service::{Fault, log};
use webfill_urls::{DroppedParameters, MAX_URL_BYTES};

use super::Settings;

const DAY_S: f64 = 86_400.0;
const YEAR_S: f64 = 365.0 * DAY_S;
const MAX_DAYS: u64 = 100 * 365;

/// Servers cut or refuse longer user agents.
const MAX_CONTACT_BYTES: usize = 200;

pub fn check(settings: &Settings) -> Result<(), Fault> {
    check_seconds(settings)?;
    check_numbers(settings)?;
    settings.dispatcher.http_address().map_err(Fault::usage)?;
    let metrics = &settings.metrics;
    metrics.dispatcher_address().map_err(Fault::usage)?;
    metrics.supervisor_address().map_err(Fault::usage)?;
    let probes = &settings.probes;
    probes.dispatcher_address().map_err(Fault::usage)?;
    probes.supervisor_address().map_err(Fault::usage)?;
    settings.watches.check().map_err(Fault::usage)?;
    settings.notices.check().map_err(Fault::usage)?;
    let dropped = DroppedParameters::new(&settings.dispatcher.drop_parameters);
    dropped.map_err(|why| Fault::usage(format!("dispatcher.drop_parameters: {why}")))?;
    settings.retries.check().map_err(Fault::usage)?;
    settings.rests.check().map_err(Fault::usage)?;
    for (app, limits) in &settings.applications {
        limits.check(app).map_err(Fault::usage)?;
    }
    check_sites("browser.sites", &settings.browser.sites)?;
    check_sites("browser.not_sites", &settings.browser.not_sites)?;
    log::check(&settings.log)?;
    match &settings.politeness.contact {
        Some(contact) => check_contact(contact)
            .map_err(|wrong| Fault::usage(format!("politeness.contact = \"{contact}\": {wrong}"))),
        None => Ok(()),
    }
}

/// Sites are compared with those that tasks carry.
fn check_sites(key: &str, sites: &[String]) -> Result<(), Fault> {
    for named in sites {
        let url = webfill_urls::canonical(&format!("http://{named}/"), None).ok();
        let site = url.map(|url| webfill_urls::site(&url));
        if site.as_ref() != Some(named) {
            let hint = site
                .map(|site| format!(": write `{site}`"))
                .unwrap_or_default();
            return Err(Fault::usage(format!(
                "{key}: `{named}` is no site, which is a registrable domain or an address{hint}"
            )));
        }
    }
    Ok(())
}

fn check_seconds(settings: &Settings) -> Result<(), Fault> {
    let (politeness, fetch) = (&settings.politeness, &settings.fetch);
    let waits = [
        ("politeness.delay", politeness.delay),
        ("politeness.max_delay", politeness.max_delay),
        ("politeness.address_delay", politeness.address_delay()),
    ];
    for (key, seconds) in waits {
        if !(0.0..=YEAR_S).contains(&seconds) {
            return Err(Fault::usage(format!(
                "{key} = {seconds}: must be a number of seconds from 0 to {YEAR_S}"
            )));
        }
    }
    if let Some(seconds) = settings.dispatcher.patience
        && !(0.0..=YEAR_S).contains(&seconds)
    {
        return Err(Fault::usage(format!(
            "dispatcher.patience = {seconds}: must be a number of seconds from 0 to {YEAR_S}"
        )));
    }
    let patience = [
        ("dispatcher.lease", settings.dispatcher.lease),
        ("worker.page_deadline", settings.worker.page_deadline),
        ("fetch.lookup_timeout", fetch.lookup_timeout),
        ("fetch.connect_timeout", fetch.connect_timeout),
        ("fetch.head_timeout", fetch.head_timeout),
        ("fetch.body_timeout", fetch.body_timeout),
        ("fetch.total_timeout", fetch.total_timeout),
        ("documents.deadline", settings.documents.deadline),
        ("browser.settle", settings.browser.settle),
        ("browser.page_deadline", settings.browser.page_deadline),
    ];
    for (key, seconds) in patience {
        if !(seconds > 0.0 && seconds <= DAY_S) {
            return Err(Fault::usage(format!(
                "{key} = {seconds}: must be more than 0 and at most {DAY_S} seconds"
            )));
        }
    }
    Ok(())
}

fn check_numbers(settings: &Settings) -> Result<(), Fault> {
    let (dispatcher, supervisor) = (&settings.dispatcher, &settings.supervisor);
    let numbers = [
        (
            "dispatcher.window_sites",
            dispatcher.window_sites as u64,
            1..=100_000_000,
        ),
        (
            "dispatcher.seen_memory_mib",
            dispatcher.seen_memory_mib as u64,
            1..=1 << 20,
        ),
        // The next three are its own as well.
        ("dispatcher.port", u64::from(dispatcher.port), 1..=65_532),
        ("supervisor.workers", u64::from(supervisor.workers), 0..=999),
        (
            "politeness.address_in_flight",
            u64::from(settings.politeness.address_in_flight()),
            1..=1_000_000,
        ),
        (
            "supervisor.queue_url_bytes",
            supervisor.queue_url_bytes,
            // With less, a long URL could never be sent.
            MAX_URL_BYTES as u64..=1 << 40,
        ),
        (
            "worker.concurrency",
            settings.worker.concurrency as u64,
            1..=10_000,
        ),
        (
            "worker.memory_mib",
            settings.worker.memory_mib as u64,
            // With less, many real pages would be cut.
            32..=1 << 20,
        ),
        (
            "fetch.max_body_bytes",
            settings.fetch.max_body_bytes as u64,
            1..=1 << 40,
        ),
        ("archive.warc_mib", settings.archive.warc_mib, 1..=1 << 20),
        (
            "documents.readers",
            settings.documents.readers as u64,
            1..=1_000,
        ),
        (
            "documents.memory_mib",
            settings.documents.memory_mib,
            // With less, many real documents would be too large.
            64..=1 << 20,
        ),
        ("bodies.max_mib", settings.bodies.max_mib, 1..=1 << 30),
        (
            "bodies.max_body_mib",
            settings.bodies.max_body_mib,
            1..=1 << 10,
        ),
        ("browser.tabs", settings.browser.tabs as u64, 1..=1_000),
        (
            "browser.max_requests",
            settings.browser.max_requests as u64,
            0..=10_000,
        ),
        (
            "browser.memory_mib",
            settings.browser.memory_mib.into(),
            256..=1 << 20,
        ),
        (
            "browser.pages",
            settings.browser.pages.into(),
            1..=1_000_000,
        ),
        (
            "retention.pages_days",
            settings.retention.pages_days.into(),
            0..=MAX_DAYS,
        ),
        (
            "retention.log_days",
            settings.retention.log_days.into(),
            0..=MAX_DAYS,
        ),
        (
            "retention.samples_mib",
            settings.retention.samples_mib.into(),
            0..=1 << 20,
        ),
        ("disk.floor_mib", settings.disk.floor_mib, 0..=1 << 40),
        ("log.keep", settings.log.keep as u64, 1..=100_000),
        ("log.max_mib", settings.log.max_mib, 1..=1 << 20),
        (
            "log.audit_keep",
            settings.log.audit_keep as u64,
            1..=100_000,
        ),
    ];
    for (key, number, range) in numbers {
        if !range.contains(&number) {
            return Err(Fault::usage(format!(
                "{key} = {number}: must be between {} and {}",
                range.start(),
                range.end()
            )));
        }
    }
    Ok(())
}

/// Checks that the contact is a URL, without characters that would end a comment in the user agent.
pub fn check_contact(text: &str) -> Result<(), String> {
    let is_page = text.starts_with("http://") || text.starts_with("https://");
    let fits_user_agent = |c: char| c.is_ascii_graphic() && !"()".contains(c);
    if !is_page {
        return Err("not the http or https URL of a page that explains the crawl".into());
    }
    match text.len() <= MAX_CONTACT_BYTES && text.chars().all(fits_user_agent) {
        true => Ok(()),
        false => Err(format!(
            "must fit into a user agent: at most {MAX_CONTACT_BYTES} bytes, ASCII without spaces and brackets"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The refusal of a settings file.
    fn refusal(text: &str) -> String {
        let settings: Settings = toml::from_str(text).unwrap();
        check(&settings).unwrap_err().message
    }

    #[test]
    fn the_defaults_are_within_the_limits() {
        assert!(check(&Settings::default()).is_ok());
    }

    #[test]
    fn values_that_would_stop_a_crawl_are_refused_by_their_key() {
        for (section, key, value) in [
            ("politeness", "delay", "-1"),
            ("politeness", "max_delay", "nan"),
            ("politeness", "address_delay", "-0.1"),
            ("politeness", "address_in_flight", "0"),
            ("politeness", "contact", "\"me@example.org\""),
            ("politeness", "contact", "\"http://example.org/\\r\\nX: y\""),
            ("worker", "page_deadline", "0"),
            ("worker", "concurrency", "0"),
            ("fetch", "total_timeout", "inf"),
            ("fetch", "max_body_bytes", "0"),
            ("archive", "warc_mib", "0"),
            ("bodies", "max_mib", "0"),
            ("documents", "readers", "0"),
            ("documents", "deadline", "0"),
            ("documents", "memory_mib", "1"),
            ("dispatcher", "window_sites", "0"),
            ("dispatcher", "seen_memory_mib", "100000000000"),
            ("dispatcher", "http", "\"0.0.0.0:8080\""),
            ("metrics", "dispatcher", "\"0.0.0.0:9464\""),
            ("metrics", "supervisor", "\"9464\""),
            ("probes", "dispatcher", "\"0.0.0.0:8081\""),
            ("probes", "supervisor", "\"localhost\""),
            ("supervisor", "queue_url_bytes", "100"),
            ("supervisor", "workers", "1000"),
            ("retention", "pages_days", "36501"),
            ("log", "keep", "0"),
            ("log", "level", "\"loud\""),
        ] {
            let refusal = refusal(&format!("[{section}]\n{key} = {value}"));
            assert!(refusal.contains(&format!("{section}.{key}")), "{refusal}");
        }
    }

    #[test]
    fn a_contact_is_a_page() {
        assert!(check_contact("https://example.org/crawl").is_ok());
        for wrong in [
            "me@example.org",
            "https://example.org/\r\nX: y",
            "https://example.org/) Mozilla",
        ] {
            assert!(check_contact(wrong).is_err(), "{wrong}");
        }
    }
}
