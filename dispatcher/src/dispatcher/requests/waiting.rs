//! Answers that wait until the fleet has given back what they are about, so that no fetch of it
//! starts after the answer. A supervisor that is away keeps nobody waiting for long.

use webfill_wire::{CrawlKey, RecallScope};

use crate::control::{SiteAction, Subject};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::recalls::PATIENCE_MS;
use crate::frontier::FrontierError;
use crate::letter::{Client, Letter};

/// Answers that wait at once; a further one does not wait.
const MOST_WAITING: usize = 10_000;

/// How far the supervisors are with giving back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Recalled {
    Asked { recall: u64, until_ms: i64 },
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
    pub(super) fn call_back(&mut self, scope: RecallScope, now_ms: i64) -> Recalled {
        Recalled::Asked {
            recall: self.recall(scope, now_ms),
            until_ms: now_ms + PATIENCE_MS,
        }
    }

    /// Whether it has come back by now, or has been waited for long enough.
    pub(super) fn look_again(&mut self, recalled: &mut Recalled, now_ms: i64) -> bool {
        if let Recalled::Asked { recall, .. } = *recalled
            && self.is_recalled(recall, now_ms)
        {
            *recalled = Recalled::Done;
        }
        recalled.is_done()
    }

    pub(super) fn answer_later(
        &mut self,
        client: &Client,
        scope: RecallScope,
        about: About,
        now_ms: i64,
    ) {
        let recalled = match self.waiting.len() < MOST_WAITING {
            true => self.call_back(scope, now_ms),
            false => Recalled::Done,
        };
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
        let ready = waiting.extract_if(.., |one| self.look_again(&mut one.recalled, now_ms));
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

    /// When answers are sent whether or not everything has come back.
    pub(in crate::dispatcher) fn patience_ends_ms(&self) -> Option<i64> {
        let waiting = self.waiting.iter().map(|one| one.recalled);
        let recalled = waiting.chain(self.endings.recalled());
        let ends = recalled.filter_map(|recalled| match recalled {
            Recalled::Asked { until_ms, .. } => Some(until_ms),
            Recalled::Done => None,
        });
        ends.min()
    }
}
