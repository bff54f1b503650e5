//! The methods that pass inputs from the process to the core. Each calls the part that handles the input, where the
//! effect is documented.

use serde_json::Value;
use webfill_changes::PageCheck;
use webfill_notifications::{DeliveryEnd, Permissions};
use webfill_wire::keys::ListChange;
use webfill_wire::{CrawlKey, SupervisorOutcomes, SupervisorToDispatcher};

use super::{Core, auditing, context, handing_out, outcomes, recalls, reloading, supervisors};
use crate::caller::Caller;
use crate::effects::{BackfillWrite, ChangesAnswer, Client};
use crate::frontier::{Candidate, FrontierError, TaskId};
use crate::reload::{ReloadRequest, ReloadResult};
use crate::watch_sources::WatchSources;

impl Core {
    /// Notes that a reload was requested. The process reads the files.
    pub fn request_reload(&mut self, asked: ReloadRequest) {
        self.reloads_asked.push(asked);
    }

    pub fn start_drain(&mut self) {
        context::start_drain(&mut self.cx)
    }

    pub fn seconds_until_admission(&self, now_ms: i64) -> i64 {
        self.cx.seconds_until_admission(now_ms)
    }

    pub fn hold_reason(&self, now_ms: i64) -> Option<String> {
        self.cx.hold_reason(now_ms)
    }

    pub fn hand_out(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        handing_out::hand_out(&mut self.cx, now_ms)
    }

    pub fn start_notifications(
        &mut self,
        permissions: Permissions,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.notifications
            .start_notifications(&mut self.cx, &self.watches, permissions, now_ms)
    }

    pub fn on_delivery_ended(
        &mut self,
        ended: &DeliveryEnd,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.notifications
            .on_delivery_ended(&mut self.cx, &self.watches, ended, now_ms)
    }

    pub fn on_changes_answered(
        &mut self,
        answer: ChangesAnswer,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.notifications
            .on_changes_answered(&mut self.cx, &mut self.watches, answer, now_ms)
    }

    pub fn handle_outcomes(
        &mut self,
        outcomes: SupervisorOutcomes,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        outcomes::handle_outcomes(&mut self.cx, outcomes, now_ms)
    }

    pub fn on_backfill_applied(
        &mut self,
        backfill: &BackfillWrite,
        resolved: bool,
        links: &[String],
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        outcomes::on_backfill_applied(&mut self.cx, backfill, resolved, links, now_ms)
    }

    pub fn requeue_dropped_page(
        &mut self,
        backfill: &BackfillWrite,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        outcomes::requeue_dropped_page(&mut self.cx, backfill, now_ms)
    }

    pub fn feed(
        &mut self,
        crawl: CrawlKey,
        candidates: &[Candidate<'_>],
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        outcomes::feed_candidates(&mut self.cx, crawl, candidates, now_ms)
    }

    pub fn on_page_retracted(
        &mut self,
        (crawl, task): (CrawlKey, TaskId),
        open: &[String],
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        outcomes::retraction::on_page_retracted(&mut self.cx, (crawl, task), open, now_ms)
    }

    pub fn expire_recalls(&mut self, until_ms: i64) {
        recalls::expire_recalls(&mut self.cx, until_ms)
    }

    pub fn finish_reload(&mut self, ended: ReloadResult, now_ms: i64) {
        reloading::finish_reload(&mut self.cx, ended, now_ms)
    }

    pub fn audit_signal(&mut self, action: &'static str, now_ms: i64) {
        auditing::audit_signal(&mut self.cx, action, now_ms)
    }

    pub fn audit_list_change(&mut self, change: &ListChange, now_ms: i64) {
        auditing::audit_list_change(&mut self.cx, change, now_ms)
    }

    pub fn is_feeding(&self) -> bool {
        self.feeds.is_feeding()
    }

    pub fn is_feeding_of(&self, client: &Client) -> bool {
        self.feeds.is_feeding_of(client)
    }

    pub fn advance_feeds(&mut self, now_ms: i64) -> Result<bool, FrontierError> {
        self.feeds
            .advance_feeds(&mut self.cx, &mut self.closing, now_ms)
    }

    pub fn on_site_states_written(&mut self, last: i64) -> Result<(), FrontierError> {
        self.site_state_writes
            .on_site_states_written(&mut self.cx, last)
    }

    pub fn handle_supervisor_message(
        &mut self,
        peer: &Caller,
        message: SupervisorToDispatcher,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        supervisors::handle_supervisor_message(
            &mut self.cx,
            &mut self.drains,
            peer,
            message,
            now_ms,
        )
    }

    pub fn set_address_of(&mut self, peer: &Caller, address: String) {
        supervisors::note_address_of(&mut self.cx, peer, address)
    }

    pub fn start_watches(
        &mut self,
        sources: WatchSources,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.watches.start_watches(&mut self.cx, sources, now_ms)
    }

    pub fn on_pages_checked(
        &mut self,
        checks: &[PageCheck],
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.watches
            .on_pages_checked(&mut self.cx, &mut self.notifications, checks, now_ms)
    }

    pub fn run_state(&self, name: &str, run: u64) -> Value {
        self.watches.run_state(name, run)
    }

    pub fn on_feeder_ended(
        &mut self,
        name: &str,
        run: u64,
        why: Option<String>,
    ) -> Result<(), FrontierError> {
        self.watches.on_feeder_ended(&mut self.cx, name, run, why)
    }
}
