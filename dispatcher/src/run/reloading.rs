//! Reloads the settings: a signal or a client requests it, a separate thread reads them, and the loop applies them.

use std::sync::Arc;

use webfill_scheduler::reload::{ReloadRequest, ReloadResult};
use webfill_scheduler::requester::SenderInfo;
use webfill_service::signals;

use super::Process;

impl Process {
    /// Adds all changes of the allow lists since the last turn to the audit log.
    pub(super) fn audit_list_changes(&mut self) {
        let now_ms = self.clock.now_ms();
        for change in self.outbox.take_list_changes() {
            if !change.is_empty() {
                self.core.audit_list_change(&change, now_ms);
            }
        }
    }

    /// Requests a reload if a signal asked for it.
    pub(super) fn request_signalled_reload(&mut self) {
        if signals::take_reload_request() {
            self.core.audit_signal("reload", self.clock.now_ms());
            self.core.request_reload(ReloadRequest {
                client: None,
                who: SenderInfo::signal(),
                uuid: None,
            });
        }
    }

    pub(super) fn begin_reloads(&mut self, reloads: Vec<ReloadRequest>) {
        for asked in reloads {
            self.service_manager.notify_reloading();
            self.reloader.request_reload(asked);
        }
    }

    pub(super) fn finish_reload(&mut self, ended: ReloadResult) {
        match &ended.found {
            Ok(reloaded) => {
                let rules = Arc::clone(&reloaded.mapping_rules);
                self.extraction_health.set_mappings(rules.order().0);
                self.store_writer.set_mapping_rules(rules);
                self.protection.replace(reloaded.protection.clone());
                self.refused_reload = None;
            }
            Err(fault) => {
                // Nobody waits for the answer to a signal, so its refusal is printed.
                if ended.asked.client.is_none() {
                    webfill_service::say!(
                        "webfill: reload refused, nothing changed: {}",
                        fault.message
                    );
                }
                self.refused_reload = Some(fault.message.clone());
            }
        }
        self.core.finish_reload(ended, self.clock.now_ms());
        self.service_manager.notify_ready();
    }
}
