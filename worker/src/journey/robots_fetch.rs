//! Fetches a robots.txt: waits for the site, asks the shared cache, and sends the request. The decisions are made in
//! [`permission`](crate::permission).

use webfill_urls::Url;

use super::state::Journey;
use super::turns::{NoTurn, TakenTurn};
use crate::memory::LEAST_SHARE;
use crate::now::{Now, now_ms};
use crate::permission::{Permission, PermissionCheck, Step};
use crate::permits::{Denied, Permit};
use crate::robots::{self, RobotsResponse, Rules};
use crate::sites::Turn;

/// Takes the steps of a permission check, and also returns the rules of robots.txt that decided. If the task is
/// recalled or the worker drains meanwhile, the task must be given back.
pub(super) async fn run_check(
    journey: &Journey,
    check: PermissionCheck,
    site: &str,
    permit: &Permit,
) -> (Permission, Option<Rules>) {
    let mut running = RunningCheck {
        journey,
        site,
        permit,
        turn: None,
        of: String::new(),
        has_asked: false,
        visited: Vec::new(),
        rules: None,
    };
    let permission = running.take_steps(check).await;
    if running.of != site {
        running.end_turn().await;
    }
    running.turn = None;
    for visited in &running.visited {
        journey.sites.borrow_mut().end_visit(visited);
    }
    let permission = permission.unwrap_or(match running.has_asked {
        true => Permission::CutShort,
        false => Permission::NotAsked,
    });
    (permission, running.rules)
}

/// A permission check under way, with the turn that it has taken.
struct RunningCheck<'j> {
    journey: &'j Journey,
    /// The task's site.
    site: &'j str,
    permit: &'j Permit,
    turn: Option<TakenTurn<'j>>,
    /// The site that the held turn belongs to; it differs from `site` after a redirect to another site.
    of: String,
    has_asked: bool,
    /// Other sites than the task's own that redirects of robots.txt led to.
    visited: Vec<String>,
    /// The rules of robots.txt that decided.
    rules: Option<Rules>,
}

impl RunningCheck<'_> {
    /// Takes the steps of a permission check. `None` if the task is recalled or the worker drains.
    async fn take_steps(&mut self, mut check: PermissionCheck) -> Option<Permission> {
        let journey = self.journey;
        loop {
            match check.next_step() {
                Step::LookUp(origin) => {
                    let found = journey.cache.robots(&origin, now_ms()).await;
                    // An unreachable cache logs that itself. The file is then fetched from the web.
                    let entry = found.ok().flatten();
                    check.note_cache_entry(entry.as_ref(), journey.knowledge(), Now::read());
                }
                Step::AwaitTurn(of) => match self.take_turn(of, check.awaited_url()).await {
                    Ok(()) => check.note_turn(journey.knowledge(), Now::read()),
                    Err(NoTurn::Anothers) => check.note_no_turn(journey.knowledge(), Now::read()),
                    Err(NoTurn::CalledBack) => return None,
                },
                Step::Request(url) => {
                    let answer = self.request(&url).await;
                    if answer.is_ok() {
                        self.has_asked = true;
                        journey.turns.note_use(&self.of);
                    }
                    check.note_response(answer, journey.knowledge(), Now::read());
                }
                Step::Decided(permission) => {
                    self.rules = check.take_rules();
                    let fetched = check.take_fetched();
                    if !fetched.is_empty() {
                        // If the cache is unreachable, the fetched files are known to this worker only.
                        let _ = journey.cache.put_robots(fetched, now_ms()).await;
                    }
                    if matches!(permission.turn(), Some(Turn::Page(_))) {
                        // End this turn, because the request for the page is a request of its own and needs another
                        // turn.
                        self.end_turn().await;
                    }
                    return Some(permission);
                }
            }
        }
    }

    async fn request(&mut self, url: &Url) -> Result<RobotsResponse, Denied> {
        let journey = self.journey;
        // The turn is never missing, because each request takes one first.
        let memory = &mut self.turn.as_mut().ok_or(Denied::NotStarted)?.memory;
        let asking = journey
            .gate
            .fetch_robots(self.permit, url, robots::MOST_BYTES, memory);
        let mut answer = asking.await;
        if let Ok(fetched) = &mut answer {
            journey.counts.note_robots_fetched();
            journey.archive(fetched.exchange.take()).await;
        }
        // The body was dropped after its rules were read, so most of its memory is returned.
        memory.set(LEAST_SHARE);
        answer.map(RobotsResponse::from)
    }

    /// Ends the turn that is held, if there is one. The reservation of the site ends first, because the next waiting
    /// task of this process must not inherit it.
    async fn end_turn(&mut self) {
        let Some(turn) = self.turn.take() else {
            return;
        };
        match self.of == self.site {
            true => self.journey.turns.end(&self.of).await,
            false => self.journey.turns.end_visit(&self.of).await,
        }
        drop(turn);
    }

    /// Waits for permission to request a robots.txt. The previous turn at a site ends first, because each request needs
    /// a turn of its own.
    async fn take_turn(&mut self, of: String, url: &Url) -> Result<(), NoTurn> {
        self.end_turn().await;
        let Journey { turns, sites, .. } = self.journey;
        let turn = if of == self.site {
            let turn = turns.take(Turn::Robots, &of, url, self.permit).await;
            turn.ok_or(NoTurn::CalledBack)
        } else {
            let default_delay = self.journey.politeness.delay();
            sites.borrow_mut().begin_visit(&of, default_delay);
            self.visited.push(of.clone());
            let visit = turns.take_visit(Turn::Robots, &of, url, self.permit);
            visit.await
        };
        self.turn = Some(turn?);
        self.of = of;
        Ok(())
    }
}
