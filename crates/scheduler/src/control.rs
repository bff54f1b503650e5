//! Reads messages of the control socket: those of the public language ([`webfill_api`]), and the requests of `webfill
//! crawl` to the dispatcher that it started ([`crate::local_crawl`]).

use webfill_api::{Action, Batch, Question, Refusal};

use crate::local_crawl::LocalRequest;

/// A parsed message of the control socket.
#[derive(Debug)]
pub enum ControlRequest {
    /// A request of `webfill crawl` to the dispatcher that it started.
    Local(LocalRequest),
    /// Crawl requests. `whole`: if one of them is refused, all are.
    Feed {
        batch: Batch,
        whole: bool,
        refused: RefusedLines,
    },
    Act(Action),
    /// Crawl requests of a client with read-only access, which are refused without being read.
    UnreadFeed,
}

/// Lines of a stream that were refused when they were read, for the audit log.
#[derive(Debug, Default)]
pub struct RefusedLines {
    /// The number of lines that are not valid requests.
    pub faulty: u64,
    /// Requests for applications that the sender's key does not allow.
    pub foreign: Batch,
}

impl RefusedLines {
    pub fn count(&self) -> usize {
        self.faulty as usize + self.foreign.len()
    }
}

impl ControlRequest {
    /// Whether all lines of this stream were refused when they were read, so that nothing is left to feed.
    pub fn has_refused_lines_only(&self) -> bool {
        match self {
            ControlRequest::Feed { batch, refused, .. } => batch.is_empty() && refused.count() > 0,
            ControlRequest::Local(_) | ControlRequest::Act(_) | ControlRequest::UnreadFeed => false,
        }
    }

    /// Makes a feed of a single request, or of a list that is accepted or refused as a whole.
    pub fn from_batch(batch: Batch) -> ControlRequest {
        ControlRequest::Feed {
            batch,
            whole: true,
            refused: RefusedLines::default(),
        }
    }
}

impl From<Question> for ControlRequest {
    fn from(question: Question) -> ControlRequest {
        match question {
            Question::Feed(batch) => ControlRequest::from_batch(batch),
            Question::Act(action) => ControlRequest::Act(action),
        }
    }
}

/// Reads a message of the control socket.
pub fn parse_request(text: &[u8], now_ms: i64) -> Result<ControlRequest, Refusal> {
    if webfill_api::is_list(text) {
        return webfill_api::parse_question(text, now_ms).map(ControlRequest::from);
    }
    let message = webfill_api::parse(text)?;
    if LocalRequest::is_local_action(&message) {
        return LocalRequest::parse(message).map(ControlRequest::Local);
    }
    webfill_api::parse_object(message, now_ms).map(ControlRequest::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    #[test]
    fn local_requests_and_public_ones_are_distinguished_by_the_action() {
        let asked = |text: &str| parse_request(text.as_bytes(), NOW_MS).unwrap();
        let local = asked(r#"{"action": "end", "crawls": [1]}"#);
        assert!(matches!(
            local,
            ControlRequest::Local(LocalRequest::End { .. })
        ));
        assert!(matches!(
            asked(r#"{"action": "status"}"#),
            ControlRequest::Act(Action::Status { .. })
        ));
        let request = r#"{"url": "http://a.org/", "appid": "app", "crawlid": "c1"}"#;
        for text in [request.to_owned(), format!("[{request}]")] {
            assert!(matches!(
                asked(&text),
                ControlRequest::Feed { whole: true, .. }
            ));
        }
    }

    #[test]
    fn an_unknown_member_of_a_local_request_is_refused_by_name() {
        let text = r#"{"action": "end", "crawls": [], "now": true}"#;
        let refusal = parse_request(text.as_bytes(), NOW_MS).unwrap_err();
        assert!(refusal.message.contains("now"), "{}", refusal.message);
    }
}
