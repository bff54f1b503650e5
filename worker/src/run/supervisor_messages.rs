//! Handles the messages of the supervisor to its worker: mappings, settings of crawls, tasks, the end of the lease,
//! recalls, and the order to drain.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use webfill_mapping::{MappingSet, Source};
use webfill_service::Fault;
use webfill_store::Store;
use webfill_wire::{
    CrawlSettings, MappingSource, RecallScope, ReturnCause, SupervisorToWorker, Task, TaskReturned,
    codec,
};

use crate::extract::Work;
use crate::journey::Journey;
use crate::mapping_rules::MappingSetRules;
use crate::now::Now;
use crate::supervisor_reporter::SupervisorReporter;

/// How long the confirmation of a recall waits until tasks are given back.
const RECALL_GRACE: Duration = Duration::from_millis(100);

/// Handles the supervisor's messages.
pub(super) struct Worker {
    pub(super) journey: Rc<Journey>,
    pub(super) store: Arc<dyn Store>,
    pub(super) reporter: SupervisorReporter,
    /// The number of runners: loops that process the tasks of one site each.
    pub(super) runners: Rc<Cell<usize>>,
    pub(super) runner_ended: Rc<Notify>,
}

impl Worker {
    pub(super) async fn handle_message(&mut self, frame: &[u8]) -> Result<(), Fault> {
        match codec::decode(frame) {
            Ok(SupervisorToWorker::Mappings(sources)) => self.use_mappings(sources).await?,
            Ok(SupervisorToWorker::SiteScripts(scripts)) => {
                self.journey
                    .scripted_pages
                    .borrow_mut()
                    .update_site(scripts);
            }
            Ok(SupervisorToWorker::Crawl(crawl)) => self.update_crawl(crawl),
            Ok(SupervisorToWorker::ForgetCrawls) => self.drop_unneeded_crawls(),
            Ok(SupervisorToWorker::Tasks(tasks)) => {
                for task in tasks {
                    self.queue_task(task);
                }
            }
            Ok(SupervisorToWorker::LeaseUntil { boot_ms }) => {
                self.journey.gate.open_until(boot_ms);
            }
            Ok(SupervisorToWorker::Inherited { sites }) => self.inherit_sites(sites),
            Ok(SupervisorToWorker::Recall { recall, scope }) => {
                self.journey.gate.recall(&scope);
                if let Some(site) = scope.site.as_deref().filter(|_| scope.forget) {
                    self.journey.sites.borrow_mut().forget_back_off(site);
                    self.journey.resolver.forget_failures(site);
                    self.journey.scripted_pages.borrow_mut().forget(site);
                }
                self.reporter.report_returned(self.take_back_queued(&scope));
                self.confirm_recall(recall, scope);
            }
            Ok(SupervisorToWorker::Drain) => {
                self.journey.interrupt.drain();
                let returned = self.take_back_queued(&RecallScope::default());
                self.reporter.report_returned(returned);
            }
            Err(error) => {
                tracing::error!(event = "unreadable_message", %error, "a message of the supervisor was dropped");
            }
        }
        Ok(())
    }

    async fn use_mappings(&self, sources: Vec<MappingSource>) -> Result<(), Fault> {
        let sources = sources.into_iter().map(|source| Source {
            name: source.name,
            text: source.text,
        });
        let set = MappingSet::from_sources(sources.collect())
            .map_err(|faults| Fault::error(format!("the dispatcher's mappings: {faults}")))?;
        self.journey.counts.use_mappings(&set);
        let set = Arc::new(set);
        let rules = Arc::new(MappingSetRules(Arc::clone(&set)));
        self.store.set_mapping_rules(rules);
        *self.journey.mappings.borrow_mut() = Some(Arc::clone(&set));
        let _ = self.journey.extraction.send(Work::Mappings(set)).await;
        Ok(())
    }

    fn update_crawl(&mut self, settings: CrawlSettings) {
        let mut crawls = self.journey.crawls.borrow_mut();
        crawls.insert(settings.key, Arc::new(settings));
    }

    /// Forgets the settings of all crawls that no queued task needs. A running task holds its own
    /// reference.
    fn drop_unneeded_crawls(&self) {
        let needed = self.journey.sites.borrow().queued_crawls();
        let mut crawls = self.journey.crawls.borrow_mut();
        crawls.retain(|key, _| needed.contains(key));
    }

    fn queue_task(&self, task: Task) {
        let journey = Rc::clone(&self.journey);
        let site = task.site.clone();
        let default_delay = journey.politeness.delay();
        journey.counts.note_task_arrived(task.task);
        if !journey
            .sites
            .borrow_mut()
            .add(task, default_delay, Now::read())
        {
            return;
        }
        let runners = Rc::clone(&self.runners);
        let ended = Rc::clone(&self.runner_ended);
        runners.set(runners.get() + 1);
        tokio::task::spawn_local(async move {
            journey.run_site(site).await;
            runners.set(runners.get() - 1);
            ended.notify_one();
        });
    }

    fn inherit_sites(&self, sites: Vec<String>) {
        let default_delay = self.journey.politeness.delay();
        self.journey
            .sites
            .borrow_mut()
            .inherit(sites, default_delay, Now::read());
    }

    /// Confirms a recall: no task in its scope can start any more. Tasks that were about to start are
    /// given back first if that takes at most [`RECALL_GRACE`], so that the dispatcher's counts of
    /// returned tasks are right when the confirmation arrives.
    fn confirm_recall(&self, recall: u64, scope: RecallScope) {
        let (journey, reporter) = (Rc::clone(&self.journey), self.reporter.clone());
        tokio::task::spawn_local(async move {
            let deadline = Instant::now() + RECALL_GRACE;
            while !journey.gate.is_settled(&scope) && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            reporter.confirm_recall(recall);
        });
    }

    /// Removes the queued tasks in the recall's scope, and returns them to be given back. Running tasks continue to
    /// their end.
    fn take_back_queued(&self, scope: &RecallScope) -> Vec<TaskReturned> {
        self.journey.interrupt.wake_waiting();
        let queued = self.journey.sites.borrow_mut().take_queued(scope);
        for task in &queued {
            self.journey.counts.note_task_left(task.task);
        }
        let returned = queued.iter().map(|task| TaskReturned {
            task: task.task,
            delivery: task.delivery,
            cause: ReturnCause::Unstarted,
            clock: None,
            address: None,
        });
        returned.collect()
    }

    pub(super) fn is_drained(&self) -> bool {
        self.journey.interrupt.is_draining() && self.runners.get() == 0
    }
}
