//! Crawl requests that are taken in together, gathered by their crawls.
//!
//! A list is judged while it is read: at no time is it in memory as anything but its text and what
//! is kept of the requests so far.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;

use super::Refusal;
use super::crawl_request::{CrawlRequest, Judge, SpecChanges};

/// More requests than this are not taken in one call.
pub const MOST_REQUESTS: usize = 100_000;

/// Requests in order, by crawl.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) crawls: Vec<Order>,
    /// Where a crawl stands in `crawls`, by application and id.
    places: HashMap<(String, String), usize>,
    requests: usize,
    /// The attributes of the request that came last.
    last_attrs: Option<Arc<str>>,
    /// It came as a list.
    is_list: bool,
}

/// What a batch asks of one crawl.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) app_id: String,
    pub(crate) crawl_id: String,
    /// What all its requests say about it, later ones over earlier ones.
    pub(crate) changes: SpecChanges,
    pub(crate) seeds: Vec<Seed>,
}

#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) url: String,
    pub(crate) priority: u8,
    /// JSON; neighbours mostly share it.
    pub(crate) attrs: Option<Arc<str>>,
    /// The place of its request: in a list from 0 on, in a file its line.
    pub(crate) place: u64,
}

impl Batch {
    /// How many requests it holds.
    pub fn len(&self) -> usize {
        self.requests
    }

    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Where the request of this place stands.
    pub(crate) fn path(&self, place: u64) -> String {
        match self.is_list {
            true => format!("$[{place}]"),
            false => "$".into(),
        }
    }

    pub(crate) fn add(&mut self, request: CrawlRequest, place: u64) {
        let attrs = self.shared(request.attrs);
        let seed = Seed {
            url: request.url,
            priority: request.priority,
            attrs,
            place,
        };
        self.requests += 1;
        // Neighbours mostly belong together.
        if let Some(last) = self.crawls.last_mut()
            && last.app_id == request.app_id
            && last.crawl_id == request.crawl_id
        {
            return last.add(seed, request.changes);
        }
        let key = (request.app_id, request.crawl_id);
        if let Some(place) = self.places.get(&key) {
            return self.crawls[*place].add(seed, request.changes);
        }
        self.crawls.push(Order {
            app_id: key.0.clone(),
            crawl_id: key.1.clone(),
            changes: request.changes,
            seeds: vec![seed],
        });
        self.places.insert(key, self.crawls.len() - 1);
    }
}

impl Batch {
    fn shared(&mut self, attrs: Option<String>) -> Option<Arc<str>> {
        if self.last_attrs.as_deref() != attrs.as_deref() {
            self.last_attrs = attrs.map(Arc::from);
        }
        self.last_attrs.clone()
    }
}

impl Order {
    fn add(&mut self, seed: Seed, changes: SpecChanges) {
        self.seeds.push(seed);
        if changes != self.changes {
            self.changes.then(changes);
        }
    }
}

/// Reads a list of requests.
pub(crate) fn read_list(text: &[u8], now_ms: i64) -> Result<Batch, Refusal> {
    let mut list = List {
        judge: Judge::new(now_ms),
        batch: Batch {
            is_list: true,
            ..Batch::default()
        },
        refusal: None,
    };
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = reader
        .deserialize_seq(&mut list)
        .and_then(|()| reader.end());
    match (list.refusal, read) {
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(Refusal::new("$", error)),
        (None, Ok(())) => Ok(list.batch),
    }
}

struct List {
    judge: Judge,
    batch: Batch,
    /// The first request that is not in order.
    refusal: Option<Refusal>,
}

impl<'de> Visitor<'de> for &mut List {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of crawl requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element::<Value>()? {
            let index = self.batch.len();
            let judged = match index {
                MOST_REQUESTS => Err(Refusal::new(
                    "$",
                    format!("more than {MOST_REQUESTS} requests at once: send them in parts"),
                )),
                _ => self.judge.judge(value, &format!("$[{index}]")),
            };
            match judged {
                Ok(request) => self.batch.add(request, index as u64),
                Err(refusal) => {
                    self.refusal = Some(refusal);
                    return Err(A::Error::custom("refused"));
                }
            }
        }
        Ok(())
    }
}
