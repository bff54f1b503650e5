//! The waits, queries and requests for fetching a robots.txt. The decisions are in [`permission`](crate::permission).

use webfill_urls::Url;

use super::state::Journey;
use super::turns::{NoTurn, TakenTurn};
use crate::memory::LEAST_SHARE;
use crate::now::{Now, now_ms};
use crate::permission::{Permission, PermissionCheck, Step};
use crate::permits::{Denied, Permit};
use crate::robots::{self, RobotsResponse, Rules};
use crate::sites::Turn;

/// The turn that a check has taken, and its site.
#[derive(Default)]
struct HeldTurn<'a> {
    turn: Option<TakenTurn<'a>>,
    of: String,
    has_asked: bool,
    /// The sites besides the task's own that redirects led to.
    visited: Vec<String>,
    /// The rules that decided.
    rules: Option<Rules>,
}

impl Journey {
    /// Takes the steps of a permission check. If the task is called back meanwhile, it is given back. Returns the
    /// rules that decided.
    pub(super) async fn run_check(
        &self,
        check: PermissionCheck,
        site: &str,
        permit: &Permit,
    ) -> (Permission, Option<Rules>) {
        let mut held = HeldTurn::default();
        let permission = self.take_steps(check, site, permit, &mut held).await;
        if held.of != site {
            self.end_held(&mut held, site).await;
        }
        held.turn = None;
        for visited in held.visited {
            self.sites.borrow_mut().end_visit(&visited);
        }
        let permission = permission.unwrap_or(match held.has_asked {
            true => Permission::CutShort,
            false => Permission::NotAsked,
        });
        (permission, held.rules)
    }

    /// Takes the steps of a permission check. `None` if the task is called back.
    async fn take_steps<'a>(
        &'a self,
        mut check: PermissionCheck,
        site: &str,
        permit: &Permit,
        held: &mut HeldTurn<'a>,
    ) -> Option<Permission> {
        loop {
            match check.step() {
                Step::LookUp(origin) => {
                    let found = self.cache.robots(&origin, now_ms()).await;
                    // If the cache is unreachable, which it logs itself, the file is fetched from the web.
                    let entry = found.ok().flatten();
                    check.note_cache_entry(entry.as_ref(), self.known(), Now::read());
                }
                Step::AwaitTurn(of) => {
                    let url = check.awaits();
                    match self.take_robots_turn(of, site, url, permit, held).await {
                        Ok(()) => check.note_turn(self.known(), Now::read()),
                        Err(NoTurn::Anothers) => check.note_no_turn(self.known(), Now::read()),
                        Err(NoTurn::CalledBack) => return None,
                    }
                }
                Step::Request(url) => {
                    let answer = self.request_robots(permit, &url, held).await;
                    if answer.is_ok() {
                        held.has_asked = true;
                        self.note_use(&held.of);
                    }
                    check.note_response(answer, self.known(), Now::read());
                }
                Step::Decided(permission) => {
                    held.rules = check.take_rules();
                    let fetched = check.take_fetched();
                    if !fetched.is_empty() {
                        // If the cache is unreachable, only this worker has the files.
                        let _ = self.cache.put_robots(fetched, now_ms()).await;
                    }
                    if matches!(permission.turn(), Some(Turn::Page(_))) {
                        // The page does not follow robots.txt in the same turn.
                        self.end_held(held, site).await;
                    }
                    return Some(permission);
                }
            }
        }
    }

    async fn request_robots(
        &self,
        permit: &Permit,
        url: &Url,
        held: &mut HeldTurn<'_>,
    ) -> Result<RobotsResponse, Denied> {
        // Every request has a turn.
        let memory = &mut held.turn.as_mut().ok_or(Denied::NotStarted)?.memory;
        let asking = self.gate.robots(permit, url, robots::MOST_BYTES, memory);
        let mut answer = asking.await;
        if let Ok(fetched) = &mut answer {
            self.counts.note_robots_fetched();
            self.archive(fetched.exchange.take()).await;
        }
        // Only the rules that were read from the body are kept.
        memory.set(LEAST_SHARE);
        answer.map(RobotsResponse::from)
    }

    /// Ends the turn that is held, if there is one. Its reservation ends first, because the next waiter in this
    /// process must not take it over.
    async fn end_held(&self, held: &mut HeldTurn<'_>, site: &str) {
        let Some(turn) = held.turn.take() else {
            return;
        };
        match held.of == site {
            true => self.end_turn(&held.of).await,
            false => self.end_visit_turn(&held.of).await,
        }
        drop(turn);
    }

    /// Takes the turn of a request for robots.txt. The previous turn ends first, because each request has a turn of
    /// its own.
    async fn take_robots_turn<'a>(
        &'a self,
        of: String,
        site: &str,
        url: &Url,
        permit: &Permit,
        held: &mut HeldTurn<'a>,
    ) -> Result<(), NoTurn> {
        self.end_held(held, site).await;
        let turn = if of == site {
            let turn = self.take_turn(Turn::Robots, &of, url, permit).await;
            turn.ok_or(NoTurn::CalledBack)
        } else {
            let default_delay = self.politeness.delay();
            self.sites.borrow_mut().begin_visit(&of, default_delay);
            held.visited.push(of.clone());
            self.take_visit_turn(Turn::Robots, &of, url, permit).await
        };
        held.turn = Some(turn?);
        held.of = of;
        Ok(())
    }
}
