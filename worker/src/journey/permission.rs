//! Finds out whether a page may be fetched: loads the site's clock (the time of its next request), refuses unsafe
//! addresses, and checks robots.txt.

use webfill_urls::Url;
use webfill_wire::{Outcome, Task};

use super::robots_fetch;
use super::state::Journey;
use crate::now::Now;
use crate::permission::{Knowledge, Permission, PermissionCheck};
use crate::permits::Permit;
use crate::politeness::ClockOwner;
use crate::robots::Rules;
use crate::sites::Turn;

impl Journey {
    /// Whether a URL of the task's site may be fetched for the task; robots.txt is fetched if
    /// neither this worker nor the shared cache knows it.
    pub(super) async fn check_permission(
        &self,
        task: &Task,
        url: &Url,
        permit: &Permit,
    ) -> (Permission, Option<Rules>) {
        self.turns.look_up_clock(&task.site, permit).await;
        if self.politeness.ignore_robots && self.is_private_host(url, permit).await {
            let delay = self.politeness.delay_in_force(None, task.delay_ms);
            let turn = Turn::Page(delay);
            return (Permission::Allowed { delay, turn }, None);
        }
        if let Err(refusal) = self.resolver.check_literal(url) {
            tracing::debug!(event = "refused", url = url.as_str(), reason = %refusal, "unsafe address");
            let refused = Permission::Refused {
                outcome: Outcome::UnsafeAddress,
                evidence: None,
            };
            return (refused, None);
        }
        let looks_up_twice = self.politeness.clock == ClockOwner::Shared;
        let check =
            PermissionCheck::begin(task, url, looks_up_twice, self.knowledge(), Now::read());
        robots_fetch::run_check(self, check, &task.site, permit).await
    }

    /// Whether all addresses of the URL's host are private or loopback ones. Also false if the task is recalled or the
    /// worker drains meanwhile.
    async fn is_private_host(&self, url: &Url, permit: &Permit) -> bool {
        let _name = self.turns.look_up_host(url, permit).await;
        !self.interrupt.is_called_back(permit) && self.resolver.is_private_host(url).await
    }

    pub(super) fn knowledge(&self) -> Knowledge<'_> {
        Knowledge {
            politeness: &self.politeness,
            sites: &self.sites,
            robots: &self.robots,
        }
    }
}
