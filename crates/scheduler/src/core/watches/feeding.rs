//! Requests of the process that feeds the seeds of a run, and the effect on the run when that process ends.

use serde_json::{Map, Value, json};
use webfill_api::{Refusal, RunEnd};

use crate::core::context::Context;
use crate::core::watches::Watches;
use crate::frontier::FrontierError;

impl Watches {
    /// The data for a feeder (the process that reads the seeds of a run): the watch, its crawl, and the position up to
    /// which the seeds were fed.
    pub(in crate::core) fn run_for_feeder(
        &mut self,
        cx: &mut Context,
        name: &str,
        run: u64,
    ) -> Result<Value, FrontierError> {
        let watched = self.by_name.get(name);
        let (Some(watched), Some(under_way)) = (watched, self.current_run(name)) else {
            return Ok(unknown_run_answer());
        };
        let (watch, last) = (under_way.watch.json.clone(), watched.last.clone());
        let Some(last) = last.filter(|last| last.number == run) else {
            return Ok(unknown_run_answer());
        };
        let status = cx.frontier.crawls().status(under_way.crawl)?;
        Ok(json!({
            "watch": watch,
            "crawl": under_way.crawl,
            "fed_lines": status.fed_lines,
            "begins_again": run > 1,
            "dataset": cx.frontier.crawls().dataset(under_way.crawl)?,
            "began_ms": last.started_ms,
        }))
    }

    /// The answer to a feeder (the process that reads the seeds of a run) that asks whether its run is over.
    pub(in crate::core) fn run_state(&self, name: &str, run: u64) -> Value {
        let watched = self.by_name.get(name);
        let is_under_way = watched.is_some_and(|watched| {
            let number = watched.last.as_ref().map(|last| last.number);
            watched.under_way.is_some() && number == Some(run)
        });
        json!({"over": !is_under_way})
    }

    /// Adds counts to the record of a run that is over: those of the feeder, which read its seeds, or those of page
    /// checks.
    pub(in crate::core) fn add_run_counts(
        &mut self,
        cx: &mut Context,
        name: &str,
        run: u64,
        counts: Map<String, Value>,
    ) -> Result<Value, FrontierError> {
        let runs = cx.frontier.watches().list_runs(name, 2)?;
        let record = runs.into_iter().find(|record| record.number == run);
        let record = record.filter(|record| record.ended_ms.is_some());
        let Some(mut record) = record else {
            return Ok(unknown_run_answer());
        };
        record.counts.extend(counts);
        cx.frontier.watches().record_run(name, &record, None)?;
        let last = self.by_name.get_mut(name);
        let last = last.and_then(|watched| watched.last.as_mut());
        if let Some(last) = last.filter(|last| last.number == run) {
            last.counts = record.counts;
        }
        Ok(json!({"accepted": 1}))
    }

    /// Notes that the feeder of a run, which reads its seeds, has ended permanently. If the run is not over, it fails.
    pub(in crate::core) fn on_feeder_ended(
        &mut self,
        cx: &mut Context,
        name: &str,
        run: u64,
        why: Option<String>,
    ) -> Result<(), FrontierError> {
        self.fed.remove(name);
        if self.run_state(name, run)["over"] == true {
            return Ok(());
        }
        let why = why.unwrap_or_else(|| String::from("its feeder has left"));
        self.stop_handing_out_run(cx, name, (RunEnd::Failed, Some(why)))
    }
}

fn unknown_run_answer() -> Value {
    Refusal::new("$.run", "the watch has no such run").to_answer()
}
