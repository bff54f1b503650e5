//! What a page may ask for beside itself, and what is remembered of it.
//!
//! Scripts, and the data that they fetch, from the page's own site: whatever cannot change the text of
//! the page (images, styles, fonts, media, frames) is not asked for, nor is anything sent (only GET). Other
//! sites' clocks are other workers' business, so they are not asked at all.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_urls::{Url, canonical, site};

use super::devtools::Event;

/// A request of a page for a script, or for data.
#[derive(Debug, Clone)]
pub struct PartRequest {
    pub url: Url,
    /// Scripts are alike for all pages, as long as nobody says otherwise.
    pub is_script: bool,
    /// Those that servers of data look at.
    pub headers: Vec<(String, String)>,
}

/// What the page gets.
#[derive(Debug, Clone)]
pub enum Part {
    Answer(Rc<Answer>),
    /// There is none: it was not permitted, or went wrong.
    None,
}

/// An answer of a server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Those that matter to a script.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// For how long it may be given to other pages.
    pub fresh_for: Duration,
}

/// Headers of a script's request that are sent. The rest is the browser's own (and its origin, its
/// referrer, its languages), which a server need not know.
fn is_sent(name: &str) -> bool {
    matches!(
        name,
        "accept" | "authorization" | "x-requested-with" | "x-api-key"
    )
}

/// Headers of an answer that the browser is given.
pub fn is_received(name: &str) -> bool {
    matches!(name, "content-type" | "location")
        || name.starts_with("access-control-")
        || name.starts_with("x-")
}

impl PartRequest {
    /// Reads the event `Fetch.requestPaused`. An error says why it is not asked for.
    pub fn read(event: &Event, page_site: &str) -> Result<PartRequest, &'static str> {
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
        let url = canonical(url, None).map_err(|_| "its URL cannot be fetched")?;
        if site(&url) != page_site {
            return Err("it is another site");
        }
        let headers = request["headers"].as_object();
        let headers = headers.into_iter().flatten().filter_map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            let value = value.as_str().filter(|_| is_sent(&name))?.to_owned();
            Some((name, value))
        });
        Ok(PartRequest {
            headers: headers.collect(),
            url,
            is_script,
        })
    }
}

impl Answer {
    /// As `Fetch.fulfillRequest` takes it.
    pub fn fulfil(&self, request_id: &str) -> Value {
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

/// Scripts of which nobody says for how long they are fresh, and the longest that anything is.
const FRESH: Duration = Duration::from_secs(3_600);

/// For how long an answer may be used again (RFC 9111, 5.2.2, as far as it goes). A script without a word
/// on that is as fresh as a robots.txt; data is not.
pub fn fresh_for(status: u16, cache_control: Option<&str>, is_script: bool) -> Duration {
    if status != 200 {
        return Duration::ZERO;
    }
    let directives = cache_control.unwrap_or_default().to_ascii_lowercase();
    let mut directives = directives.split(',').map(str::trim);
    let usual = if is_script { FRESH } else { Duration::ZERO };
    directives
        .try_fold(usual, |so_far, directive| {
            let seconds = directive.strip_prefix("max-age=");
            match (
                directive,
                seconds.map(|text| text.trim_matches('"').parse()),
            ) {
                ("no-store" | "no-cache", _) => None,
                (_, Some(Ok(seconds))) => Some(Duration::from_secs(seconds).min(FRESH)),
                _ => Some(so_far),
            }
        })
        .unwrap_or(Duration::ZERO)
}

/// Bytes of answers that are remembered by one worker.
const MOST_BYTES: usize = 16 << 20;

/// Answers that may be given to other pages, the oldest forgotten first.
#[derive(Debug, Default)]
pub struct KeptParts {
    kept: HashMap<String, (Rc<Answer>, Instant)>,
    order: VecDeque<String>,
    bytes: usize,
}

impl KeptParts {
    pub fn get(&self, url: &Url, now: Instant) -> Option<Rc<Answer>> {
        let (answer, until) = self.kept.get(url.as_str())?;
        (*until > now).then(|| Rc::clone(answer))
    }

    pub fn keep(&mut self, url: &Url, answer: &Rc<Answer>, now: Instant) {
        if answer.fresh_for.is_zero() || size(url.as_str(), answer) > MOST_BYTES / 4 {
            return;
        }
        self.forget(url.as_str());
        self.order.retain(|kept| kept != url.as_str());
        self.bytes += size(url.as_str(), answer);
        let until = now + answer.fresh_for;
        self.kept
            .insert(url.as_str().to_owned(), (Rc::clone(answer), until));
        self.order.push_back(url.as_str().to_owned());
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, url: &str) {
        if let Some((answer, _)) = self.kept.remove(url) {
            self.bytes -= size(url, &answer);
        }
    }
}

fn size(url: &str, answer: &Answer) -> usize {
    let headers = answer.headers.iter();
    let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
    // The URL is there twice.
    2 * url.len() + headers + answer.body.len() + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused(kind: &str, method: &str, url: &str) -> Event {
        let request = json!({
            "url": url, "method": method,
            "headers": {"Accept": "application/json", "User-Agent": "x", "Referer": "https://a.example/"},
        });
        Event {
            method: "Fetch.requestPaused".into(),
            params: json!({"resourceType": kind, "request": request}),
        }
    }

    fn read(kind: &str, method: &str, url: &str) -> Result<PartRequest, &'static str> {
        PartRequest::read(&paused(kind, method, url), "a.example")
    }

    #[test]
    fn a_page_gets_scripts_and_data_of_its_own_site_and_nothing_else() {
        for kind in ["Script", "XHR", "Fetch"] {
            let request = read(kind, "GET", "https://api.a.example/x?y=1").unwrap();
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
            assert!(read(kind, "GET", "https://a.example/x").is_err(), "{kind}");
        }
        for url in [
            "https://b.example/x",
            "https://a.example.b.example/",
            "ftp://a.example/",
            "blob:x",
            "",
        ] {
            assert!(read("Script", "GET", url).is_err(), "{url}");
        }
        for method in ["POST", "HEAD", "OPTIONS", "DELETE"] {
            assert!(
                read("XHR", method, "https://a.example/x").is_err(),
                "{method}"
            );
        }
    }

    #[test]
    fn what_is_fresh_is_what_its_server_says_or_a_script() {
        let hour = FRESH.as_secs();
        for (control, script, data) in [
            (None, hour, 0),
            (Some("max-age=60"), 60, 60),
            (Some("public, max-age=31536000, immutable"), hour, hour),
            (Some("No-Store"), 0, 0),
            (Some("max-age=60, no-cache"), 0, 0),
            (Some("max-age=0"), 0, 0),
            (Some("max-age=soon"), hour, 0),
        ] {
            let fresh = |is_script| fresh_for(200, control, is_script).as_secs();
            assert_eq!((fresh(true), fresh(false)), (script, data), "{control:?}");
        }
        assert_eq!(fresh_for(404, None, true), Duration::ZERO);
    }

    #[test]
    fn memory_for_parts_is_bounded_and_the_oldest_go_first() {
        let mut kept = KeptParts::default();
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
            kept.keep(&url(n), &answer(1 << 20), now);
            // Again, it is not counted twice.
            kept.keep(&url(n), &answer(1 << 20), now);
        }
        assert!(
            kept.bytes <= MOST_BYTES && kept.kept.len() >= 14,
            "{}",
            kept.kept.len()
        );
        assert_eq!(kept.order.len(), kept.kept.len());
        assert!(kept.get(&url(99), now).is_some() && kept.get(&url(0), now).is_none());
        assert!(kept.get(&url(99), now + Duration::from_secs(61)).is_none());
        kept.keep(&url(1_000), &answer(MOST_BYTES), now);
        assert!(
            kept.get(&url(1_000), now).is_none(),
            "it would drive all others out"
        );
    }
}
