//! Crawl requests by HTTP: one request, a list that is accepted or refused as a whole, or a stream of lines, each
//! accepted or refused on its own. At most [`BATCH`] lines are in memory at a time, however long the stream is.

use hyper::Request;
use hyper::body::Incoming;
use serde_json::{Value, json};
use webfill_api::{Batch, Question, Refusal, RequestParser};
use webfill_scheduler::control::{ControlRequest, RefusedLines};
use webfill_scheduler::effects::RequestPermit;
use webfill_scheduler::rights;
use webfill_service::http::body::ArrivingBody;

use super::answers::{Answer, json_answer, refusal_answer};
use super::body::{read_whole, refusal};
use super::guard::{MediaType, media_type};
use super::{HttpRequest, refusal_status};

/// How many lines of a stream are handed to the dispatcher at a time.
const BATCH: usize = 1_000;

/// A batch is handed over earlier once its lines have this many bytes.
pub(super) const MOST_BATCH_BYTES: usize = 2 << 20;

/// A batch is also handed over earlier once the compiled patterns of its requests take more memory than this.
const MOST_COMPILED_BYTES: usize = 8 << 20;

/// The longest line, in bytes.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The maximum number of refused lines that the answer lists; further ones are only counted.
const MAX_REPORTED: usize = 100;

impl HttpRequest {
    pub(super) async fn feed(&self, request: Request<Incoming>) -> Answer {
        if self.rights.is_read_only() {
            return self.answer_request(ControlRequest::UnreadFeed).await;
        }
        if media_type(request.headers()) == Some(MediaType::JsonLines) {
            return FeedStream::new(self)
                .read_and_answer(request.into_body())
                .await;
        }
        let body = match read_whole(request.into_body(), &self.service.large_bodies).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let (bytes, now_ms) = (body.len(), self.service.clock.wall_ms());
        // A separate thread parses the list, because that may take a while, and this thread serves all connections.
        let parsed = move || webfill_api::parse_question(&body, now_ms);
        let Ok(question) = tokio::task::spawn_blocking(parsed).await else {
            return refusal_answer(500, "the request could not be read");
        };
        match question {
            Ok(Question::Feed(batch)) => {
                if let Some(permit) = &self.permit {
                    permit.note_read(bytes + batch.memory_bytes());
                }
                self.answer_request(ControlRequest::from_batch(batch)).await
            }
            Ok(Question::Act(_)) => {
                let refusal = Refusal::new("$.action", "actions have addresses of their own");
                json_answer(400, refusal.to_answer())
            }
            Err(refusal) => json_answer(400, refusal.to_answer()),
        }
    }
}

/// A stream of lines that is being read.
struct FeedStream<'a> {
    visit: &'a HttpRequest,
    parser: RequestParser,
    batch: Batch,
    /// The size of the lines since the last batch, in bytes.
    bytes: usize,
    /// The refused lines since the last batch, for the audit log.
    unaudited: RefusedLines,
    /// The number of lines read so far.
    count: u64,
    accepted: u64,
    refused: u64,
    /// The refused lines that the answer lists.
    reported: Vec<Value>,
}

impl FeedStream<'_> {
    fn new(visit: &HttpRequest) -> FeedStream<'_> {
        FeedStream {
            visit,
            parser: RequestParser::new(visit.service.clock.wall_ms()),
            batch: Batch::default(),
            bytes: 0,
            unaudited: RefusedLines::default(),
            count: 0,
            accepted: 0,
            refused: 0,
            reported: Vec::new(),
        }
    }

    /// Reads the stream to its end, and answers the client. If the stream has a fault, lines that were handed over
    /// before it stay accepted.
    async fn read_and_answer(mut self, body: Incoming) -> Answer {
        match self.read_all(body).await {
            Ok(()) => self.into_answer(),
            Err(refusal) => {
                self.batch = Batch::default();
                // The last batch is sent even if the stream fails, because its refused lines belong in the audit log.
                let _ = self.send_batch().await;
                refusal
            }
        }
    }

    async fn read_all(&mut self, body: Incoming) -> Result<(), Answer> {
        let mut body = ArrivingBody::new(body);
        let mut rest: Vec<u8> = Vec::new();
        while let Some(piece) = body.next_piece().await.map_err(refusal)? {
            rest.extend_from_slice(&piece);
            let mut begin = 0;
            while let Some(length) = rest[begin..].iter().position(|byte| *byte == b'\n') {
                self.parse_line(&rest[begin..begin + length]);
                begin += length + 1;
                let has_many_patterns = self.parser.pattern_memory_bytes() > MOST_COMPILED_BYTES;
                let is_long = self.bytes >= MOST_BATCH_BYTES;
                if self.batch.len() + self.unaudited.count() >= BATCH
                    || has_many_patterns
                    || is_long
                {
                    self.send_batch().await?;
                }
            }
            rest.drain(..begin);
            if rest.len() > MAX_LINE_BYTES {
                let why = format!(
                    "line {} has more than {MAX_LINE_BYTES} bytes",
                    self.count + 1
                );
                return Err(refusal_answer(413, &why));
            }
        }
        self.parse_line(&rest);
        self.send_batch().await
    }

    fn parse_line(&mut self, line: &[u8]) {
        self.count += 1;
        self.bytes += line.len();
        if line.trim_ascii().is_empty() {
            return;
        }
        let parsed = webfill_api::parse_line(line).and_then(|value| self.parser.parse(value, "$"));
        let refusal = match parsed {
            Ok(request) if self.visit.rights.permits_app(&request.app_id) => {
                return self.batch.add(request, self.count);
            }
            Ok(foreign) => {
                self.unaudited.foreign.add(foreign, self.count);
                rights::foreign_application_refusal("$.appid")
            }
            Err(refusal) => {
                self.unaudited.faulty += 1;
                refusal
            }
        };
        self.add_refused(json!({
            "line": self.count, "path": refusal.path, "message": refusal.message,
        }));
    }

    fn add_refused(&mut self, line: Value) {
        self.refused += 1;
        if self.reported.len() < MAX_REPORTED {
            self.reported.push(line);
        }
    }

    /// Hands the collected lines to the dispatcher, and waits until they are stored durably. The wait slows down
    /// clients that send faster.
    async fn send_batch(&mut self) -> Result<(), Answer> {
        if self.batch.is_empty() && self.unaudited.count() == 0 {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        self.parser = RequestParser::new(self.visit.service.clock.wall_ms());
        let asked = ControlRequest::Feed {
            batch,
            whole: false,
            refused: std::mem::take(&mut self.unaudited),
        };
        let Some(mut answer) = self.visit.submit(asked).await else {
            return Err(refusal_answer(503, "the dispatcher does not answer"));
        };
        if answer.get("error").is_some() {
            // The batch was refused as a whole; the lines of earlier batches stay accepted.
            answer["accepted"] = self.accepted.into();
            return Err(json_answer(refusal_status(&answer), answer));
        }
        self.accepted += answer["accepted"].as_u64().unwrap_or(0);
        if let Value::Array(refused) = answer["refused"].take() {
            refused.into_iter().for_each(|one| self.add_refused(one));
        }
        Ok(())
    }

    fn into_answer(self) -> Answer {
        let mut body = json!({"accepted": self.accepted, "refused": self.refused});
        if self.refused > 0 {
            body["errors"] = self.reported.into();
        }
        json_answer(200, body)
    }
}
