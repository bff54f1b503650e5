//! Entries of the audit log for actions without a request, and for failures after the answer has left.

use serde_json::Value;
use webfill_wire::keys::ListChange;

use super::context::Context;
use crate::effects::{ActionEnd, AuditedAction};
use crate::requester::{Channel, SenderInfo};

/// Logs an action that this process carries out on a signal.
pub(super) fn audit_signal(cx: &mut Context, action: &'static str, now_ms: i64) {
    let audited = Some(AuditedAction::without_subject(action));
    cx.audit(SenderInfo::signal(), audited, ActionEnd::Begun, now_ms);
}

/// Logs that a started action has failed.
pub(super) fn audit_failed_action(
    cx: &mut Context,
    who: SenderInfo,
    audited: AuditedAction,
    answer: &Value,
    now_ms: i64,
) {
    cx.audit(who, Some(audited), ActionEnd::from_answer(answer), now_ms);
}

/// Logs that a changed list of keys is in force.
pub(super) fn audit_list_change(cx: &mut Context, change: &ListChange, now_ms: i64) {
    let who = SenderInfo {
        way: Channel::File,
        ..SenderInfo::default()
    };
    for audited in AuditedAction::from_list_change(change) {
        cx.audit(who.clone(), Some(audited), ActionEnd::Done, now_ms);
    }
}
