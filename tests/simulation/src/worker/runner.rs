//! The runner of a site, which performs one task of the site after another: its next steps, and its reactions to
//! answers.

use super::*;

impl Worker {
    /// Advances the runner of a site. Returns its next action. The caller repeats this until the action is `Nothing`.
    pub(crate) fn advance(
        &mut self,
        number: usize,
        around: &mut WorkerEnvironment<'_>,
    ) -> RunnerAction {
        let mut runner = match self.runners.remove(&number) {
            Some(runner) => runner,
            None => {
                let task = self.sites.borrow_mut().next_task(&site_name(number));
                let Some(task) = task else {
                    return RunnerAction::Nothing;
                };
                if self.draining {
                    return RunnerAction::GiveBack(unstarted_return(&task, None));
                }
                self.start_task(task, around)
            }
        };
        let next = self.advance_runner(&mut runner, around);
        if !matches!(next, RunnerAction::GiveBack(_) | RunnerAction::Finish(_)) {
            self.runners.insert(number, runner);
        }
        next
    }

    fn start_task(&self, task: Task, around: &mut WorkerEnvironment<'_>) -> Runner {
        self.look_up_clock(&task.site, around);
        let url = Url::parse(&task.url).expect("a URL of ours");
        let check = PermissionCheck::begin(&task, &url, false, self.robots_knowledge(), around.now);
        Runner {
            permit: self.permits.issue_permit(&task),
            task,
            stage: RunnerStage::Checking(Box::new(check)),
            request: None,
            has_asked: false,
        }
    }

    fn look_up_clock(&self, site: &str, around: &mut WorkerEnvironment<'_>) {
        let mut sites = self.sites.borrow_mut();
        if !sites.begin_clock_lookup(site, around.now) {
            return;
        }
        match around.cache.site(site, around.now.wall_ms) {
            Ok(Some(entry)) => sites.take_shared_clock(&entry, around.now),
            Ok(None) => {}
            Err(CacheUnavailable) => sites.note_failed_lookup(site),
        }
    }

    /// Advances the runner until it has to wait or its task ends.
    fn advance_runner(
        &self,
        runner: &mut Runner,
        around: &mut WorkerEnvironment<'_>,
    ) -> RunnerAction {
        if runner.request.is_some() {
            return RunnerAction::Nothing;
        }
        let (task, permit) = (&runner.task, &runner.permit);
        if let Some(outcome) = task.unreachable {
            return RunnerAction::Finish(Box::new(FinishedTask {
                task: task.clone(),
                outcome,
                status: None,
                next_start: None,
                delay: None,
                evidence: None,
            }));
        }
        let address = address_to_count(task.address_bounds, &server_addresses());
        let is_sent = !around.is_sabotaged_by(Sabotage::AddressesAreNotSent);
        if address.is_some() && !runner.has_asked && is_sent {
            return RunnerAction::GiveBack(TaskReturned {
                address,
                ..unstarted_return(task, None)
            });
        }
        loop {
            match &mut runner.stage {
                RunnerStage::Checking(check) => match check.next_step() {
                    Step::LookUp(origin) => {
                        self.look_up_robots(check, &origin, &task.site, around);
                    }
                    Step::AwaitTurn(_)
                        if runner.has_asked
                            && around.is_sabotaged_by(Sabotage::RobotsHopsTakeNoTurn) =>
                    {
                        check.note_turn(self.robots_knowledge(), around.now);
                    }
                    Step::AwaitTurn(_) => {
                        match self.poll_turn(Turn::Robots, task, permit, around) {
                            TurnWait::CalledBack if runner.has_asked => {
                                let default_delay = self.politeness.delay();
                                return RunnerAction::GiveBack(self.return_task(
                                    task,
                                    default_delay,
                                    around,
                                ));
                            }
                            TurnWait::CalledBack => {
                                return RunnerAction::GiveBack(unstarted_return(task, None));
                            }
                            TurnWait::Until(instant) => return RunnerAction::WakeAt(instant),
                            TurnWait::Over => check.note_turn(self.robots_knowledge(), around.now),
                        }
                    }
                    Step::Request(url) => match self.permits.check(permit, around.boot_ms) {
                        Ok(()) => {
                            let hop = hop_of(url.path());
                            return RunnerAction::Ask(Request::Robots { hop });
                        }
                        Err(denied) => {
                            check.note_response(Err(denied), self.robots_knowledge(), around.now)
                        }
                    },
                    Step::Decided(permission) => {
                        for entry in check.take_fetched() {
                            around.cache.put_robots(entry);
                        }
                        match self.apply_permission(permission, task, around) {
                            Ok(stage) => runner.stage = stage,
                            Err(next) => return next,
                        }
                    }
                },
                RunnerStage::Permitted {
                    delay,
                    turn,
                    decided_ms,
                } => {
                    let clock = || self.sites.borrow().clock(&task.site, *delay, around.now);
                    let give_back =
                        || RunnerAction::GiveBack(unstarted_return(task, Some(clock())));
                    return match self.poll_turn(*turn, task, permit, around) {
                        TurnWait::CalledBack => give_back(),
                        TurnWait::Until(instant) => RunnerAction::WakeAt(instant),
                        TurnWait::Over => match self.permits.check(permit, around.boot_ms) {
                            Ok(()) => RunnerAction::Ask(Request::Page {
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
        around: &mut WorkerEnvironment<'_>,
    ) {
        let wall_ms = around.now.wall_ms;
        let mut entry = around.cache.robots(origin, wall_ms).ok().flatten();
        if let Some(entry) = &mut entry {
            around.judge.on_cache_hit(
                site_number(site),
                around.process,
                entry,
                around.now_ms,
                wall_ms,
            );
            if around.is_sabotaged_by(Sabotage::CachedRobotsDoNotExpire) {
                entry.expires_at_ms = i64::MAX;
            }
        }
        check.note_cache_entry(entry.as_ref(), self.robots_knowledge(), around.now);
    }

    /// Acts on the decision whether a page may be fetched: the runner waits for the page's turn, or the task ends.
    fn apply_permission(
        &self,
        permission: Permission,
        task: &Task,
        around: &WorkerEnvironment<'_>,
    ) -> Result<RunnerStage, RunnerAction> {
        match permission {
            Permission::Allowed { delay, turn } => Ok(RunnerStage::Permitted {
                delay,
                turn,
                decided_ms: around.now_ms,
            }),
            Permission::Refused { outcome, evidence } => {
                let sites = self.sites.borrow();
                let was_requested = evidence.is_some();
                Err(RunnerAction::Finish(Box::new(FinishedTask {
                    task: task.clone(),
                    outcome,
                    status: None,
                    next_start: sites.next_start_after_refusal(&task.site, was_requested),
                    delay: None,
                    evidence,
                })))
            }
            Permission::NotAsked => Err(RunnerAction::GiveBack(unstarted_return(task, None))),
            Permission::CutShort => Err(RunnerAction::GiveBack(self.return_task(
                task,
                self.politeness.delay(),
                around,
            ))),
        }
    }

    fn poll_turn(
        &self,
        turn: Turn,
        task: &Task,
        permit: &Permit,
        around: &WorkerEnvironment<'_>,
    ) -> TurnWait {
        if self.draining || permit.is_recalled() {
            return TurnWait::CalledBack;
        }
        match self.sites.borrow().next_start(&task.site, turn) {
            Some(next) if next > around.now.instant => TurnWait::Until(next),
            _ => TurnWait::Over,
        }
    }

    fn return_task(
        &self,
        task: &Task,
        delay: Duration,
        around: &WorkerEnvironment<'_>,
    ) -> TaskReturned {
        let mut sites = self.sites.borrow_mut();
        let clock = sites.note_cut_short(&task.site, delay, around.now);
        TaskReturned {
            cause: ReturnCause::CutShort,
            ..unstarted_return(task, Some(clock))
        }
    }

    fn robots_knowledge(&self) -> Knowledge<'_> {
        Knowledge {
            politeness: &self.politeness,
            sites: &self.sites,
            robots: &self.robots,
        }
    }

    /// Handles the answer to a site's request. If a task ends because of the answer, returns the action that ends it.
    pub(crate) fn apply_answer(
        &mut self,
        number: usize,
        around: &mut WorkerEnvironment<'_>,
    ) -> Option<RunnerAction> {
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
                .on_answer(number, request, around.process, response, times);
        }
        let over = match &mut runner.stage {
            RunnerStage::Checking(check) => {
                let response = match is_cut_short {
                    true => Err(Denied::CutShort),
                    false => Ok(robots_response(pending.response, around)),
                };
                check.note_response(response, self.robots_knowledge(), around.now);
                if around.is_sabotaged_by(Sabotage::RefusalsMoveNoClock) && has_failed(check) {
                    self.sites.borrow_mut().forget_back_off(&runner.task.site);
                }
                None
            }
            RunnerStage::Permitted { delay, .. } => {
                let delay = *delay;
                Some(match is_cut_short {
                    true => RunnerAction::GiveBack(self.return_task(&runner.task, delay, around)),
                    false => RunnerAction::Finish(Box::new(self.finish_task(
                        &runner.task,
                        delay,
                        &pending,
                        around,
                    ))),
                })
            }
        };
        if around.is_sabotaged_by(Sabotage::BackOffIsForgotten) {
            self.sites.borrow_mut().forget_back_off(&runner.task.site);
        }
        if over.is_none() {
            self.runners.insert(number, runner);
        }
        over
    }

    fn finish_task(
        &self,
        task: &Task,
        delay: Duration,
        pending: &Pending,
        around: &WorkerEnvironment<'_>,
    ) -> FinishedTask {
        let mut sites = self.sites.borrow_mut();
        let pace = self.politeness.pace(delay);
        let answered = Answered {
            started: pending.started,
            at: around.now.instant,
            answer: pending.response.answer,
            page: Some(PageKey::from_url(&task.url)),
        };
        sites.note_page_answer(&task.site, answered, pace);
        FinishedTask {
            task: task.clone(),
            outcome: pending.response.outcome,
            status: pending.response.status,
            next_start: sites.next_start(&task.site, Turn::Page(delay)),
            delay: Some(delay),
            evidence: failure_evidence(task, &pending.response),
        }
    }
}

/// The evidence that a worker reports about a failed page, such as `the server returned 503`.
fn failure_evidence(task: &Task, response: &Response) -> Option<Evidence> {
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
    let step = check.next_step();
    matches!(step, Step::Decided(Permission::Refused { evidence, .. }) if evidence.is_some())
}

fn robots_response(response: Response, around: &WorkerEnvironment<'_>) -> RobotsResponse {
    let allows_all = around.is_sabotaged_by(Sabotage::FailuresOfRobotsAllowEverything);
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
