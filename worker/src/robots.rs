//! robots.txt per origin: from memory, else from the shared cache, else from the web, at most
//! once an hour (RFC 9309).

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use webfill_store::RobotsEntry;
use webfill_urls::Url;
use webfill_wire::Outcome;

use crate::ending::now_ms;
use crate::fetch::Fetched;
use crate::gate::{Barred, Gate, Leave};
use crate::politeness::Answer;
use crate::robots_rules::RobotsRules;

/// robots.txt files are fetched again after this long.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// An origin whose robots.txt could not be had is asked again after this long.
const UNREACHABLE_LIFETIME: Duration = Duration::from_secs(60);

/// Only the beginning counts (RFC 9309 2.5 asks for at least this much).
const MOST_BYTES: usize = 500 << 10;

/// RFC 9309 2.3.1.2: follow at least five.
const MOST_REDIRECTS: usize = 5;

/// Requests that one robots.txt may take.
pub const MOST_REQUESTS: u32 = MOST_REDIRECTS as u32 + 1;

/// Origins remembered by one worker, and the memory that their rules may take together.
const MOST_REMEMBERED: usize = 4_096;
const MOST_REMEMBERED_BYTES: usize = 8 << 20;

/// The name that group lines select us by: the part of the user agent before the slash.
const AGENT_TOKEN: &str = "webfill";

/// The rules of one origin.
#[derive(Debug, Clone)]
pub enum Rules {
    Known(Rc<RobotsRules>),
    /// 5xx or no answer: nothing is allowed for now. Carries how its pages end.
    Unreachable(Outcome),
}

/// What the web said when it was asked for a robots.txt.
pub struct RobotsAnswer {
    /// `None` if the gate was shut before the answer was complete.
    pub entry: Option<RobotsEntry>,
    pub answered_at: Instant,
    pub answer: Answer,
    /// How the pages of the origin end if there are no rules.
    pub unreachable: Outcome,
}

struct Remembered {
    rules: Rules,
    until: Instant,
}

/// The robots.txt files that this worker knows.
#[derive(Default)]
pub struct RobotsFiles {
    remembered: HashMap<String, Remembered>,
    bytes: usize,
}

impl RobotsFiles {
    /// From memory.
    pub fn remembered(&self, origin: &str) -> Option<Rules> {
        let known = self.remembered.get(origin)?;
        (known.until > Instant::now()).then(|| known.rules.clone())
    }

    /// Keeps an entry in memory and returns its rules.
    pub fn remember(&mut self, entry: &RobotsEntry, unreachable: Outcome) -> Rules {
        let lifetime = entry.expires_at_ms.saturating_sub(now_ms()).max(0) as u64;
        let rules = rules_of(entry, unreachable);
        let remembered = Remembered {
            rules: rules.clone(),
            until: Instant::now() + Duration::from_millis(lifetime).min(LIFETIME),
        };
        self.forget(&entry.origin);
        self.bytes += remembered.bytes();
        self.remembered.insert(entry.origin.clone(), remembered);
        self.make_room();
        rules
    }

    /// Whoever is forgotten is in the shared cache still, so any but the expired can go as well.
    fn make_room(&mut self) {
        if !self.is_full() {
            return;
        }
        let now = Instant::now();
        let (expired, live): (Vec<_>, Vec<_>) = self
            .remembered
            .iter()
            .partition(|(_, known)| known.until <= now);
        let victims: Vec<String> = expired
            .into_iter()
            .chain(live)
            .map(|(origin, _)| origin.clone())
            .collect();
        for origin in victims {
            if !self.is_full() {
                return;
            }
            self.forget(&origin);
        }
    }

    fn is_full(&self) -> bool {
        self.remembered.len() > MOST_REMEMBERED || self.bytes > MOST_REMEMBERED_BYTES
    }

    fn forget(&mut self, origin: &str) {
        if let Some(known) = self.remembered.remove(origin) {
            self.bytes -= known.bytes();
        }
    }
}

impl Remembered {
    fn bytes(&self) -> usize {
        match &self.rules {
            Rules::Known(rules) => rules.memory_bytes(),
            Rules::Unreachable(_) => 0,
        }
    }
}

/// Asks the web, following up to five redirects, each judged like any request. An error if
/// there is no answer at all.
pub async fn fetch(gate: &Gate, leave: &Leave, origin: &str) -> Result<RobotsAnswer, Barred> {
    let mut fetched = None;
    let mut barred = None;
    let mut next = Url::parse(&format!("{origin}/robots.txt")).ok();
    for _ in 0..=MOST_REDIRECTS {
        let Some(url) = next.take() else { break };
        match gate.robots(leave, &url, MOST_BYTES).await {
            Ok(answer) => {
                next = redirect_target(&url, &answer);
                fetched = Some(answer);
            }
            Err(why) => barred = Some(why),
        }
    }
    let fetched = match (fetched, barred) {
        (Some(fetched), _) => fetched,
        (None, Some(barred)) => return Err(barred),
        (None, None) => Fetched::refused(Outcome::NetworkError, "not an origin"),
    };
    Ok(RobotsAnswer {
        answered_at: fetched.answered_at,
        answer: fetched.answer,
        unreachable: unreachable_outcome(fetched.outcome),
        entry: barred.is_none().then(|| entry_of(origin, fetched)),
    })
}

fn redirect_target(url: &Url, answer: &Fetched) -> Option<Url> {
    let target = answer.redirect.as_deref()?;
    webfill_urls::canonical(target, Some(url)).ok()
}

fn entry_of(origin: &str, fetched: Fetched) -> RobotsEntry {
    let status = fetched.status_code.filter(|_| fetched.error.is_none());
    let lifetime = match status {
        None | Some(500..) => UNREACHABLE_LIFETIME,
        Some(_) => LIFETIME,
    };
    let fetched_at_ms = now_ms();
    RobotsEntry {
        origin: origin.to_owned(),
        status,
        body: fetched.body,
        fetched_at_ms,
        expires_at_ms: fetched_at_ms + lifetime.as_millis() as i64,
    }
}

/// Where the host itself is the trouble, its pages end the way they would without robots.txt.
fn unreachable_outcome(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::DnsError | Outcome::TlsError | Outcome::UnsafeAddress => outcome,
        _ => Outcome::RobotsUnreachable,
    }
}

/// RFC 9309 2.3.1: a file that was had is parsed, 4xx (and a redirect without end) allows all,
/// anything else allows nothing.
fn rules_of(entry: &RobotsEntry, unreachable: Outcome) -> Rules {
    match entry.status {
        Some(200..=299) => Rules::Known(Rc::new(RobotsRules::parse(&entry.body, AGENT_TOKEN))),
        Some(300..=499) => Rules::Known(Rc::new(RobotsRules::parse(b"", AGENT_TOKEN))),
        _ => Rules::Unreachable(unreachable),
    }
}
