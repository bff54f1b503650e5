//! Requests of clients: crawl requests, actions, and the requests of `webfill crawl`. Each request
//! has one answer, which leaves after the commit of what it tells. Pauses, stops and site rules are
//! answered when a recall has ended, retries when all tasks are queued, drains when the supervisors have
//! left; other requests do not wait
//! for them.

mod actions;
mod awaited;
mod closing;
mod drain;
mod feeding;
mod feeds;
mod limits;
mod local_crawl;
mod prune;
mod retry;
mod scripts;
mod sites;
mod status;
mod told_again;
mod waiting;
mod waits;
mod why;

use serde_json::{Value, json};
use webfill_api::{Action, Refusal};
use webfill_wire::keys::ListChange;

pub(super) use self::closing::ClosingCrawls;
pub(super) use self::drain::{Drains, Gone};
pub(super) use self::feeds::FeedsUnderWay;
pub(super) use self::local_crawl::BackoffReport;
pub(super) use self::retry::ReopeningCrawls;
pub(super) use self::told_again::ToldAgain;
pub(super) use self::waiting::WaitingAnswer;
use super::Core;
use crate::control::Asked;
use crate::effects::{ActionEnd, Audited, AuditedAction};
use crate::effects::{Client, OutgoingMessage};
use crate::frontier::FrontierError;
use crate::local_crawl::LocalRequest;
use crate::reload::ReloadAsked;
use crate::requester::{Requester, Way, Who};
use crate::rights;

/// When a request is answered.
enum Reply {
    Now(Value),
    /// When a recall, the closing of a crawl, the reopening of its tasks, a reload or a drain has ended.
    Later,
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        Reply::Now(refusal.answer())
    }
}

impl Core {
    /// Carries out a request, or answers with the reason why it was refused, by its sender's rights or
    /// when it was read.
    pub fn handle_request(
        &mut self,
        requester: impl Into<Requester>,
        asked: Result<Asked, Refusal>,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let requester = requester.into();
        if let Ok(Asked::Feed { refused, .. }) = &asked {
            let refusal = rights::of_others("$.appid").answer();
            let audited = AuditedAction::of_foreign_lines(refused);
            let end = ActionEnd::of_answer(&refusal);
            self.audit(requester.who.clone(), audited, end, now_ms);
        }
        let (audited, reply) = match asked {
            Err(refusal) => (None, Ok(refusal.into())),
            // Its sender knows why: neither rights nor a full disk say more about it.
            Ok(asked) if asked.has_refused_lines_only() => (
                AuditedAction::of(&asked),
                Ok(Reply::Now(json!({"accepted": 0}))),
            ),
            Ok(asked) => match rights::judge(&asked, &requester.rights) {
                Err(refusal) => (AuditedAction::of(&asked), Ok(refusal.into())),
                Ok(()) => {
                    let changes = rights::changes_something(&asked);
                    if changes {
                        // Whoever has done something is told how things are after it.
                        match asked {
                            Asked::Act(_) => {
                                self.told_again.forget();
                                self.unfinished_told = None;
                            }
                            _ => self.told_again.forget_totals(),
                        }
                    }
                    let audited = if changes {
                        AuditedAction::of(&asked)
                    } else {
                        None
                    };
                    let asked = match self.begin_long_feed(&requester, asked, &audited) {
                        Some(asked) => asked,
                        None => return Ok(()),
                    };
                    (audited, self.carry_out(&requester, asked, now_ms))
                }
            },
        };
        let answer = match reply {
            Ok(Reply::Now(answer)) => answer,
            Ok(Reply::Later) => {
                self.audit(requester.who, audited, ActionEnd::Begun, now_ms);
                return Ok(());
            }
            Err(pruned @ FrontierError::UnknownCrawl(_)) => Refusal::new("crawl", pruned).answer(),
            Err(FrontierError::Scope(error)) => Refusal::new("spec", error).answer(),
            Err(fault) => return Err(fault),
        };
        let audited = audited.map(|mut audited| {
            audited.count_answer(&answer);
            audited
        });
        self.audit(
            requester.who,
            audited,
            ActionEnd::of_answer(&answer),
            now_ms,
        );
        self.outgoing
            .push(OutgoingMessage::ToClient(requester.client, answer));
        Ok(())
    }

    /// What a signal has this process do.
    pub fn audit_signal(&mut self, action: &'static str, now_ms: i64) {
        let audited = Some(AuditedAction::plain(action));
        self.audit(Who::signal(), audited, ActionEnd::Begun, now_ms);
    }

    /// What was begun has come to nothing.
    pub(in crate::core) fn audit_refused_later(
        &mut self,
        who: Who,
        audited: AuditedAction,
        answer: &Value,
        now_ms: i64,
    ) {
        self.audit(who, Some(audited), ActionEnd::of_answer(answer), now_ms);
    }

    /// A changed list of keys is in force.
    pub fn audit_list_change(&mut self, change: &ListChange, now_ms: i64) {
        let who = Who {
            way: Way::File,
            ..Who::default()
        };
        for audited in AuditedAction::of_list(change) {
            self.audit(who.clone(), Some(audited), ActionEnd::Done, now_ms);
        }
    }

    fn audit(&mut self, who: Who, audited: Option<AuditedAction>, end: ActionEnd, now_ms: i64) {
        let at_ms = self.wall_ms(now_ms);
        self.audited.extend(audited.map(|audited| Audited {
            at_ms,
            who,
            audited,
            end,
        }));
    }

    fn carry_out(
        &mut self,
        requester: &Requester,
        asked: Asked,
        now_ms: i64,
    ) -> Result<Reply, FrontierError> {
        let client = &requester.client;
        match asked {
            Asked::Local(request)
                if request.is_of_feeders() && !matches!(client, Client::Feeder(_)) =>
            {
                let why = "only the processes that feed runs of watches may ask this";
                Ok(Refusal::new("$.action", why).into())
            }
            Asked::Local(LocalRequest::End { crawls }) => {
                self.end_asked = Some((client.clone(), crawls));
                self.drain();
                Ok(Reply::Later)
            }
            Asked::Local(LocalRequest::FeedSeeds { .. } | LocalRequest::FeedRequests { .. })
                if self.low_disk.is_some() =>
            {
                // `webfill crawl` asks again until there is an answer.
                Ok(Reply::Later)
            }
            Asked::Feed { .. } if self.low_disk.is_some() => Ok(self.no_room()),
            Asked::UnreadFeed => Ok(rights::only_reads("$").into()),
            Asked::Local(request) => self.carry_out_local(request, now_ms).map(Reply::Now),
            Asked::Feed { batch, whole, .. } => {
                let _fed_by = requester.who.span_of_feed().entered();
                self.take_batch(batch, whole, now_ms).map(Reply::Now)
            }
            Asked::Act(action) => self.act(requester, action, now_ms),
        }
    }

    /// Refuses to take anything in for now.
    fn no_room(&self) -> Reply {
        let shortage = self.low_disk.as_deref().unwrap_or_default();
        let why = format!("the dispatcher is paused, nothing is accepted for now: {shortage}");
        Refusal::for_now("$", why).into()
    }

    fn act(
        &mut self,
        requester: &Requester,
        action: Action,
        now_ms: i64,
    ) -> Result<Reply, FrontierError> {
        let client = &requester.client;
        match action {
            Action::Info(question) => self.info(&question, now_ms),
            Action::Stop(subject) => self.stop(client, subject),
            Action::Pause(subject) => self.pause(client, subject),
            Action::Resume(subject) => self.resume(subject, now_ms),
            Action::Retry(action) => self.retry(requester, action),
            Action::Prune(action) => self.prune(&action, now_ms),
            Action::Status { uuid } => self.fleet_status(uuid, now_ms),
            Action::Reload { uuid } => {
                self.ask_reload(ReloadAsked {
                    client: Some(client.clone()),
                    who: requester.who.clone(),
                    uuid,
                });
                Ok(Reply::Later)
            }
            Action::Drain { supervisor, uuid } => {
                Ok(self.drain_supervisors(client, supervisor, uuid))
            }
            Action::Site(action) => self.control_site(client, action, now_ms),
            Action::Sites(question) => self.list_sites(&question, now_ms).map(Reply::Now),
            Action::Why(question) => self.why(&question, now_ms),
            Action::Watch(action) => self
                .act_on_watches(action, &requester.rights, now_ms)
                .map(Reply::Now),
        }
    }

    /// Publishes an answer to the subscribers of the application's notifications.
    pub(in crate::core) fn notify(&mut self, app_id: &str, notification: &Value) {
        self.outgoing.push(OutgoingMessage::Notification {
            app_id: app_id.to_owned(),
            notification: notification.clone(),
        });
    }
}

#[cfg(test)]
mod tests;
