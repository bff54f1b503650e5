//! Reloads: new mappings and settings that are in force from the next commit on.

use webfill_api::Refusal;
use webfill_wire::DispatcherToSupervisor;

use crate::core::auditing;
use crate::core::context::Context;
use crate::effects::AuditedAction;
use crate::effects::OutgoingMessage;
use crate::reload::{ReloadResult, Reloaded, reload_answer};

/// Applies the files that were read, and answers the request. If any of them has a fault, nothing changes.
pub(super) fn finish_reload(cx: &mut Context, ended: ReloadResult, now_ms: i64) {
    let reply = match ended.found {
        Ok(reloaded) => {
            let is_changed = reloaded.mappings.version != cx.mappings.version;
            let reply = reload_answer(&ended.asked, &reloaded, is_changed);
            apply_reloaded(cx, *reloaded, is_changed);
            reply
        }
        Err(fault) => {
            tracing::error!(
                event = "reload_refused",
                reason = fault.message,
                "reload refused, nothing changed"
            );
            let why = format!("nothing changed: {}", fault.message);
            let reply = Refusal::new("$", why).to_answer();
            auditing::audit_failed_action(
                cx,
                ended.asked.who,
                AuditedAction::without_subject("reload"),
                &reply,
                now_ms,
            );
            reply
        }
    };
    if let Some(client) = ended.asked.client {
        cx.outgoing.push(OutgoingMessage::ToClient(client, reply));
    }
}

fn apply_reloaded(cx: &mut Context, reloaded: Reloaded, is_changed: bool) {
    tracing::info!(
        event = "reloaded",
        mappings = reloaded.mappings.version,
        changed = reloaded.changed.join(", "),
        needs_restart = reloaded.needs_restart.join(", "),
        "mappings and settings reloaded"
    );
    cx.frontier
        .change_settings(reloaded.retries, reloaded.backoff, reloaded.excluded);
    if is_changed {
        cx.mappings = reloaded.mappings;
        send_mappings_to_all(cx);
    }
}

/// Sends the mappings in force to all connected supervisors.
fn send_mappings_to_all(cx: &mut Context) {
    let names: Vec<String> = cx
        .dispatch
        .fleet
        .connected_lanes()
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in names {
        let Some((peer, session, number)) = cx.dispatch.fleet.next_message_address(&name) else {
            continue;
        };
        let message = DispatcherToSupervisor::MappingsChanged {
            session,
            number,
            mappings: cx.mappings.version.clone(),
        };
        cx.send_to_supervisor(&peer, message);
    }
}
