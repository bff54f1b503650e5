//! Due tasks are leased and leave to the owners of their sites.

use webfill_wire::{DispatcherToSupervisor, Task};

use super::Dispatcher;
use crate::dispatch::{Grant, LOOKAHEAD_MS};
use crate::frontier::{FrontierError, Leased};

impl Dispatcher {
    /// Leases tasks of sites that are due to supervisors with room.
    pub(crate) fn hand_out(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        if self.draining {
            return Ok(());
        }
        self.fill_window(now_ms)?;
        let mut budget = self.crawls.page_budget(&mut self.frontier)?;
        while budget > 0 {
            let Some(mut grant) = self.dispatch.next_grant(now_ms) else {
                break;
            };
            let most = usize::try_from(budget).unwrap_or(usize::MAX);
            grant.tasks = grant.tasks.min(most);
            budget -= self.hand_out_site(&grant, now_ms)? as u64;
        }
        self.limit_reached = budget == 0;
        for (site, clock) in self.dispatch.take_idle() {
            self.frontier.return_site(site, &clock)?;
        }
        Ok(())
    }

    pub(super) fn room_in_window(&self) -> usize {
        let in_window = self.dispatch.sites_in_window();
        self.terms.window_sites.saturating_sub(in_window)
    }

    /// Sites that will be due soon enter the window, while it has room.
    fn fill_window(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let room = self.room_in_window();
        let is_due = self
            .next_site_ms
            .is_some_and(|due_ms| due_ms - LOOKAHEAD_MS <= now_ms);
        if room == 0 || !is_due || self.dispatch.supervisor_count() == 0 {
            return Ok(());
        }
        for site in self.frontier.next_sites(now_ms + LOOKAHEAD_MS, room)? {
            self.dispatch.add_site(site);
        }
        self.next_site_ms = self.frontier.next_due_ms()?;
        Ok(())
    }

    fn hand_out_site(&mut self, grant: &Grant, now_ms: i64) -> Result<usize, FrontierError> {
        if let Some(clock) = &grant.new_owner {
            // In the same commit as its leases: whoever reads them must know who holds them.
            self.frontier.save_clock(grant.site, clock)?;
        }
        let batch = self.frontier.lease(grant.site, grant.tasks, now_ms)?;
        let leases: Vec<(u64, u32, usize)> = batch
            .tasks
            .iter()
            .map(|task| (task.task, task.attempt, task.url.len()))
            .collect();
        let priority = batch.tasks.last().map_or(0, |task| task.priority);
        self.dispatch
            .handed_out(grant, &leases, batch.left, priority);
        if !batch.tasks.is_empty() {
            self.send_tasks(grant, batch.tasks)?;
        }
        Ok(leases.len())
    }

    fn send_tasks(&mut self, grant: &Grant, leased: Vec<Leased>) -> Result<(), FrontierError> {
        let Some((peer, session, number)) = self.dispatch.address(&grant.supervisor) else {
            return Ok(());
        };
        let site = self.dispatch.site_name(grant.site);
        let site = site.unwrap_or_default().to_owned();
        let mut crawls = Vec::new();
        let mut tasks = Vec::with_capacity(leased.len());
        for task in leased {
            if self.dispatch.must_tell_crawl(&grant.supervisor, task.crawl) {
                crawls.push(self.crawls.settings(&mut self.frontier, task.crawl)?);
            }
            tasks.push(Task {
                task: task.task,
                attempt: task.attempt,
                crawl: task.crawl,
                url: task.url,
                site: site.clone(),
                depth: task.depth,
                wait_ms: grant.wait_ms,
                last_request_ago_ms: grant.last_request_ago_ms,
                parent: task.parent,
                records: task.records,
            });
        }
        let message = DispatcherToSupervisor::Tasks {
            session,
            number,
            crawls,
            tasks,
        };
        self.write_to(&peer, message);
        Ok(())
    }
}
