//! Checks settings before anything is opened. A refused value is named by its key, whether it comes from the file, the
//! environment or a flag.

use webfill_service::{Fault, log};
use webfill_urls::DroppedParameters;

use super::Settings;
use super::table::{Kind, SETTINGS};

const DAY_S: f64 = 86_400.0;
const YEAR_S: f64 = 365.0 * DAY_S;

/// The longest contact, in bytes. Servers truncate or refuse long user agents.
const MAX_CONTACT_BYTES: usize = 200;

pub fn check(settings: &Settings) -> Result<(), Fault> {
    check_bounds(settings)?;
    settings.dispatcher.http_address().map_err(Fault::usage)?;
    let metrics = &settings.metrics;
    metrics.dispatcher_address().map_err(Fault::usage)?;
    metrics.supervisor_address().map_err(Fault::usage)?;
    let probes = &settings.probes;
    probes.dispatcher_address().map_err(Fault::usage)?;
    probes.supervisor_address().map_err(Fault::usage)?;
    settings.watches.check().map_err(Fault::usage)?;
    settings.notifications.check().map_err(Fault::usage)?;
    let dropped = DroppedParameters::new(&settings.dispatcher.drop_parameters);
    dropped.map_err(|why| Fault::usage(format!("dispatcher.drop_parameters: {why}")))?;
    settings.retries.check().map_err(Fault::usage)?;
    settings.backoff.check().map_err(Fault::usage)?;
    for (app, limits) in &settings.applications {
        limits.check(app).map_err(Fault::usage)?;
    }
    check_sites("browser.sites", &settings.browser.sites)?;
    check_sites("browser.not_sites", &settings.browser.not_sites)?;
    log::check_config(&settings.log)?;
    match &settings.politeness.contact {
        Some(contact) => check_contact(contact)
            .map_err(|wrong| Fault::usage(format!("politeness.contact = \"{contact}\": {wrong}"))),
        None => Ok(()),
    }
}

/// Checks that each entry is a site in the form that tasks use. Otherwise it would never match.
fn check_sites(key: &str, sites: &[String]) -> Result<(), Fault> {
    for named in sites {
        let url = webfill_urls::canonical_url(&format!("http://{named}/"), None).ok();
        let site = url.map(|url| webfill_urls::site(&url));
        if site.as_ref() != Some(named) {
            let hint = site
                .map(|site| format!(": write `{site}`"))
                .unwrap_or_default();
            return Err(Fault::usage(format!(
                "{key}: `{named}` is not a site: expected a registrable domain or an address{hint}"
            )));
        }
    }
    Ok(())
}

/// Checks every number against the bounds in the table of settings.
fn check_bounds(settings: &Settings) -> Result<(), Fault> {
    let table = toml::Table::try_from(settings)
        .map_err(|error| Fault::usage(format!("a setting cannot be written: {error}")))?;
    for setting in SETTINGS {
        let value = match setting.key.split_once('.') {
            Some((section, key)) => table.get(section).and_then(|section| section.get(key)),
            None => table.get(setting.key),
        };
        let refusal = value.and_then(|value| bounds_message(value, setting.kind));
        if let (Some(value), Some(refusal)) = (value, refusal) {
            return Err(Fault::usage(format!(
                "{} = {value}: {refusal}",
                setting.key
            )));
        }
    }
    Ok(())
}

fn bounds_message(value: &toml::Value, kind: Kind) -> Option<String> {
    match kind {
        Kind::Whole(least, most) => {
            let number = value.as_integer()?;
            let is_within = u64::try_from(number).is_ok_and(|it| (least..=most).contains(&it));
            (!is_within).then(|| format!("must be between {least} and {most}"))
        }
        Kind::Wait => {
            let is_within = (0.0..=YEAR_S).contains(&value.as_float()?);
            (!is_within).then(|| format!("must be a number of seconds from 0 to {YEAR_S}"))
        }
        Kind::Timeout => {
            let seconds = value.as_float()?;
            let is_within = seconds > 0.0 && seconds <= DAY_S;
            (!is_within).then(|| format!("must be more than 0 and at most {DAY_S} seconds"))
        }
        Kind::Text | Kind::Number | Kind::Switch | Kind::List | Kind::Lines | Kind::Waits => None,
    }
}

/// Checks that the contact is a URL without characters that would end a comment in the user agent.
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

    /// The message that refuses settings with this text.
    fn refusal_message(text: &str) -> String {
        let settings: Settings = toml::from_str(text).unwrap();
        check(&settings).unwrap_err().message
    }

    #[test]
    fn the_defaults_are_within_the_limits() {
        assert!(check(&Settings::default()).is_ok());
    }

    #[test]
    fn values_that_would_stop_a_crawl_are_refused_with_their_key() {
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
            let refusal = refusal_message(&format!("[{section}]\n{key} = {value}"));
            assert!(refusal.contains(&format!("{section}.{key}")), "{refusal}");
        }
    }

    #[test]
    fn a_contact_must_be_a_url() {
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
