//! What a dispatcher does for the journal besides reading or adding records. It reports about itself, makes snapshots,
//! and removes records that are no longer needed.

use std::path::{Path, PathBuf};

use webfill_scheduler::frontier::FILE_NAME;
use webfill_scheduler::journal::{DispatcherReport, JournalBounds, Survey};
use webfill_service::Fault;

use crate::config::JournalSetup;
use crate::journal::JournalConnection;
use crate::snapshots::{SnapshotEnd, SnapshotThread};

/// How often a dispatcher reports about itself and reads the state of the group.
const SURVEY_EVERY_MS: u64 = 2_000;

/// The shortest time between two snapshots of one dispatcher.
const SNAPSHOT_EVERY_MS: u64 = 10_000;

pub(super) struct JournalUpkeep {
    setup: JournalSetup,
    state: PathBuf,
    bounds: JournalBounds,
    next_survey_ms: u64,
    next_snapshot_ms: u64,
    /// The snapshot that is being made.
    making: Option<SnapshotThread>,
}

impl JournalUpkeep {
    pub(super) fn new(setup: &JournalSetup, state: &Path) -> JournalUpkeep {
        JournalUpkeep {
            bounds: JournalBounds::new(setup.kept_bytes),
            setup: setup.clone(),
            state: state.to_owned(),
            next_survey_ms: 0,
            next_snapshot_ms: 0,
            making: None,
        }
    }

    pub(super) fn instance(&self) -> u64 {
        self.setup.instance
    }

    /// Counts records that were read or added, up to this number.
    pub(super) fn note_records(&mut self, bytes: u64, number: u64) {
        self.bounds.add(bytes, number);
    }

    /// Does the work that is due. It must be called several times in each lease. `record` is the last one that this
    /// dispatcher has applied or added.
    pub(super) fn on_tick(
        &mut self,
        connection: &JournalConnection,
        record: u64,
        serves: bool,
        now_ms: u64,
    ) -> Result<(), Fault> {
        if now_ms >= self.next_survey_ms {
            self.next_survey_ms = now_ms + SURVEY_EVERY_MS;
            connection.report_and_survey(DispatcherReport {
                instance: self.setup.instance,
                name: self.setup.name.clone(),
                record,
                serves,
            });
        }
        self.note_snapshot_end();
        if let Some(number) = self.bounds.take_cut_position() {
            connection.cut_before(number);
        }
        let is_free = self.making.is_none() && now_ms >= self.next_snapshot_ms;
        if is_free && self.bounds.is_snapshot_due(self.file_bytes(), serves) {
            self.next_snapshot_ms = now_ms + SNAPSHOT_EVERY_MS;
            self.making = Some(SnapshotThread::start_making(&self.setup, &self.state)?);
        }
        Ok(())
    }

    pub(super) fn apply_survey(&mut self, connection: &JournalConnection, survey: &Survey) {
        self.bounds.note_survey(survey);
        if let Some(number) = self.bounds.take_cut_position() {
            connection.cut_before(number);
        }
    }

    /// Handles the end of a snapshot. A snapshot that failed is tried again later.
    fn note_snapshot_end(&mut self) {
        let Some(end) = self.making.as_ref().and_then(SnapshotThread::take_end) else {
            return;
        };
        self.making = None;
        match end {
            Ok(SnapshotEnd::Made(Some(made))) => tracing::info!(
                event = "snapshot_made",
                record = made.number,
                bytes = made.bytes,
                "the store has a snapshot of the dispatcher's file"
            ),
            Ok(_) => {}
            Err(error) => tracing::warn!(
                event = "snapshot_not_made",
                %error,
                "no snapshot of the dispatcher's file is made, the journal grows"
            ),
        }
    }

    fn file_bytes(&self) -> u64 {
        let file = std::fs::metadata(self.state.join(FILE_NAME));
        file.map_or(0, |file| file.len())
    }
}
