//! A reload: other mappings and settings are in force from the next commit on.

use webfill_api::Refusal;
use webfill_wire::DispatcherToSupervisor;

use super::Core;
use crate::effects::AuditedAction;
use crate::effects::OutgoingMessage;
use crate::reload::{ReloadAsked, ReloadEnded, Reloaded, answer};

impl Core {
    /// Somebody asks for a reload; the caller of the core reads the files.
    pub fn ask_reload(&mut self, asked: ReloadAsked) {
        self.reloads_asked.push(asked);
    }

    /// Applies what was read, and answers who has asked. Something with a fault changes nothing.
    pub fn finish_reload(&mut self, ended: ReloadEnded, now_ms: i64) {
        let told = match ended.found {
            Ok(reloaded) => {
                let is_changed = reloaded.mappings.version != self.mappings.version;
                let told = answer(&ended.asked, &reloaded, is_changed);
                self.use_reloaded(*reloaded, is_changed);
                told
            }
            Err(fault) => {
                tracing::error!(
                    event = "reload_refused",
                    reason = fault.message,
                    "nothing was changed by a reload"
                );
                let why = format!("nothing was changed: {}", fault.message);
                let told = Refusal::new("$", why).answer();
                self.audit_refused_later(
                    ended.asked.who,
                    AuditedAction::plain("reload"),
                    &told,
                    now_ms,
                );
                told
            }
        };
        if let Some(client) = ended.asked.client {
            self.outgoing.push(OutgoingMessage::ToClient(client, told));
        }
    }

    fn use_reloaded(&mut self, reloaded: Reloaded, is_changed: bool) {
        tracing::info!(
            event = "reloaded",
            mappings = reloaded.mappings.version,
            changed = reloaded.changed.join(", "),
            needs_restart = reloaded.needs_restart.join(", "),
            "mappings and settings were read again"
        );
        self.frontier
            .change_settings(reloaded.retries, reloaded.backoff, reloaded.excluded);
        if is_changed {
            self.mappings = reloaded.mappings;
            self.tell_of_mappings();
        }
    }

    /// Tells all connected supervisors which mappings are in force.
    fn tell_of_mappings(&mut self) {
        let names: Vec<String> = self
            .dispatch
            .supervisors()
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in names {
            let Some((peer, session, number)) = self.dispatch.address(&name) else {
                continue;
            };
            let message = DispatcherToSupervisor::MappingsChanged {
                session,
                number,
                mappings: self.mappings.version.clone(),
            };
            self.send_to_supervisor(&peer, message);
        }
    }
}
