//! The progress of the work on a table: `overview.json` in the project folder for the dashboard, and lines of progress
//! for programs. Both are written during the work, with the results known at that time.

use serde_json::{Value, json};
use webfill_service::Fault;
use webfill_store::iso_time;

use super::deciding::State;
use super::file_form;
use super::pages::Pages;
use super::project::Project;
use super::table::Table;
use super::tally::{Tallies, Tally};
use crate::feeding::now_ms;
use crate::mapping_command::writing::write_atomically;
use crate::progress::lines;

/// The most sites that are listed. Those with the most gaps are taken.
const SITES: usize = 1_000;

/// The stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Running,
    Complete,
    CutShort,
}

/// The current step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Fetch,
    Learn,
    Read,
    Judge,
    Write,
    Done,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Fetch => "fetch",
            Step::Learn => "learn",
            Step::Read => "read",
            Step::Judge => "judge",
            Step::Write => "write",
            Step::Done => "done",
        }
    }
}

/// The data for the overview of a table.
pub struct Overview<'o> {
    pub table: &'o Table,
    pub pages: &'o Pages<'o>,
    /// The required precision.
    pub precision: f64,
}

impl Overview<'_> {
    /// Prints which step begins. `tallies` exist once the first pages were judged.
    pub fn print_step(&self, step: Step, tallies: Option<&Tallies>) {
        lines::print(&json!({
            "kind": "fill",
            "step": step.name(),
            "rows": self.table.rows.len(),
            "gaps": self.table.gaps(),
            "filled": tallies.map(|tallies| tallies.all.filled),
            "pages": self.pages.len(),
        }));
    }

    /// Writes the overview. `tallies` exist once the first pages were judged, and `doubts` at the end.
    pub fn write(
        &self,
        project: &Project,
        stage: Stage,
        tallies: Option<&Tallies>,
        doubts: Option<usize>,
    ) -> Result<(), Fault> {
        let name = self.table.path.file_name().unwrap_or_default();
        let (stored, failing) = (self.pages.len(), self.pages.count_failing());
        let mut overview = json!({
            "table": name.to_string_lossy(),
            "form": file_form::describe(&self.table.understanding),
            "stage": match stage {
                Stage::Running => "running",
                Stage::Complete => "complete",
                Stage::CutShort => "cut short",
            },
            "process": std::process::id(),
            "written_at": iso_time(now_ms()),
            "precision": self.precision,
            "rows": self.table.rows.len(),
            "gaps": self.table.gaps(),
            "bad_rows": self.table.faults.len(),
            "pages": {"stored": stored, "failing": failing},
            "doubts": doubts,
        });
        if let Some(tallies) = tallies {
            overview["all"] = tally_json(&tallies.all);
            overview["share"] = json!(tallies.filled_share());
            let fields = tallies.by_field.iter();
            let fields =
                fields.map(|(field, tally)| named_tally(&self.table.fields[*field].title, tally));
            overview["fields"] = fields.collect();
            let sites = tallies.by_site.iter().take(SITES);
            overview["sites"] = sites
                .map(|(site, tally)| named_tally(site, tally))
                .collect();
            overview["more_sites"] = tallies.by_site.len().saturating_sub(SITES).into();
            let reasons = tallies.why_not.iter();
            let reason =
                |(state, count): (&State, &usize)| json!({"state": state.name(), "count": count});
            let mut reasons: Vec<Value> = reasons.map(reason).collect();
            if tallies.gaps_without_link() > 0 {
                reasons.push(json!({"state": "no link", "count": tallies.gaps_without_link()}));
            }
            overview["reasons"] = reasons.into();
        }
        write_atomically(&project.overview_file(), overview.to_string().as_bytes())
    }
}

fn named_tally(name: &str, tally: &Tally) -> Value {
    let mut reported = tally_json(tally);
    reported["name"] = name.into();
    reported
}

fn tally_json(tally: &Tally) -> Value {
    let held_out = tally.held_out_precision();
    json!({
        "gaps": tally.gaps,
        "filled": tally.filled,
        "expected": tally.mean_confidence(),
        "held_out": held_out.map(|share| json!({"low": share.low, "right": share.estimate, "high": share.high})),
    })
}
