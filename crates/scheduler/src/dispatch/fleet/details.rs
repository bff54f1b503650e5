//! Data that the fleet keeps about its supervisors to show to people.

use webfill_wire::SupervisorReport;

use super::Fleet;
use crate::caller::Caller;
use crate::dispatch::supervisor::SupervisorDetails;

/// The maximum length of the texts in a report, in characters.
const MOST_CHARACTERS: usize = 300;

impl Fleet {
    /// Keeps a report of a supervisor about itself. A report of another session is ignored.
    pub(crate) fn note_report(&mut self, peer: &Caller, mut report: SupervisorReport, now_ms: i64) {
        let Some(supervisor) = self.supervisor_in_session(peer, report.session) else {
            return;
        };
        report.webfill = truncate(&report.webfill);
        report.holds = report.holds.as_deref().map(truncate);
        supervisor.particulars.report = Some((report, now_ms));
    }

    /// Notes the address of a connected supervisor.
    pub(crate) fn note_address(&mut self, peer: &Caller, address: String) {
        let name = self.names.get(peer);
        if let Some(supervisor) = name.and_then(|name| self.supervisors.get_mut(name)) {
            supervisor.particulars.address = Some(address);
        }
    }

    pub(crate) fn supervisor_details(&self, name: &str) -> Option<&SupervisorDetails> {
        self.supervisors.get(name).map(|found| &found.particulars)
    }
}

fn truncate(text: &str) -> String {
    text.chars().take(MOST_CHARACTERS).collect()
}
