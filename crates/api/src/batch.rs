//! Crawl requests that are fed together, grouped by their crawls: a batch changes the settings of a crawl once, and
//! queues its URLs in one go.
//!
//! A list is parsed request by request. So memory holds its text and the batch so far, but never all requests as JSON
//! values: a list may have [`MAX_REQUESTS`] of them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;
use webfill_values::exact_json_text;

use crate::crawl_request::{CrawlRequest, RequestParser};
use crate::json;
use crate::refusal::Refusal;
use crate::spec_changes::SpecChanges;

/// The maximum number of requests in a list. Longer lists are refused.
pub const MAX_REQUESTS: usize = 100_000;

/// Lists whose patterns take more memory than this are refused. The patterns are kept until the list is accepted.
const MOST_COMPILED_BYTES: usize = 32 << 20;

const TOO_MANY_PATTERNS: &str =
    "its patterns take more than 32 MiB when they are compiled: send it in parts";

/// The approximate memory of a request in a batch, besides its text, and of a crawl, in bytes.
const BYTES_OF_A_REQUEST: usize = 128;
const BYTES_OF_A_CRAWL: usize = 1_024;

/// Crawl requests in the order of their arrival, grouped by crawl.
#[derive(Debug, Default)]
pub struct Batch {
    pub crawls: Vec<CrawlOrder>,
    /// The index of a crawl in `crawls`, by application and crawl id.
    places: HashMap<(String, String), usize>,
    requests: usize,
    /// The attributes of the last request, shared with the next one if they are equal.
    last_attrs: Option<Arc<str>>,
    /// Whether the client sent a list, not a single request or lines.
    is_list: bool,
    /// The memory of the requests' patterns that were not already in use, in bytes.
    compiled_bytes: usize,
}

/// All requests of a batch for one crawl.
#[derive(Debug)]
pub struct CrawlOrder {
    pub app_id: String,
    pub crawl_id: String,
    /// The crawl's settings from all of its requests, merged: a later request wins over an earlier one.
    pub changes: SpecChanges,
    pub seeds: Vec<Seed>,
}

/// The URL of one request.
#[derive(Debug)]
pub struct Seed {
    pub url: String,
    pub priority: u8,
    /// The attributes as JSON text. Consecutive requests with equal attributes share one allocation.
    pub attrs: Option<Arc<str>>,
    /// Where the request came from: its index in a list, or its line number from 1.
    pub place: u64,
}

impl Batch {
    /// The number of requests in the batch.
    pub fn len(&self) -> usize {
        self.requests
    }

    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// The approximate memory of the batch in bytes, without the text of its requests.
    pub fn memory_bytes(&self) -> usize {
        self.requests * BYTES_OF_A_REQUEST
            + self.crawls.len() * BYTES_OF_A_CRAWL
            + self.compiled_bytes
    }

    /// The JSON path of the request at an index of the client's message.
    pub fn request_path(&self, place: u64) -> String {
        match self.is_list {
            true => format!("$[{place}]"),
            false => "$".into(),
        }
    }

    /// Adds a request. `place` is its [`Seed::place`].
    pub fn add(&mut self, request: CrawlRequest, place: u64) {
        let attrs = self.intern_attrs(request.attrs);
        let seed = Seed {
            url: request.url,
            priority: request.priority,
            attrs,
            place,
        };
        self.requests += 1;
        // Most requests belong to the same crawl as the previous one, so no ids are copied for them.
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
        self.crawls.push(CrawlOrder {
            app_id: key.0.clone(),
            crawl_id: key.1.clone(),
            changes: request.changes,
            seeds: vec![seed],
        });
        self.places.insert(key, self.crawls.len() - 1);
    }

    fn intern_attrs(&mut self, attrs: Option<String>) -> Option<Arc<str>> {
        if self.last_attrs.as_deref() != attrs.as_deref() {
            self.last_attrs = attrs.map(Arc::from);
        }
        self.last_attrs.clone()
    }
}

impl CrawlOrder {
    fn add(&mut self, seed: Seed, changes: SpecChanges) {
        self.seeds.push(seed);
        if changes != self.changes {
            self.changes.merge_later(changes);
        }
    }
}

/// Parses a list of requests; the first fault refuses all of them.
pub(crate) fn parse_list(text: &[u8], now_ms: i64) -> Result<Batch, Refusal> {
    let text = json::decode_utf8(text)?;
    let mut list = List {
        parser: RequestParser::new(now_ms),
        batch: Batch {
            is_list: true,
            ..Batch::default()
        },
        refusal: None,
    };
    let exact = exact_json_text(text);
    let mut reader = serde_json::Deserializer::from_str(&exact);
    let read = reader
        .deserialize_seq(&mut list)
        .and_then(|()| reader.end());
    match (list.refusal, read) {
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(json::invalid_json(text, &error)),
        (None, Ok(())) => {
            list.batch.compiled_bytes = list.parser.pattern_memory_bytes();
            Ok(list.batch)
        }
    }
}

/// A list being parsed.
struct List {
    parser: RequestParser,
    batch: Batch,
    /// The refusal that ended the parsing. It is kept here because serde's own error cannot carry it.
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
            let parsed = match index {
                MAX_REQUESTS => Err(Refusal::new(
                    "$",
                    format!("more than {MAX_REQUESTS} requests at once: send them in parts"),
                )),
                _ => self.parser.parse(value, &format!("$[{index}]")),
            };
            let parsed = parsed.and_then(|request| match self.parser.pattern_memory_bytes() {
                0..=MOST_COMPILED_BYTES => Ok(request),
                _ => Err(Refusal::new("$", TOO_MANY_PATTERNS)),
            });
            match parsed {
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
