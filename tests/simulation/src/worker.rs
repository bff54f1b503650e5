//! A simulated worker: waits for the clocks of its sites, asks for robots.txt and pages, and looks
//! at its lease right before each request, as the real one does. It learns of the web only what
//! the web tells, and knows nothing of other workers but a cache of robots.txt files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use webfill_wire::{
    Outcome, RecallScope, ReturnCause, SiteClock, SupervisorToWorker, Task, TaskDone, TaskReturned,
    WorkerToSupervisor,
};

use crate::web::Request;

/// A process of one slot.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) slot: u16,
    pub(crate) incarnation: u32,
    pub(crate) is_alive: bool,
    default_delay_ms: u64,
    lease_until_ms: u64,
    pub(crate) draining: bool,
    sites: BTreeMap<usize, Site>,
    pub(crate) robots: BTreeSet<usize>,
    /// Pages that are being saved.
    pub(crate) saving: usize,
}

/// One site's runner.
#[derive(Debug, Default)]
struct Site {
    queue: VecDeque<Task>,
    step: Step,
    last_ms: Option<u64>,
    last_page_ms: Option<u64>,
    not_before_ms: u64,
    delay_ms: u64,
    inherited: bool,
}

#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    Waiting {
        task: Task,
        recalled: bool,
        after_robots: bool,
    },
    Asking {
        task: Task,
        recalled: bool,
        request: Request,
        started_ms: u64,
    },
}

/// What a runner does next.
#[derive(Debug)]
pub(crate) enum Next {
    Nothing,
    WakeAt(u64),
    Ask(Request),
    GiveBack(TaskReturned),
}

/// What an answer was to.
#[derive(Debug)]
pub(crate) enum Answered {
    Nothing,
    Robots,
    Page(Task),
    /// It was not waited for: the worker had been stopped for too long.
    Returned(TaskReturned),
}

impl Worker {
    pub(crate) fn start(&mut self, slot: u16, default_delay_ms: u64) {
        *self = Worker {
            slot,
            incarnation: self.incarnation + 1,
            is_alive: true,
            default_delay_ms,
            ..Worker::default()
        };
    }

    pub(crate) fn says(
        &self,
        done: Vec<TaskDone>,
        returned: Vec<TaskReturned>,
        ready: bool,
    ) -> WorkerToSupervisor {
        WorkerToSupervisor {
            slot: self.slot,
            incarnation: self.incarnation,
            done,
            returned,
            recalled: Vec::new(),
            ready,
        }
    }

    /// Takes a message. Returns the sites to look at, and what is said at once.
    pub(crate) fn take(
        &mut self,
        message: SupervisorToWorker,
        now_ms: u64,
    ) -> (Vec<usize>, WorkerToSupervisor) {
        let mut says = self.says(Vec::new(), Vec::new(), false);
        match message {
            SupervisorToWorker::Mappings(_)
            | SupervisorToWorker::Crawl(_)
            | SupervisorToWorker::ForgetCrawls => {}
            SupervisorToWorker::LeaseUntil { boot_ms } => {
                self.lease_until_ms = self.lease_until_ms.max(boot_ms);
            }
            SupervisorToWorker::Inherited { sites } => {
                for name in sites {
                    let default_delay_ms = self.default_delay_ms;
                    let site = self.site(site_number(&name), now_ms, default_delay_ms);
                    site.another_asked(now_ms);
                    site.inherited = true;
                }
            }
            SupervisorToWorker::Tasks(tasks) => {
                let added = tasks.into_iter().map(|task| self.add(task, now_ms));
                let touched: BTreeSet<usize> = added.collect();
                return (touched.into_iter().collect(), says);
            }
            SupervisorToWorker::Recall { recall, scope } => {
                // There is no back-off to forget here.
                says.returned = self.call_back(&scope);
                says.recalled.push(recall);
                return (self.sites.keys().copied().collect(), says);
            }
            SupervisorToWorker::Drain => {
                self.draining = true;
                says.returned = self.call_back(&RecallScope::default());
                return (self.sites.keys().copied().collect(), says);
            }
        }
        (Vec::new(), says)
    }

    fn call_back(&mut self, scope: &RecallScope) -> Vec<TaskReturned> {
        let mut back = Vec::new();
        for site in self.sites.values_mut() {
            let is_meant = |task: &Task| scope.holds(task.crawl, &task.site, task.priority);
            let queue = std::mem::take(&mut site.queue);
            let (meant, others): (Vec<Task>, Vec<Task>) = queue.into_iter().partition(is_meant);
            site.queue = others.into();
            back.extend(meant.iter().map(|task| unstarted(task, None)));
            if let Step::Waiting { task, recalled, .. } | Step::Asking { task, recalled, .. } =
                &mut site.step
            {
                *recalled |= is_meant(task);
            }
        }
        back
    }

    fn add(&mut self, task: Task, now_ms: u64) -> usize {
        let number = site_number(&task.site);
        let default_delay_ms = self.default_delay_ms;
        let site = self.site(number, now_ms, default_delay_ms);
        if task.wait_ms > 0 {
            site.not_before_ms = site.not_before_ms.max(now_ms + u64::from(task.wait_ms));
        }
        if let Some(ago_ms) = task.last_request_ago_ms {
            site.another_asked(now_ms.saturating_sub(ago_ms.into()));
        }
        let higher = |queued: &Task| queued.priority >= task.priority;
        let place = site.queue.partition_point(higher);
        site.queue.insert(place, task);
        number
    }

    /// A site that holds nothing back has been forgotten meanwhile.
    fn site(&mut self, number: usize, now_ms: u64, default_delay_ms: u64) -> &mut Site {
        let site = self.sites.entry(number).or_default();
        if site.is_forgettable(now_ms) {
            *site = Site {
                delay_ms: default_delay_ms,
                ..Site::default()
            };
        }
        site
    }

    /// What a site's runner does now; call again until there is nothing.
    pub(crate) fn advance(
        &mut self,
        number: usize,
        delay_of: impl Fn(&Task) -> u64,
        knows_robots: bool,
        boot_ms: u64,
        now_ms: u64,
    ) -> Next {
        let draining = self.draining;
        let lease_until_ms = self.lease_until_ms;
        let Some(site) = self.sites.get_mut(&number) else {
            return Next::Nothing;
        };
        if matches!(site.step, Step::Idle) {
            let Some(task) = site.queue.pop_front() else {
                return Next::Nothing;
            };
            site.step = Step::Waiting {
                task,
                recalled: false,
                after_robots: false,
            };
        }
        if !matches!(site.step, Step::Waiting { .. }) {
            return Next::Nothing;
        }
        let Step::Waiting {
            task,
            recalled,
            after_robots,
        } = std::mem::take(&mut site.step)
        else {
            return Next::Nothing;
        };
        let site_delay_ms = delay_of(&task);
        let (request, next_ms) = match (knows_robots, after_robots) {
            (false, _) => (Request::Robots, site.next_ms(site.last_ms, site.delay_ms)),
            (true, false) => (page(&task), site.next_ms(site.last_ms, site_delay_ms)),
            (true, true) => (page(&task), site.next_ms(site.last_page_ms, site_delay_ms)),
        };
        let called_back = draining || recalled;
        let due = next_ms <= now_ms;
        if called_back || (due && boot_ms >= lease_until_ms) {
            let clock = knows_robots.then(|| site.clock(site_delay_ms, now_ms));
            return Next::GiveBack(unstarted(&task, clock));
        }
        site.step = if due {
            Step::Asking {
                task,
                recalled,
                request,
                started_ms: now_ms,
            }
        } else {
            Step::Waiting {
                task,
                recalled,
                after_robots,
            }
        };
        if due {
            Next::Ask(request)
        } else {
            Next::WakeAt(next_ms)
        }
    }

    /// The answer of a site is looked at.
    pub(crate) fn answered(
        &mut self,
        number: usize,
        delay_of: impl Fn(&Task) -> u64,
        longest_request_ms: u64,
        now_ms: u64,
    ) -> Answered {
        let default_delay_ms = self.default_delay_ms;
        let Some(site) = self.sites.get_mut(&number) else {
            return Answered::Nothing;
        };
        let Step::Asking {
            task,
            recalled,
            request,
            started_ms,
        } = std::mem::take(&mut site.step)
        else {
            return Answered::Nothing;
        };
        let site_delay_ms = delay_of(&task);
        let cut_short = now_ms - started_ms > longest_request_ms;
        if request == Request::Robots {
            if cut_short {
                return Answered::Returned(unstarted(&task, None));
            }
            site.last_ms = Some(now_ms);
            site.delay_ms = default_delay_ms;
            site.step = Step::Waiting {
                task,
                recalled,
                after_robots: true,
            };
            self.robots.insert(number);
            return Answered::Robots;
        }
        site.another_asked(now_ms);
        if cut_short {
            return Answered::Returned(TaskReturned {
                cause: ReturnCause::CutShort,
                ..unstarted(&task, Some(site.clock(site_delay_ms, now_ms)))
            });
        }
        site.delay_ms = site_delay_ms;
        site.inherited = false;
        Answered::Page(task)
    }

    /// Sites with a request under way.
    pub(crate) fn asking(&self) -> Vec<usize> {
        let asking = |site: &Site| matches!(site.step, Step::Asking { .. });
        let sites = self.sites.iter().filter(|(_, site)| asking(site));
        sites.map(|(number, _)| *number).collect()
    }

    /// Drained: nothing is under way any more.
    pub(crate) fn has_drained(&self) -> bool {
        let idle = |site: &Site| matches!(site.step, Step::Idle) && site.queue.is_empty();
        self.draining && self.saving == 0 && self.sites.values().all(idle)
    }
}

impl Site {
    fn another_asked(&mut self, at_ms: u64) {
        self.last_ms = self.last_ms.max(Some(at_ms));
        self.last_page_ms = self.last_page_ms.max(Some(at_ms));
    }

    fn next_ms(&self, last_ms: Option<u64>, delay_ms: u64) -> u64 {
        let paced = last_ms.map_or(0, |last_ms| last_ms + delay_ms);
        paced.max(self.not_before_ms)
    }

    fn is_forgettable(&self, now_ms: u64) -> bool {
        let idle = matches!(self.step, Step::Idle) && self.queue.is_empty();
        idle && !self.inherited && self.next_ms(self.last_ms, self.delay_ms) <= now_ms
    }

    fn clock(&self, delay_ms: u64, now_ms: u64) -> SiteClock {
        let next_ms = self.next_ms(self.last_ms, delay_ms);
        SiteClock {
            next_in_ms: next_ms.saturating_sub(now_ms) as u32,
            delay_ms: Some(delay_ms as u32),
        }
    }
}

/// How a page's task ends, saved at `now_ms`. Without links it was answered by an error.
pub(crate) fn done(
    task: &Task,
    links: Option<Vec<String>>,
    answered_ms: u64,
    delay_ms: u64,
    now_ms: u64,
) -> TaskDone {
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: match links {
            Some(_) => Outcome::Ok,
            None => Outcome::HttpError,
        },
        status_code: Some(if links.is_some() { 200 } else { 503 }),
        body_bytes: 1,
        fields: 0,
        links: links.unwrap_or_default(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock {
            next_in_ms: (answered_ms + delay_ms).saturating_sub(now_ms) as u32,
            delay_ms: Some(delay_ms as u32),
        },
    }
}

fn unstarted(task: &Task, clock: Option<SiteClock>) -> TaskReturned {
    TaskReturned {
        task: task.task,
        delivery: task.delivery,
        cause: ReturnCause::Unstarted,
        clock,
    }
}

pub(crate) fn site_name(number: usize) -> String {
    format!("s{number}.example")
}

pub(crate) fn url(site: usize, page: usize) -> String {
    format!("http://{}/{page}", site_name(site))
}

fn site_number(name: &str) -> usize {
    let number = name
        .strip_prefix('s')
        .and_then(|rest| rest.split('.').next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a site of ours")
}

fn page(task: &Task) -> Request {
    let page = task.url.rsplit('/').next();
    Request::Page(
        task.crawl,
        page.and_then(|page| page.parse().ok())
            .expect("a page of ours"),
    )
}
