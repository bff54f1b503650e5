//! One site's runner: what it does next, and how it reacts to an answer.

use super::*;

impl Worker {
    /// Advances a site's runner, and returns what it does now. Call it again until that is nothing.
    pub(crate) fn advance(&mut self, number: usize, around: &mut Around<'_>) -> Next {
        let mut runner = match self.runners.remove(&number) {
            Some(runner) => runner,
            None => {
                let task = self.sites.borrow_mut().next_task(&site_name(number));
                let Some(task) = task else {
                    return Next::Nothing;
                };
                if self.draining {
                    return Next::GiveBack(unstarted(&task, None));
                }
                self.take_up(task, around)
            }
        };
        let next = self.go_on(&mut runner, around);
        if !matches!(next, Next::GiveBack(_) | Next::Finish(_)) {
            self.runners.insert(number, runner);
        }
        next
    }

    fn take_up(&self, task: Task, around: &mut Around<'_>) -> Runner {
        self.look_up_clock(&task.site, around);
        let url = Url::parse(&task.url).expect("a URL of ours");
        let check = PermissionCheck::begin(&task, &url, false, self.known(), around.now);
        Runner {
            permit: self.permits.permit(&task),
            task,
            stage: Stage::Checking(Box::new(check)),
            request: None,
            has_asked: false,
        }
    }

    fn look_up_clock(&self, site: &str, around: &mut Around<'_>) {
        let mut sites = self.sites.borrow_mut();
        if !sites.begin_clock_lookup(site, around.now) {
            return;
        }
        match around.cache.site(site, around.now.wall_ms) {
            Ok(Some(entry)) => sites.take_shared_clock(&entry, around.now),
            Ok(None) => {}
            Err(Away) => sites.clock_lookup_failed(site),
        }
    }

    /// Continues until the runner has to wait, or the task is over.
    fn go_on(&self, runner: &mut Runner, around: &mut Around<'_>) -> Next {
        if runner.request.is_some() {
            return Next::Nothing;
        }
        let (task, permit) = (&runner.task, &runner.permit);
        if let Some(outcome) = task.unreachable {
            return Next::Finish(Box::new(FinishedTask {
                task: task.clone(),
                outcome,
                status: None,
                next_start: None,
                delay: None,
                evidence: None,
            }));
        }
        let address = address_to_count(task.address_bounds, &addresses());
        let is_sent = !around.suffers(Sabotage::AddressesAreNotSent);
        if address.is_some() && !runner.has_asked && is_sent {
            return Next::GiveBack(TaskReturned {
                address,
                ..unstarted(task, None)
            });
        }
        loop {
            match &mut runner.stage {
                Stage::Checking(check) => match check.step() {
                    Step::LookUp(origin) => {
                        self.look_up_robots(check, &origin, &task.site, around);
                    }
                    Step::AwaitTurn(_)
                        if runner.has_asked && around.suffers(Sabotage::RobotsHopsTakeNoTurn) =>
                    {
                        check.turn_came(self.known(), around.now);
                    }
                    Step::AwaitTurn(_) => match self.wait(Turn::Robots, task, permit, around) {
                        Waited::CalledBack if runner.has_asked => {
                            let default_delay = self.politeness.delay();
                            return Next::GiveBack(self.cut_short(task, default_delay, around));
                        }
                        Waited::CalledBack => return Next::GiveBack(unstarted(task, None)),
                        Waited::Until(instant) => return Next::WakeAt(instant),
                        Waited::Over => check.turn_came(self.known(), around.now),
                    },
                    Step::Request(url) => match self.permits.check(permit, around.boot_ms) {
                        Ok(()) => {
                            let hop = hop_of(url.path());
                            return Next::Ask(Request::Robots { hop });
                        }
                        Err(denied) => check.answered(Err(denied), self.known(), around.now),
                    },
                    Step::Decided(permission) => {
                        for entry in check.take_fetched() {
                            around.cache.put_robots(entry);
                        }
                        match self.decided(permission, task, around) {
                            Ok(stage) => runner.stage = stage,
                            Err(next) => return next,
                        }
                    }
                },
                Stage::Permitted {
                    delay,
                    turn,
                    decided_ms,
                } => {
                    let clock = || self.sites.borrow().clock(&task.site, *delay, around.now);
                    let give_back = || Next::GiveBack(unstarted(task, Some(clock())));
                    return match self.wait(*turn, task, permit, around) {
                        Waited::CalledBack => give_back(),
                        Waited::Until(instant) => Next::WakeAt(instant),
                        Waited::Over => match self.permits.check(permit, around.boot_ms) {
                            Ok(()) => Next::Ask(Request::Page {
                                crawl: task.crawl,
                                page: page_number(task),
                                decided_ms: *decided_ms,
                            }),
                            Err(_) => give_back(),
                        },
                    };
                }
            }
        }
    }

    fn look_up_robots(
        &self,
        check: &mut PermissionCheck,
        origin: &str,
        site: &str,
        around: &mut Around<'_>,
    ) {
        let wall_ms = around.now.wall_ms;
        let mut entry = around.cache.robots(origin, wall_ms).ok().flatten();
        if let Some(entry) = &mut entry {
            around.judge.cached(
                site_number(site),
                around.process,
                entry,
                around.now_ms,
                wall_ms,
            );
            if around.suffers(Sabotage::CachedRobotsDoNotExpire) {
                entry.expires_at_ms = i64::MAX;
            }
        }
        check.looked_up(entry.as_ref(), self.known(), around.now);
    }

    /// Acts on the decision about a page: the runner waits for the page's turn, or the task is over.
    fn decided(
        &self,
        permission: Permission,
        task: &Task,
        around: &Around<'_>,
    ) -> Result<Stage, Next> {
        match permission {
            Permission::Allowed { delay, turn } => Ok(Stage::Permitted {
                delay,
                turn,
                decided_ms: around.now_ms,
            }),
            Permission::Refused { outcome, evidence } => {
                let sites = self.sites.borrow();
                let was_requested = evidence.is_some();
                Err(Next::Finish(Box::new(FinishedTask {
                    task: task.clone(),
                    outcome,
                    status: None,
                    next_start: sites.next_start_after_refusal(&task.site, was_requested),
                    delay: None,
                    evidence,
                })))
            }
            Permission::NotAsked => Err(Next::GiveBack(unstarted(task, None))),
            Permission::CutShort => Err(Next::GiveBack(self.cut_short(
                task,
                self.politeness.delay(),
                around,
            ))),
        }
    }

    fn wait(&self, turn: Turn, task: &Task, permit: &Permit, around: &Around<'_>) -> Waited {
        if self.draining || permit.is_recalled() {
            return Waited::CalledBack;
        }
        match self.sites.borrow().next_start(&task.site, turn) {
            Some(next) if next > around.now.instant => Waited::Until(next),
            _ => Waited::Over,
        }
    }

    fn cut_short(&self, task: &Task, delay: Duration, around: &Around<'_>) -> TaskReturned {
        let mut sites = self.sites.borrow_mut();
        let clock = sites.request_cut_short(&task.site, delay, around.now);
        TaskReturned {
            cause: ReturnCause::CutShort,
            ..unstarted(task, Some(clock))
        }
    }

    fn known(&self) -> Knowledge<'_> {
        Knowledge {
            politeness: &self.politeness,
            sites: &self.sites,
            robots: &self.robots,
        }
    }

    /// Handles the answer to a site's request. Returns what ends because of it, if anything.
    pub(crate) fn answered(&mut self, number: usize, around: &mut Around<'_>) -> Option<Next> {
        let mut runner = self.runners.remove(&number)?;
        let Some(pending) = runner.request.take() else {
            self.runners.insert(number, runner);
            return None;
        };
        runner.permit.note_request(false);
        let took_ms = around.now_ms - pending.started_ms;
        let is_cut_short = took_ms > around.longest_request_ms;
        if !is_cut_short {
            let times = (pending.started_ms, around.now_ms);
            let (request, response) = (pending.request, &pending.response);
            around
                .judge
                .answered(number, request, around.process, response, times);
        }
        let over = match &mut runner.stage {
            Stage::Checking(check) => {
                let response = match is_cut_short {
                    true => Err(Denied::CutShort),
                    false => Ok(robots_response(pending.response, around)),
                };
                check.answered(response, self.known(), around.now);
                if around.suffers(Sabotage::RefusalsMoveNoClock) && has_failed(check) {
                    self.sites.borrow_mut().forget_back_off(&runner.task.site);
                }
                None
            }
            Stage::Permitted { delay, .. } => {
                let delay = *delay;
                Some(match is_cut_short {
                    true => Next::GiveBack(self.cut_short(&runner.task, delay, around)),
                    false => Next::Finish(Box::new(self.fetched(
                        &runner.task,
                        delay,
                        &pending,
                        around,
                    ))),
                })
            }
        };
        if around.suffers(Sabotage::BackOffIsForgotten) {
            self.sites.borrow_mut().forget_back_off(&runner.task.site);
        }
        if over.is_none() {
            self.runners.insert(number, runner);
        }
        over
    }

    fn fetched(
        &self,
        task: &Task,
        delay: Duration,
        pending: &Pending,
        around: &Around<'_>,
    ) -> FinishedTask {
        let mut sites = self.sites.borrow_mut();
        let pace = self.politeness.pace(delay);
        let answered = Answered {
            started: pending.started,
            at: around.now.instant,
            answer: pending.response.answer,
            page: Some(PageKey::of(&task.url)),
        };
        sites.page_answered(&task.site, answered, pace);
        FinishedTask {
            task: task.clone(),
            outcome: pending.response.outcome,
            status: pending.response.status,
            next_start: sites.next_start(&task.site, Turn::Page(delay)),
            delay: Some(delay),
            evidence: evidence(task, &pending.response),
        }
    }
}

/// The evidence that a worker reports about a page that was not served.
fn evidence(task: &Task, response: &Response) -> Option<Evidence> {
    let sign = match (response.answer, response.status) {
        (Answer::Silent, _) => response.error.clone()?,
        (answer, Some(status)) if answer.asks_to_wait() => format!("the server returned {status}"),
        _ => return None,
    };
    Some(Evidence {
        url: task.url.clone(),
        status_code: response.status,
        sign,
        no_route: response.no_route,
    })
}

/// Whether a request for robots.txt failed.
fn has_failed(check: &PermissionCheck) -> bool {
    let step = check.step();
    matches!(step, Step::Decided(Permission::Refused { evidence, .. }) if evidence.is_some())
}

fn robots_response(response: Response, around: &Around<'_>) -> RobotsResponse {
    let allows_all = around.suffers(Sabotage::FailuresOfRobotsAllowEverything);
    let failed = response.status.is_none_or(|status| status >= 500);
    RobotsResponse {
        outcome: response.outcome,
        status: match allows_all && failed {
            true => Some(404),
            false => response.status,
        },
        body: response.body.into_bytes(),
        redirect: response.redirect,
        error: response.error,
        no_route: response.no_route,
        answered_at: around.now.instant,
        answer: response.answer,
    }
}
