//! Crawl requests among the seeds. They are gathered into messages of bounded size for the dispatcher, and listed as
//! broken seeds if the dispatcher refuses them.

use webfill_api::Refusal;
use webfill_scheduler::local_crawl::LineRequest;

use crate::seeds::{SeedFault, SeedRequest};

/// The most bytes of requests in one message; only a single request may have more.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// The requests of a batch of seeds, each with the number of its line.
#[derive(Default)]
pub struct SeedRequests {
    messages: Vec<Vec<LineRequest>>,
    /// The number of bytes in the last message.
    last_bytes: usize,
}

impl SeedRequests {
    pub fn add(&mut self, line: u64, request: SeedRequest) {
        let bytes = request.bytes;
        let request = LineRequest {
            line,
            request: request.json,
        };
        match self.messages.last_mut() {
            Some(last) if self.last_bytes + bytes <= MAX_MESSAGE_BYTES => {
                last.push(request);
                self.last_bytes += bytes;
            }
            _ => {
                self.messages.push(vec![request]);
                self.last_bytes = bytes;
            }
        }
    }

    pub fn into_messages(self) -> Vec<Vec<LineRequest>> {
        self.messages
    }
}

/// The dispatcher's answer to a message of crawl requests.
#[derive(serde::Deserialize)]
pub struct FedRequests {
    /// The crawls of the accepted requests, by their keys.
    pub crawls: Vec<u32>,
    #[serde(default)]
    pub refused: Vec<RefusedLine>,
}

/// A request that the dispatcher has refused.
#[derive(serde::Deserialize)]
pub struct RefusedLine {
    line: u64,
    path: String,
    message: String,
}

impl RefusedLine {
    /// Converts the refusal into a broken seed for the list. `sent` has all requests of the message.
    pub fn to_seed_fault(&self, sent: &[LineRequest]) -> SeedFault {
        let request = sent.iter().find(|one| one.line == self.line);
        let text = request.map_or_else(String::new, |one| one.request.to_string());
        let refusal = Refusal::new(&self.path, &self.message);
        SeedFault::from_refusal(self.line, refusal, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(bytes: usize) -> SeedRequest {
        SeedRequest {
            json: json!({}),
            bytes,
            needs_browser: false,
        }
    }

    #[test]
    fn a_message_has_bounded_bytes_and_keeps_the_order_of_lines() {
        let mut requests = SeedRequests::default();
        for (line, bytes) in [
            (1, 600_000),
            (2, 400_000),
            (3, 400_000),
            (4, 3 << 20),
            (5, 1),
        ] {
            requests.add(line, request(bytes));
        }
        let messages = requests.into_messages();
        let lines: Vec<Vec<u64>> = messages
            .iter()
            .map(|message| message.iter().map(|one| one.line).collect())
            .collect();
        assert_eq!(lines, [vec![1, 2], vec![3], vec![4], vec![5]]);
    }

    #[test]
    fn a_refused_line_is_listed_with_its_text() {
        let sent = [LineRequest {
            line: 7,
            request: json!({"url": "http://a.example/"}),
        }];
        let refused: Value = json!({"crawls": [], "refused": [
            {"line": 7, "path": "$.crawlid", "message": "the crawl was stopped"},
        ]});
        let fed: FedRequests = serde_json::from_value(refused).unwrap();
        let fault = fed.refused[0].to_seed_fault(&sent);
        assert_eq!((fault.line, fault.path.as_deref()), (7, Some("$.crawlid")));
        assert_eq!(fault.reason, "the crawl was stopped");
        assert!(fault.text.contains("http://a.example/"), "{}", fault.text);
    }
}
