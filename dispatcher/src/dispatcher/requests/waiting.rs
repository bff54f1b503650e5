//! Answers that wait until the fleet has given back what they are about, so that no fetch of it
//! starts after the answer. A supervisor that stands still or is away is waited for until its lease
//! is over, see [`crate::dispatcher::recalls`].

use webfill_wire::{CrawlKey, RecallScope};

use crate::control::{Refusal, SiteAction, Subject};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::recalls::RecallNumber;
use crate::frontier::FrontierError;
use crate::letter::{Client, Letter};

/// Answers that wait at once; what would need a further one is refused.
const MOST_WAITING: usize = 10_000;

/// How far the supervisors are with giving back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Recalled {
    Asked(RecallNumber),
    Done,
}

impl Recalled {
    pub(super) fn is_done(self) -> bool {
        matches!(self, Recalled::Done)
    }
}

/// An answer that waits.
#[derive(Debug)]
pub(in crate::dispatcher) struct Waiting {
    client: Client,
    recalled: Recalled,
    about: About,
}

#[derive(Debug)]
pub(super) enum About {
    Pause(CrawlKey, Subject),
    Site(SiteAction),
}

impl Dispatcher {
    /// Calls back what supervisors hold and have not started.
    pub(super) fn call_back(&mut self, scope: RecallScope) -> Recalled {
        Recalled::Asked(self.recall(scope))
    }

    /// Whether it has come back by now, or cannot be started any more.
    pub(super) fn look_again(&mut self, recalled: &mut Recalled) -> bool {
        if let Recalled::Asked(recall) = *recalled
            && self.is_recalled(recall)
        {
            *recalled = Recalled::Done;
        }
        recalled.is_done()
    }

    /// Why no further answer can wait; asked before anything is done.
    pub(super) fn too_many_wait(&self) -> Option<Refusal> {
        let why = "too many answers wait for supervisors that stand still: ask again later";
        (self.waiting.len() >= MOST_WAITING).then(|| Refusal::new("$", why))
    }

    pub(super) fn answer_later(&mut self, client: &Client, scope: RecallScope, about: About) {
        let recalled = self.call_back(scope);
        self.waiting.push(Waiting {
            client: client.clone(),
            recalled,
            about,
        });
    }

    /// Sends the answers that have waited long enough.
    pub(in crate::dispatcher) fn answer_waiting(
        &mut self,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        let ready = waiting.extract_if(.., |one| self.look_again(&mut one.recalled));
        let ready: Vec<Waiting> = ready.collect();
        self.waiting = waiting;
        for one in ready {
            let (app_id, answer) = match one.about {
                About::Pause(crawl, subject) => {
                    let answer = self.pause_answer("pause", crawl, &subject, now_ms)?;
                    (Some(subject.app_id), answer)
                }
                About::Site(action) => (None, self.site_answer(&action)?),
            };
            if let Some(app_id) = app_id {
                self.notify(&app_id, &answer);
            }
            self.letters.push(Letter::ToClient(one.client, answer));
        }
        Ok(())
    }
}
