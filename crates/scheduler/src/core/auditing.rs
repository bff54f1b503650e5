//! Entries of the audit log for actions without a request, and for failures after the answer has left.

use serde_json::Value;
use webfill_wire::keys::ListChange;

use super::context::Context;
use crate::effects::{ActionEnd, AuditedAction};
use crate::requester::{Way, Who};

/// Logs an action that this process carries out on a signal.
pub(super) fn audit_signal(cx: &mut Context, action: &'static str, now_ms: i64) {
    let audited = Some(AuditedAction::plain(action));
    cx.audit(Who::signal(), audited, ActionEnd::Begun, now_ms);
}

/// Logs that a started action has failed.
pub(super) fn audit_late_refusal(
    cx: &mut Context,
    who: Who,
    audited: AuditedAction,
    answer: &Value,
    now_ms: i64,
) {
    cx.audit(who, Some(audited), ActionEnd::of_answer(answer), now_ms);
}

/// Logs that a changed list of keys is in force.
pub(super) fn audit_list_change(cx: &mut Context, change: &ListChange, now_ms: i64) {
    let who = Who {
        way: Way::File,
        ..Who::default()
    };
    for audited in AuditedAction::of_list(change) {
        cx.audit(who.clone(), Some(audited), ActionEnd::Done, now_ms);
    }
}
