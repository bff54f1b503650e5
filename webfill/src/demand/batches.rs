//! Gathers the lines of a feed into lists. The dispatcher accepts or refuses each list as a whole.
//!
//! A list with a refused request is sent again in two parts: the requests before the refused one, then those after it.
//! After a refusal lists are short, and they double in size with each accepted one. So even if every line of a file is
//! refused, no more than one message per line is sent.

use std::collections::VecDeque;

use crate::seeds::lines::{LineText, Lines};

/// The most requests of one list.
const MAX_REQUESTS: usize = 1_000;
/// The most bytes of one list; only a single request may have more.
const MAX_BYTES: usize = 1 << 20;
/// The fewest requests of a list after a refusal.
const MIN_REQUESTS: usize = 1;

/// A line that cannot be used, with its number from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLine {
    pub(super) number: u64,
    pub(super) reason: String,
}

/// A crawl request: the text of its line, and the line's number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    line: u64,
    text: String,
}

/// A list of requests that are sent to the dispatcher together.
#[derive(Debug)]
pub(super) struct Batch {
    requests: Vec<Request>,
}

/// Reads lines ahead, at most as many as fit into one list.
pub(super) struct Batches {
    lines: Lines,
    /// Requests that were read and are sent next.
    ready: VecDeque<Request>,
    /// How many requests the next list may have.
    size: usize,
}

impl Batches {
    pub(super) fn new(lines: Lines) -> Batches {
        Batches {
            lines,
            ready: VecDeque::new(),
            size: MAX_REQUESTS,
        }
    }

    /// The next list; `None` at the end of the input. Lines without a JSON object are passed to `report`.
    pub(super) fn next_batch(&mut self, mut report: impl FnMut(BadLine)) -> Option<Batch> {
        let mut requests = Vec::new();
        let mut bytes = 0;
        while requests.len() < self.size {
            let Some(request) = self
                .ready
                .pop_front()
                .or_else(|| self.read_request(&mut report))
            else {
                break;
            };
            if !requests.is_empty() && bytes + request.text.len() > MAX_BYTES {
                self.ready.push_front(request);
                break;
            }
            bytes += request.text.len();
            requests.push(request);
        }
        (!requests.is_empty()).then_some(Batch { requests })
    }

    pub(super) fn note_accepted(&mut self) {
        self.size = (self.size * 2).min(MAX_REQUESTS);
    }

    /// Takes back a list after the dispatcher has refused one of its requests, at `index`. None of the list was
    /// accepted, so the other requests are sent again. Returns the line of the refused request. If the dispatcher did
    /// not name it, returns `None`, and sends shorter lists to find it.
    pub(super) fn note_refused(&mut self, mut batch: Batch, index: Option<usize>) -> Option<u64> {
        let count = batch.requests.len();
        let blamed = match index {
            Some(index) if index < count => Some(index),
            _ if count == 1 => Some(0),
            _ => None,
        };
        // The dispatcher refuses the first invalid request, so those before it are valid and form the next list.
        self.size = blamed.unwrap_or(count / 2).max(MIN_REQUESTS);
        let line = blamed.map(|index| batch.requests.remove(index).line);
        for request in batch.requests.into_iter().rev() {
            self.ready.push_front(request);
        }
        line
    }

    /// The next line that holds a JSON object.
    fn read_request(&mut self, report: &mut impl FnMut(BadLine)) -> Option<Request> {
        loop {
            let line = self.lines.next()?;
            let read = match line.text {
                LineText::Whole(text) if is_empty(&text) => continue,
                LineText::Whole(text) => request_from_line(text),
                LineText::Broken { reason, .. } => Err(reason),
            };
            let number = line.number;
            match read {
                Ok(text) => return Some(Request { line: number, text }),
                Err(reason) => report(BadLine { number, reason }),
            }
        }
    }
}

impl Batch {
    /// The line number of the first request.
    pub(super) fn first_line(&self) -> u64 {
        self.requests[0].line
    }

    pub(super) fn as_json(&self) -> String {
        let texts: Vec<&str> = self.requests.iter().map(|one| one.text.as_str()).collect();
        format!("[{}]", texts.join(","))
    }
}

fn is_empty(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.is_empty() || text.starts_with(b"#")
}

/// Checks that a line is one JSON object, so that it cannot break the JSON list that contains it. The dispatcher checks
/// the rest.
fn request_from_line(text: Vec<u8>) -> Result<String, String> {
    webfill_api::parse_line(&text).map_err(|refusal| refusal.message)?;
    // The parser has already checked that the text is UTF-8.
    String::from_utf8(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text to a test dispatcher that refuses requests containing `bad`. Returns the accepted lines, the
    /// numbers of the refused lines, and the number of lists sent.
    fn feed_and_count(text: String, has_index: bool) -> (Vec<String>, Vec<u64>, usize) {
        let lines = Lines::from_reader(Box::new(std::io::Cursor::new(text.into_bytes()))).unwrap();
        let mut batches = Batches::new(lines);
        let (mut accepted, mut refused, mut sent) = (Vec::new(), Vec::new(), 0);
        while let Some(batch) = batches.next_batch(|bad| refused.push(bad.number)) {
            sent += 1;
            let bad = batch
                .requests
                .iter()
                .position(|one| one.text.contains("bad"));
            match bad {
                None => {
                    accepted.extend(batch.requests.into_iter().map(|one| one.text));
                    batches.note_accepted();
                }
                bad => refused.extend(batches.note_refused(batch, bad.filter(|_| has_index))),
            }
        }
        refused.sort_unstable();
        (accepted, refused, sent)
    }

    #[test]
    fn good_lines_are_fed_in_order_and_bad_lines_are_reported_by_number() {
        let text = "{\"a\": 1}\n\n# a comment\n{\"bad\": 2}\nnonsense\n[3]\n{\"a\": 4}\n7\n";
        for has_index in [true, false] {
            let (accepted, refused, _) = feed_and_count(text.into(), has_index);
            assert_eq!(accepted, ["{\"a\": 1}", "{\"a\": 4}"]);
            assert_eq!(refused, [4, 5, 6, 8]);
        }
    }

    #[test]
    fn a_file_of_refused_lines_takes_at_most_one_message_per_line() {
        let (accepted, refused, sent) = feed_and_count("{\"bad\": 1}\n".repeat(5_000), true);
        assert_eq!((accepted.len(), refused.len()), (0, 5_000));
        assert!(sent <= 5_001, "{sent} lists were sent");
    }

    #[test]
    fn good_lines_are_sent_by_the_thousand() {
        let mut text = "{\"a\": 1}\n".repeat(10_000);
        assert_eq!(feed_and_count(text.clone(), true).2, 10);
        text.insert_str(50 * 9, "{\"bad\": 1}\n");
        let (accepted, refused, sent) = feed_and_count(text, true);
        assert_eq!((accepted.len(), refused), (10_000, vec![51]));
        assert!(sent < 25, "{sent} lists were sent");
    }

    #[test]
    fn a_list_of_requests_does_not_exceed_its_maximum_size() {
        let line = format!("{{\"a\": \"{}\"}}\n", "x".repeat(300_000));
        let (accepted, _, sent) = feed_and_count(line.repeat(7), true);
        assert_eq!((accepted.len(), sent), (7, 3));
    }
}
