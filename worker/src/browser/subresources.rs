//! Subresources of a rendered page: decides which requests of the page are answered, and caches the answers.
//!
//! GET requests for scripts and for data (XHR, fetch) from the page's own site are answered. Images, styles, fonts,
//! media and frames cannot change the text of the page and are refused. Requests to other sites are refused, too,
//! because only the worker that owns a site knows when it may be requested.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_urls::{Url, canonical_url, site};

use super::devtools::Event;

/// A page's request for a script or for data.
#[derive(Debug, Clone)]
pub struct SubresourceRequest {
    pub url: Url,
    /// Whether it is a script. An answer with a script may be reused for other pages even if its server does not say
    /// for how long.
    pub is_script: bool,
    /// The request headers passed to the server; see [`is_sent_header`].
    pub headers: Vec<(String, String)>,
}

/// The answer given to the page.
#[derive(Debug, Clone)]
pub enum Subresource {
    Answer(Rc<Answer>),
    /// No answer: the request was refused or has failed.
    None,
}

/// An answer of a server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The response headers passed to the browser; see [`is_received_header`].
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How long other pages may reuse the answer.
    pub fresh_for: Duration,
}

/// Whether a header of a script's request is sent. The other headers are the browser's own (origin, referrer,
/// languages), and servers need not know them.
fn is_sent_header(name: &str) -> bool {
    matches!(
        name,
        "accept" | "authorization" | "x-requested-with" | "x-api-key"
    )
}

/// Whether an answer's header is passed to the browser.
pub fn is_received_header(name: &str) -> bool {
    matches!(name, "content-type" | "location")
        || name.starts_with("access-control-")
        || name.starts_with("x-")
}

impl SubresourceRequest {
    /// Reads the event `Fetch.requestPaused`. An error says why the request is refused.
    pub fn from_event(event: &Event, page_site: &str) -> Result<SubresourceRequest, &'static str> {
        let request = &event.params["request"];
        let is_script = match event.params["resourceType"].as_str() {
            Some("Script") => true,
            Some("XHR" | "Fetch") => false,
            _ => return Err("it does not change the text"),
        };
        if request["headers"]["Sec-Purpose"].is_string() {
            return Err("it is for another page");
        }
        if request["method"] != "GET" {
            return Err("only GET is sent");
        }
        let url = request["url"].as_str().unwrap_or_default();
        let url = canonical_url(url, None).map_err(|_| "its URL cannot be fetched")?;
        if site(&url) != page_site {
            return Err("it is another site");
        }
        let headers = request["headers"].as_object();
        let headers = headers.into_iter().flatten().filter_map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            let value = value.as_str().filter(|_| is_sent_header(&name))?.to_owned();
            Some((name, value))
        });
        Ok(SubresourceRequest {
            headers: headers.collect(),
            url,
            is_script,
        })
    }
}

impl Answer {
    /// The parameters of `Fetch.fulfillRequest`.
    pub fn fulfil_params(&self, request_id: &str) -> Value {
        let headers = self.headers.iter();
        let headers: Vec<Value> = headers
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        json!({
            "requestId": request_id,
            "responseCode": self.status,
            "responseHeaders": headers,
            "body": base64(&self.body),
        })
    }
}

pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The longest time that anything is cached, and the default for scripts without `Cache-Control`.
const MAX_FRESH: Duration = Duration::from_secs(3_600);

/// How long an answer may be reused, by a subset of RFC 9111, 5.2.2. Without `Cache-Control`, a script is fresh for
/// [`MAX_FRESH`], and data is not cached.
pub fn fresh_duration(status: u16, cache_control: Option<&str>, is_script: bool) -> Duration {
    if status != 200 {
        return Duration::ZERO;
    }
    let directives = cache_control.unwrap_or_default().to_ascii_lowercase();
    let mut directives = directives.split(',').map(str::trim);
    let usual = if is_script { MAX_FRESH } else { Duration::ZERO };
    directives
        .try_fold(usual, |so_far, directive| {
            let seconds = directive.strip_prefix("max-age=");
            match (
                directive,
                seconds.map(|text| text.trim_matches('"').parse()),
            ) {
                ("no-store" | "no-cache", _) => None,
                (_, Some(Ok(seconds))) => Some(Duration::from_secs(seconds).min(MAX_FRESH)),
                _ => Some(so_far),
            }
        })
        .unwrap_or(Duration::ZERO)
}

/// Bytes that the cache of one worker may hold.
const MAX_CACHED_BYTES: usize = 16 << 20;

/// A bounded cache of answers that other pages may reuse. The oldest answers are removed first.
#[derive(Debug, Default)]
pub struct SubresourceCache {
    answers: HashMap<String, (Rc<Answer>, Instant)>,
    order: VecDeque<String>,
    bytes: usize,
}

impl SubresourceCache {
    pub fn get(&self, url: &Url, now: Instant) -> Option<Rc<Answer>> {
        let (answer, until) = self.answers.get(url.as_str())?;
        (*until > now).then(|| Rc::clone(answer))
    }

    pub fn insert(&mut self, url: &Url, answer: &Rc<Answer>, now: Instant) {
        if answer.fresh_for.is_zero() || cached_bytes(url.as_str(), answer) > MAX_CACHED_BYTES / 4 {
            return;
        }
        self.forget(url.as_str());
        self.order.retain(|cached| cached != url.as_str());
        self.bytes += cached_bytes(url.as_str(), answer);
        let until = now + answer.fresh_for;
        self.answers
            .insert(url.as_str().to_owned(), (Rc::clone(answer), until));
        self.order.push_back(url.as_str().to_owned());
        while self.bytes > MAX_CACHED_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, url: &str) {
        if let Some((answer, _)) = self.answers.remove(url) {
            self.bytes -= cached_bytes(url, &answer);
        }
    }
}

fn cached_bytes(url: &str, answer: &Answer) -> usize {
    let headers = answer.headers.iter();
    let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
    // The URL is held twice: in `answers` and in `order`.
    2 * url.len() + headers + answer.body.len() + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_paused(kind: &str, method: &str, url: &str) -> Event {
        let request = json!({
            "url": url, "method": method,
            "headers": {"Accept": "application/json", "User-Agent": "x", "Referer": "https://a.example/"},
        });
        Event {
            method: "Fetch.requestPaused".into(),
            params: json!({"resourceType": kind, "request": request}),
        }
    }

    fn read_event(kind: &str, method: &str, url: &str) -> Result<SubresourceRequest, &'static str> {
        SubresourceRequest::from_event(&request_paused(kind, method, url), "a.example")
    }

    #[test]
    fn only_scripts_and_data_of_the_pages_own_site_are_fetched() {
        for kind in ["Script", "XHR", "Fetch"] {
            let request = read_event(kind, "GET", "https://api.a.example/x?y=1").unwrap();
            assert_eq!(request.url.as_str(), "https://api.a.example/x?y=1");
            assert_eq!(request.is_script, kind == "Script");
            let accept = ("accept".to_owned(), "application/json".to_owned());
            assert_eq!(request.headers, [accept]);
        }
        for kind in [
            "Image",
            "Stylesheet",
            "Font",
            "Media",
            "Document",
            "Ping",
            "Other",
        ] {
            assert!(
                read_event(kind, "GET", "https://a.example/x").is_err(),
                "{kind}"
            );
        }
        for url in [
            "https://b.example/x",
            "https://a.example.b.example/",
            "ftp://a.example/",
            "blob:x",
            "",
        ] {
            assert!(read_event("Script", "GET", url).is_err(), "{url}");
        }
        for method in ["POST", "HEAD", "OPTIONS", "DELETE"] {
            assert!(
                read_event("XHR", method, "https://a.example/x").is_err(),
                "{method}"
            );
        }
    }

    #[test]
    fn freshness_follows_the_server_or_is_an_hour_for_scripts() {
        let hour = MAX_FRESH.as_secs();
        for (control, script, data) in [
            (None, hour, 0),
            (Some("max-age=60"), 60, 60),
            (Some("public, max-age=31536000, immutable"), hour, hour),
            (Some("No-Store"), 0, 0),
            (Some("max-age=60, no-cache"), 0, 0),
            (Some("max-age=0"), 0, 0),
            (Some("max-age=soon"), hour, 0),
        ] {
            let fresh = |is_script| fresh_duration(200, control, is_script).as_secs();
            assert_eq!((fresh(true), fresh(false)), (script, data), "{control:?}");
        }
        assert_eq!(fresh_duration(404, None, true), Duration::ZERO);
    }

    #[test]
    fn the_cache_is_bounded_and_the_oldest_answers_go_first() {
        let mut cache = SubresourceCache::default();
        let now = Instant::now();
        let url = |n: usize| Url::parse(&format!("https://a.example/{n}.js")).unwrap();
        let answer = |bytes: usize| {
            Rc::new(Answer {
                status: 200,
                headers: Vec::new(),
                body: vec![b'x'; bytes],
                fresh_for: Duration::from_secs(60),
            })
        };
        for n in 0..100 {
            cache.insert(&url(n), &answer(1 << 20), now);
            // A second insertion is not counted twice.
            cache.insert(&url(n), &answer(1 << 20), now);
        }
        assert!(
            cache.bytes <= MAX_CACHED_BYTES && cache.answers.len() >= 14,
            "{}",
            cache.answers.len()
        );
        assert_eq!(cache.order.len(), cache.answers.len());
        assert!(cache.get(&url(99), now).is_some() && cache.get(&url(0), now).is_none());
        assert!(cache.get(&url(99), now + Duration::from_secs(61)).is_none());
        cache.insert(&url(1_000), &answer(MAX_CACHED_BYTES), now);
        assert!(
            cache.get(&url(1_000), now).is_none(),
            "it would drive all others out"
        );
    }
}
