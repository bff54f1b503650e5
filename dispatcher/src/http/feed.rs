//! Crawl requests by HTTP: one, a list that is taken in as a whole, or lines without end, each by
//! itself, of which a thousand are in memory at once.

use hyper::Request;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::Service;
use super::answers::{Answer, answer, refused};
use super::body::{next_piece, read_whole};
use super::guard::{MediaType, media_type};
use crate::control::{self, Asked, Batch, Judge, Refusal};

/// Lines that are taken in together.
const BATCH: usize = 1_000;

/// The longest line, in bytes.
const MOST_LINE_BYTES: usize = 1 << 20;

/// Refused lines that are told one by one; the others are counted.
const MOST_TOLD: usize = 100;

impl Service {
    pub(super) async fn feed(&self, request: Request<Incoming>) -> Answer {
        if media_type(request.headers()) == Some(MediaType::JsonLines) {
            let lines = Lines::new(self);
            return match lines.take_all(request.into_body()).await {
                Ok(told) | Err(told) => told,
            };
        }
        let body = match read_whole(request.into_body(), &self.large_bodies).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let asked = control::read(&body, self.clock.now_ms());
        drop(body);
        match asked {
            Ok(asked @ Asked::Feed { .. }) => self.ask(asked).await,
            Ok(_) => {
                let refusal = Refusal::new("$.action", "actions have places of their own");
                answer(400, refusal.answer())
            }
            Err(refusal) => answer(400, refusal.answer()),
        }
    }
}

/// Lines on their way in.
struct Lines<'a> {
    service: &'a Service,
    judge: Judge,
    batch: Batch,
    /// Lines read.
    count: u64,
    accepted: u64,
    refused: u64,
    told: Vec<Value>,
}

impl Lines<'_> {
    fn new(service: &Service) -> Lines<'_> {
        Lines {
            service,
            judge: Judge::new(service.clock.now_ms()),
            batch: Batch::default(),
            count: 0,
            accepted: 0,
            refused: 0,
            told: Vec::new(),
        }
    }

    /// Ends with an answer either way; what was taken in before a fault stays.
    async fn take_all(mut self, mut body: Incoming) -> Result<Answer, Answer> {
        let mut rest: Vec<u8> = Vec::new();
        while let Some(piece) = next_piece(&mut body).await? {
            rest.extend_from_slice(&piece);
            let mut begin = 0;
            while let Some(length) = rest[begin..].iter().position(|byte| *byte == b'\n') {
                self.take_line(&rest[begin..begin + length]);
                begin += length + 1;
                if self.batch.len() >= BATCH {
                    self.hand_over().await?;
                }
            }
            rest.drain(..begin);
            if rest.len() > MOST_LINE_BYTES {
                let why = format!(
                    "line {} has more than {MOST_LINE_BYTES} bytes",
                    self.count + 1
                );
                return Err(refused(413, &why));
            }
        }
        self.take_line(&rest);
        self.hand_over().await?;
        Ok(self.answer())
    }

    fn take_line(&mut self, line: &[u8]) {
        self.count += 1;
        if line.trim_ascii().is_empty() {
            return;
        }
        let judged = serde_json::from_slice(line)
            .map_err(|error| Refusal::new("$", error))
            .and_then(|value| self.judge.judge(value, "$"));
        match judged {
            Ok(request) => self.batch.add(request, self.count),
            Err(refusal) => {
                self.note_refused(json!({
                    "line": self.count, "path": refusal.path, "message": refusal.message,
                }));
            }
        }
    }

    fn note_refused(&mut self, told: Value) {
        self.refused += 1;
        if self.told.len() < MOST_TOLD {
            self.told.push(told);
        }
    }

    /// Waits until the lines so far are taken in: who sends faster is slowed down.
    async fn hand_over(&mut self) -> Result<(), Answer> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let asked = Asked::Feed {
            batch,
            whole: false,
        };
        let Some(mut told) = self.service.pending_requests.ask(asked).await else {
            return Err(refused(503, "the dispatcher does not answer"));
        };
        self.accepted += told["accepted"].as_u64().unwrap_or(0);
        if let Value::Array(refused) = told["refused"].take() {
            refused.into_iter().for_each(|one| self.note_refused(one));
        }
        Ok(())
    }

    fn answer(self) -> Answer {
        let mut told = json!({"accepted": self.accepted, "refused": self.refused});
        if self.refused > 0 {
            told["errors"] = self.told.into();
        }
        answer(200, told)
    }
}
