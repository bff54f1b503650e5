//! Answers that wait for the end of a recall, so that no fetch in its scope starts after the
//! answer. A supervisor that does not confirm is waited for until its lease is over, see
//! [`crate::core::recalls`].

use webfill_api::{Refusal, SiteAction, Subject};
use webfill_wire::{CrawlKey, RecallScope};

use super::actions::no_such_crawl;
use crate::core::Core;
use crate::core::recalls::RecallNumber;
use crate::effects::{Client, OutgoingMessage};
use crate::frontier::{FrontierError, if_pruned};

/// At most this many answers wait; a further request that needs one is refused.
const MOST_WAITING: usize = 10_000;

/// How far a recall has come.
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

/// An answer that waits for the end of a recall.
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
    /// Recalls the tasks in a scope that have not started.
    pub(super) fn begin_recall(&mut self, scope: RecallScope) -> RecallProgress {
        RecallProgress::Pending(self.recall(scope))
    }

    /// Updates the progress of a recall; returns whether it has ended.
    pub(super) fn poll_recall(&mut self, recalled: &mut RecallProgress) -> bool {
        if let RecallProgress::Pending(recall) = *recalled
            && self.is_recalled(recall)
        {
            *recalled = RecallProgress::Complete;
        }
        recalled.is_complete()
    }

    /// The refusal of a request that would need a waiting answer, if there are too many. Checked
    /// before the request changes anything.
    pub(super) fn refusal_if_too_many_wait(&self) -> Option<Refusal> {
        let why = "too many answers wait for supervisors that stand still: ask again later";
        (self.waiting_answers.len() >= MOST_WAITING).then(|| Refusal::for_now("$", why))
    }

    pub(super) fn answer_later(&mut self, client: &Client, scope: RecallScope, kind: AnswerKind) {
        let recalled = self.begin_recall(scope);
        self.answer_when(client, recalled, kind);
    }

    /// The recall that the last pause of a crawl waits for.
    pub(super) fn recall_of_pause(&self, crawl: CrawlKey) -> Option<RecallProgress> {
        let mut latest = self.waiting_answers.iter().rev();
        let of_pause = |one: &WaitingAnswer| match &one.kind {
            AnswerKind::Pause(paused, _) if *paused == crawl => Some(one.recalled),
            AnswerKind::Pause(..) | AnswerKind::Site(_) => None,
        };
        latest.find_map(of_pause)
    }

    pub(super) fn answer_when(
        &mut self,
        client: &Client,
        recalled: RecallProgress,
        kind: AnswerKind,
    ) {
        self.waiting_answers.push(WaitingAnswer {
            client: client.clone(),
            recalled,
            kind,
        });
    }

    /// The crawls that are being paused.
    pub(super) fn crawls_awaited(&self) -> impl Iterator<Item = CrawlKey> + '_ {
        let waiting = self.waiting_answers.iter();
        waiting.filter_map(|one| match &one.kind {
            AnswerKind::Pause(crawl, _) => Some(*crawl),
            AnswerKind::Site(_) => None,
        })
    }

    /// Sends the answers whose recalls have ended.
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
                    let answer = self.pause_answer("pause", crawl, &subject, now_ms);
                    let answer = if_pruned(answer, no_such_crawl().answer())?;
                    (Some(subject.app_id), answer)
                }
                AnswerKind::Site(action) => (None, self.site_answer(&action, now_ms)?),
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
