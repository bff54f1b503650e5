//! Requests of clients: crawl requests, actions, and the requests of `webfill crawl`. Each request has one answer,
//! which leaves after the commit of the change that it reports. Pauses, stops and site rules are answered when a
//! recall has ended, retries when all tasks are queued, drains when the supervisors have left. Such waits do not
//! delay other requests.

mod awaited;
pub(super) mod closing;
mod crawl_answers;
mod crawl_report;
pub(super) mod drain;
mod feeding;
pub(super) mod feeds;
mod info;
mod limits;
pub(super) mod local_crawl;
mod pausing;
mod prune;
mod reply;
pub(super) mod reports;
pub(super) mod retry;
mod scripts;
mod sites;
mod status;
pub(super) mod waiting;
mod waits;
mod why;

use serde_json::json;
use webfill_api::{Action, Refusal};

use self::reply::Reply;
use crate::control::{ControlRequest, RefusedLines};
use crate::core::context::Context;
use crate::core::{Core, context};
use crate::effects::{ActionEnd, AuditedAction};
use crate::effects::{Client, OutgoingMessage};
use crate::frontier::FrontierError;
use crate::local_crawl::LocalRequest;
use crate::reload::ReloadRequest;
use crate::requester::Requester;
use crate::rights;

impl Core {
    /// Carries out a request and answers it. A request that the sender's rights forbid, or that was invalid when it
    /// was read, is answered with the refusal.
    pub fn handle_request(
        &mut self,
        requester: impl Into<Requester>,
        asked: Result<ControlRequest, Refusal>,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let requester = requester.into();
        if let Ok(ControlRequest::Feed { refused, .. }) = &asked {
            self.audit_foreign_lines(&requester, refused, now_ms);
        }
        let (audited, reply) = match asked {
            Err(refusal) => (None, Ok(refusal.into())),
            // All lines were already refused with reasons, so the answer mentions neither the sender's rights nor a
            // full disk.
            Ok(asked) if asked.has_refused_lines_only() => (
                AuditedAction::from_request(&asked),
                Ok(Reply::Now(json!({"accepted": 0}))),
            ),
            Ok(asked) => match rights::check_rights(&asked, &requester.rights) {
                Err(refusal) => (AuditedAction::from_request(&asked), Ok(refusal.into())),
                Ok(()) => match self.check_and_carry_out(&requester, asked, now_ms) {
                    Some(carried_out) => carried_out,
                    None => return Ok(()),
                },
            },
        };
        self.answer(requester, audited, reply, now_ms)
    }

    /// Logs the refused lines of a feed that are for other applications, in a separate entry.
    fn audit_foreign_lines(&mut self, requester: &Requester, refused: &RefusedLines, now_ms: i64) {
        let refusal = rights::foreign_application_refusal("$.appid").to_answer();
        let audited = AuditedAction::from_foreign_lines(refused);
        let end = ActionEnd::from_answer(&refusal);
        self.cx.audit(requester.who.clone(), audited, end, now_ms);
    }

    /// Checks and carries out a request. Returns `None` for a long list, which is answered after its last piece is fed.
    fn check_and_carry_out(
        &mut self,
        requester: &Requester,
        asked: ControlRequest,
        now_ms: i64,
    ) -> Option<(Option<AuditedAction>, Result<Reply, FrontierError>)> {
        let changes = rights::changes_something(&asked);
        if changes {
            // Drop cached reports, so that later answers show the state after the change.
            match asked {
                ControlRequest::Act(_) => self.reports.clear(),
                _ => self.reports.clear_totals(),
            }
        }
        let audited = changes
            .then(|| AuditedAction::from_request(&asked))
            .flatten();
        let asked = self
            .feeds
            .enqueue_if_long(&mut self.cx, requester, asked, &audited)?;
        Some((audited, self.carry_out(requester, asked, now_ms)))
    }

    /// Adds the entry for the audit log, and sends the answer unless it has to wait.
    fn answer(
        &mut self,
        requester: Requester,
        audited: Option<AuditedAction>,
        reply: Result<Reply, FrontierError>,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let who = requester.who;
        let answer = match reply {
            Ok(Reply::Now(answer)) => answer,
            Ok(Reply::Later) => {
                self.cx.audit(who, audited, ActionEnd::Begun, now_ms);
                return Ok(());
            }
            Err(pruned @ FrontierError::UnknownCrawl(_)) => {
                Refusal::new("crawl", pruned).to_answer()
            }
            Err(FrontierError::Scope(error)) => Refusal::new("spec", error).to_answer(),
            Err(fault) => return Err(fault),
        };
        let audited = audited.map(|mut audited| {
            audited.count_answer(&answer);
            audited
        });
        let end = ActionEnd::from_answer(&answer);
        self.cx.audit(who, audited, end, now_ms);
        let message = OutgoingMessage::ToClient(requester.client, answer);
        self.cx.outgoing.push(message);
        Ok(())
    }

    fn carry_out(
        &mut self,
        requester: &Requester,
        asked: ControlRequest,
        now_ms: i64,
    ) -> Result<Reply, FrontierError> {
        let client = &requester.client;
        match asked {
            ControlRequest::Local(request)
                if request.is_for_feeders_only() && !matches!(client, Client::Feeder(_)) =>
            {
                let why = "only the processes that feed runs of watches may send this";
                Ok(Refusal::new("$.action", why).into())
            }
            ControlRequest::Local(LocalRequest::End { crawls }) => {
                self.end_asked = Some((client.clone(), crawls));
                context::start_drain(&mut self.cx);
                Ok(Reply::Later)
            }
            ControlRequest::Local(
                LocalRequest::FeedSeeds { .. } | LocalRequest::FeedRequests { .. },
            ) if self.cx.surroundings.low_disk.is_some() => {
                // While the disk is almost full, the request may stay unanswered: `webfill crawl` sends it again.
                Ok(Reply::Later)
            }
            ControlRequest::Feed { .. } if self.cx.surroundings.low_disk.is_some() => {
                Ok(low_disk_refusal(&self.cx))
            }
            ControlRequest::UnreadFeed => Ok(rights::read_only_refusal("$").into()),
            ControlRequest::Local(request) => self.carry_out_local(request, now_ms).map(Reply::Now),
            ControlRequest::Feed { batch, whole, .. } => {
                let _fed_by = requester.who.feed_span().entered();
                feeding::feed_batch(&mut self.cx, &mut self.closing, batch, whole, now_ms)
                    .map(Reply::Now)
            }
            ControlRequest::Act(action) => self.carry_out_action(requester, action, now_ms),
        }
    }

    fn carry_out_action(
        &mut self,
        requester: &Requester,
        action: Action,
        now_ms: i64,
    ) -> Result<Reply, FrontierError> {
        let client = &requester.client;
        match action {
            Action::Info(question) => info::answer_info(
                &mut self.cx,
                &mut self.reports,
                &question,
                &requester.rights,
                now_ms,
            ),
            Action::Stop(subject) => self.closing.stop_crawl(&mut self.cx, client, subject),
            Action::Pause(subject) => {
                pausing::pause(&mut self.cx, &mut self.waiting, client, subject)
            }
            Action::Resume(subject) => pausing::resume(&mut self.cx, subject, now_ms),
            Action::Retry(action) => self.reopening.retry(&mut self.cx, requester, action),
            Action::Prune(action) => self.prune(&action, now_ms),
            Action::Status { uuid } => status::fleet_status(
                &mut self.cx,
                &self.notifications,
                &mut self.reports,
                uuid,
                now_ms,
            ),
            Action::Reload { uuid } => {
                self.request_reload(ReloadRequest {
                    client: Some(client.clone()),
                    who: requester.who.clone(),
                    uuid,
                });
                Ok(Reply::Later)
            }
            Action::Drain { supervisor, uuid } => {
                Ok(self
                    .drains
                    .drain_supervisors(&mut self.cx, client, supervisor, uuid))
            }
            Action::Site(action) => {
                sites::control_site(&mut self.cx, &mut self.waiting, client, action, now_ms)
            }
            Action::Sites(question) => {
                sites::list_sites(&mut self.cx, &question, now_ms).map(Reply::Now)
            }
            Action::Why(question) => why::answer_why(&mut self.cx, &question, now_ms),
            Action::Watch(action) => self
                .watches
                .act_on_watches(
                    &mut self.cx,
                    &mut self.notifications,
                    action,
                    &requester.rights,
                    now_ms,
                )
                .map(Reply::Now),
        }
    }
}

/// Refuses crawl requests for now, for lack of disk space.
fn low_disk_refusal(cx: &Context) -> Reply {
    let shortage = cx.surroundings.low_disk.as_deref().unwrap_or_default();
    let why = format!("the dispatcher is paused, nothing is accepted for now: {shortage}");
    Refusal::temporary("$", why).into()
}

#[cfg(test)]
mod tests;
