//! The health of all mappings' extractions, as the dispatchers have written it to the store. Each reading reads all of
//! it, so all visitors share one reading for some seconds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;
use webfill_health::MappingHealth;
use webfill_store::HealthState;

use crate::answer::Problem;

const FRESH_FOR: Duration = Duration::from_secs(5);

/// The health of one mapping: the JSON of [`MappingHealth::report`], and the alert as a sentence.
#[derive(Debug, Clone)]
pub(crate) struct MappingReport {
    pub(crate) mapping: String,
    pub(crate) report: Value,
    /// The text of the mapping's current alert.
    pub(crate) alert: Option<String>,
}

type CachedReports = Option<(Instant, Arc<Vec<MappingReport>>)>;

#[derive(Default)]
pub(crate) struct Extractions(Mutex<CachedReports>);

impl Extractions {
    /// The reports of all mappings, by name. `states` reads the store, and is only run if the last reading is too old.
    pub(crate) async fn get_or_read(
        &self,
        states: impl Future<Output = Result<Vec<HealthState>, Problem>>,
    ) -> Result<Arc<Vec<MappingReport>>, Problem> {
        let mut read = self.0.lock().await;
        if let Some((at, found)) = &*read
            && at.elapsed() < FRESH_FOR
        {
            return Ok(Arc::clone(found));
        }
        let states = states.await?;
        let found = tokio::task::spawn_blocking(move || from_states(&states)).await;
        let found = Arc::new(found.map_err(Problem::internal_error)?);
        *read = Some((Instant::now(), Arc::clone(&found)));
        Ok(found)
    }
}

/// A field without values is reported as lost only if the probability that this is no coincidence is at least this
/// high.
const SURE: f64 = 0.999;

/// Whether a field has yielded nothing on its last pages, so often that it cannot be a coincidence.
pub(crate) fn is_lost(field: &Value) -> bool {
    field["sure"].as_f64().is_some_and(|sure| sure >= SURE)
}

/// The state of a mapping that has read too few pages to be judged.
pub(crate) const NOT_KNOWN_YET: &str = "not known yet";

/// Summarises a mapping's report in a few words. It is "fine" only if every field was judged and none is lost.
pub(crate) fn verdict(report: &Value, has_alert: bool) -> &'static str {
    let fields = report["fields"].as_array().map(Vec::as_slice);
    let fields = fields.unwrap_or_default();
    if has_alert {
        "alert"
    } else if fields.iter().any(is_lost) {
        "suspect"
    } else if fields.is_empty() || fields.iter().any(|field| field["provisional"] == true) {
        NOT_KNOWN_YET
    } else {
        "fine"
    }
}

/// A sentence for users with the lost fields, and how sure it is that they are lost; `None` if no field is lost.
pub(crate) fn describe_lost_fields(report: &Value) -> Option<String> {
    const NAMED: usize = 3;
    let fields = report["fields"].as_array().into_iter().flatten();
    let lost: Vec<&Value> = fields.filter(|field| is_lost(field)).collect();
    let least = |key: &str| {
        let shares = lost.iter().filter_map(|field| field[key].as_f64());
        shares.reduce(f64::min)
    };
    let (in_row, sure) = (least("empty_in_row")?, least("sure")?);
    let names = lost.iter().filter_map(|field| field["field"].as_str());
    let mut named = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if lost.len() > NAMED {
        named += &format!(" and {} more", lost.len() - NAMED);
    }
    // The percentage is rounded down, so that no loss is shown as 100 % sure.
    let percent = (sure * 1_000.0).floor() / 10.0;
    let verb = if lost.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{named} {verb} empty on the last {in_row:.0} pages ({:.1} % sure)",
        percent.min(99.9)
    ))
}

/// The reports of all readable states. States of another version's format are skipped.
fn from_states(states: &[HealthState]) -> Vec<MappingReport> {
    let of_mappings = states
        .iter()
        .filter(|state| state.id.starts_with("mapping/"));
    let health = of_mappings
        .filter_map(|state| serde_json::from_str::<MappingHealth>(&state.state).ok())
        .map(|health| MappingReport {
            mapping: health.mapping().to_owned(),
            report: health.report(),
            alert: health.alert().map(webfill_health::Alert::text),
        });
    let mut found: Vec<MappingReport> = health.collect();
    found.sort_by(|one, other| one.mapping.cmp(&other.mapping));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mapping_is_fine_only_if_all_its_fields_are_known_to_be() {
        let field = |name: &str, is_provisional: bool, sure: Option<f64>| json!({"field": name, "provisional": is_provisional, "empty_in_row": 22, "sure": sure});
        let of = |fields: Vec<Value>, has_alert| verdict(&json!({"fields": fields}), has_alert);
        let fine = || field("a", false, None);
        assert_eq!(of(vec![fine()], false), "fine");
        assert_eq!(of(vec![fine()], true), "alert");
        assert_eq!(
            of(vec![fine(), field("b", true, Some(0.9))], false),
            "not known yet"
        );
        assert_eq!(
            of(vec![fine(), field("b", true, Some(0.9999))], false),
            "suspect"
        );
        assert_eq!(of(vec![], false), "not known yet");
        let lost = |count: usize| {
            let fields = (0..count).map(|at| field(&format!("f{at}"), true, Some(0.999_99)));
            describe_lost_fields(&json!({"fields": fields.collect::<Vec<_>>()}))
        };
        assert_eq!(lost(0), None);
        assert_eq!(
            lost(1).as_deref(),
            Some("f0 is empty on the last 22 pages (99.9 % sure)")
        );
        assert_eq!(
            lost(5).as_deref(),
            Some("f0, f1, f2 and 2 more are empty on the last 22 pages (99.9 % sure)")
        );
    }

    #[test]
    fn unreadable_states_are_skipped() {
        let state = |id: &str, state: String| HealthState {
            id: id.to_owned(),
            revision: 1,
            writer: String::new(),
            cursor: Default::default(),
            state,
        };
        let of = |name: &str| json!(MappingHealth::new(name)).to_string();
        let states = [
            state("mapping/b", of("b")),
            state("mapping/a", of("a")),
            state("mapping/c", String::from("{}...")),
            state("other/d", of("d")),
        ];
        let found = from_states(&states);
        let names: Vec<&str> = found.iter().map(|one| one.mapping.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(found[0].alert.is_none());
    }
}
