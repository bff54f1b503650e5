//! Answers that wait until the fleet has given back what they are about, so that no fetch of it
//! starts after the answer. A supervisor that stands still or is away is waited for until its lease
//! is over, see [`crate::core::recalls`].

use webfill_wire::{CrawlKey, RecallScope};

use crate::control::{Refusal, SiteAction, Subject};
use crate::core::Core;
use crate::core::recalls::RecallNumber;
use crate::frontier::FrontierError;
use crate::outgoing::{Client, OutgoingMessage};

/// Answers that wait at once; what would need a further one is refused.
const MOST_WAITING: usize = 10_000;

/// How far the supervisors are with giving back.
#[derive(Debug, Clone, Copy)]
pub(super) enum RecallProgress {
    Pending(RecallNumber),
    Complete,
}

impl RecallProgress {
    pub(super) fn is_complete(self) -> bool {
        matches!(self, RecallProgress::Complete)
    }
}

/// An answer that waits.
#[derive(Debug)]
pub(in crate::core) struct WaitingAnswer {
    client: Client,
    recalled: RecallProgress,
    kind: AnswerKind,
}

#[derive(Debug)]
pub(super) enum AnswerKind {
    Pause(CrawlKey, Subject),
    Site(SiteAction),
}

impl Core {
    /// Calls back what supervisors hold and have not started.
    pub(super) fn begin_recall(&mut self, scope: RecallScope) -> RecallProgress {
        RecallProgress::Pending(self.recall(scope))
    }

    /// Whether it has come back by now, or cannot be started any more.
    pub(super) fn poll_recall(&mut self, recalled: &mut RecallProgress) -> bool {
        if let RecallProgress::Pending(recall) = *recalled
            && self.is_recalled(recall)
        {
            *recalled = RecallProgress::Complete;
        }
        recalled.is_complete()
    }

    /// Why no further answer can wait; asked before anything is done.
    pub(super) fn refusal_if_too_many_wait(&self) -> Option<Refusal> {
        let why = "too many answers wait for supervisors that stand still: ask again later";
        (self.waiting_answers.len() >= MOST_WAITING).then(|| Refusal::new("$", why))
    }

    pub(super) fn answer_later(&mut self, client: &Client, scope: RecallScope, kind: AnswerKind) {
        let recalled = self.begin_recall(scope);
        self.waiting_answers.push(WaitingAnswer {
            client: client.clone(),
            recalled,
            kind,
        });
    }

    /// Sends the answers that have waited long enough.
    pub(in crate::core) fn answer_waiting(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        if self.waiting_answers.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.waiting_answers);
        let ready = waiting.extract_if(.., |one| self.poll_recall(&mut one.recalled));
        let ready: Vec<WaitingAnswer> = ready.collect();
        self.waiting_answers = waiting;
        for one in ready {
            let (app_id, answer) = match one.kind {
                AnswerKind::Pause(crawl, subject) => {
                    let answer = self.pause_answer("pause", crawl, &subject, now_ms)?;
                    (Some(subject.app_id), answer)
                }
                AnswerKind::Site(action) => (None, self.site_answer(&action)?),
            };
            if let Some(app_id) = app_id {
                self.notify(&app_id, &answer);
            }
            self.outgoing
                .push(OutgoingMessage::ToClient(one.client, answer));
        }
        Ok(())
    }
}
