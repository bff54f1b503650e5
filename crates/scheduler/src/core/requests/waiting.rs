//! Answers that wait for the end of a recall, so that no fetch in its scope starts after the answer. The wait for a
//! supervisor that does not confirm ends with its lease, see [`crate::core::recalls`].

use webfill_api::{Refusal, SiteAction, Subject};
use webfill_wire::{CrawlKey, RecallScope};

use super::crawl_answers::unknown_crawl_refusal;
use super::{crawl_answers, sites};
use crate::core::context::Context;
use crate::core::recalls;
use crate::core::recalls::RecallNumber;
use crate::effects::{Client, OutgoingMessage};
use crate::frontier::{FrontierError, ignore_pruned};

/// The maximum number of waiting answers. A request that needs a further one is refused.
const MOST_WAITING: usize = 10_000;

/// How far a recall (revocation of leased tasks) has come.
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

/// The answers that wait until a recall (revocation of leased tasks) has ended.
#[derive(Debug, Default)]
pub(in crate::core) struct WaitingAnswers(Vec<WaitingAnswer>);

#[derive(Debug)]
struct WaitingAnswer {
    client: Client,
    recalled: RecallProgress,
    kind: AnswerKind,
}

#[derive(Debug)]
pub(super) enum AnswerKind {
    Pause(CrawlKey, Subject),
    Site(SiteAction),
}

impl WaitingAnswers {
    /// The refusal of a request whose answer would have to wait, if too many answers wait already. Check this before
    /// the request changes anything.
    pub(super) fn refusal_if_full(&self) -> Option<Refusal> {
        let why = "too many answers wait for silent supervisors: try again later";
        (self.0.len() >= MOST_WAITING).then(|| Refusal::temporary("$", why))
    }

    pub(super) fn answer_after_new_recall(
        &mut self,
        cx: &mut Context,
        client: &Client,
        scope: RecallScope,
        kind: AnswerKind,
    ) {
        let recalled = begin_recall(cx, scope);
        self.answer_after_recall(client, recalled, kind);
    }

    /// The recall of leased tasks that the answer to the last pause of a crawl waits for.
    pub(super) fn recall_of_pause(&self, crawl: CrawlKey) -> Option<RecallProgress> {
        let mut latest = self.0.iter().rev();
        let of_pause = |one: &WaitingAnswer| match &one.kind {
            AnswerKind::Pause(paused, _) if *paused == crawl => Some(one.recalled),
            AnswerKind::Pause(..) | AnswerKind::Site(_) => None,
        };
        latest.find_map(of_pause)
    }

    pub(super) fn answer_after_recall(
        &mut self,
        client: &Client,
        recalled: RecallProgress,
        kind: AnswerKind,
    ) {
        self.0.push(WaitingAnswer {
            client: client.clone(),
            recalled,
            kind,
        });
    }

    /// The crawls that are being paused.
    pub(super) fn crawls_being_paused(&self) -> impl Iterator<Item = CrawlKey> + '_ {
        let waiting = self.0.iter();
        waiting.filter_map(|one| match &one.kind {
            AnswerKind::Pause(crawl, _) => Some(*crawl),
            AnswerKind::Site(_) => None,
        })
    }

    /// Sends the answers that were waiting for a recall that has ended.
    pub(in crate::core) fn send_ready_answers(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.0);
        let ready = waiting.extract_if(.., |one| update_recall_progress(cx, &mut one.recalled));
        let ready: Vec<WaitingAnswer> = ready.collect();
        self.0 = waiting;
        for one in ready {
            let (app_id, answer) = match one.kind {
                AnswerKind::Pause(crawl, subject) => {
                    let answer = crawl_answers::pause_answer(cx, "pause", crawl, &subject, now_ms);
                    let crawl_id = subject.crawl_id.as_deref().unwrap_or_default();
                    let unknown = unknown_crawl_refusal(cx, &subject.app_id, crawl_id)?;
                    let answer = ignore_pruned(answer, unknown.to_answer())?;
                    (Some(subject.app_id), answer)
                }
                AnswerKind::Site(action) => (None, sites::site_rule_answer(cx, &action, now_ms)?),
            };
            if let Some(app_id) = app_id {
                cx.publish_notification(&app_id, &answer);
            }
            cx.outgoing
                .push(OutgoingMessage::ToClient(one.client, answer));
        }
        Ok(())
    }
}

/// Recalls the tasks in a scope that have not started.
pub(super) fn begin_recall(cx: &mut Context, scope: RecallScope) -> RecallProgress {
    RecallProgress::Pending(recalls::recall(cx, scope))
}

/// Updates the progress of a recall; returns whether it has ended.
pub(super) fn update_recall_progress(cx: &mut Context, recalled: &mut RecallProgress) -> bool {
    if let RecallProgress::Pending(recall) = *recalled
        && recalls::is_recall_complete(cx, recall)
    {
        *recalled = RecallProgress::Complete;
    }
    recalled.is_complete()
}
