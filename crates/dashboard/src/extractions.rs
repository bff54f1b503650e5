//! The health of the extractions of all mappings, as judged by the dispatchers of the store. It is read completely,
//! so all visitors share one reading for some seconds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;
use webfill_health::MappingHealth;
use webfill_store::HealthState;

use crate::answer::Problem;

const FRESH_FOR: Duration = Duration::from_secs(5);

/// The health of one mapping, from [`MappingHealth::report`], with the alert in words.
#[derive(Debug, Clone)]
pub(crate) struct Extraction {
    pub(crate) mapping: String,
    pub(crate) report: Value,
    /// The text of its standing alert.
    pub(crate) alert: Option<String>,
}

type Read = Option<(Instant, Arc<Vec<Extraction>>)>;

#[derive(Default)]
pub(crate) struct Extractions(Mutex<Read>);

impl Extractions {
    /// All extractions, by name. `states` reads the store; it is only run if the last reading is too old.
    pub(crate) async fn get_or_read(
        &self,
        states: impl Future<Output = Result<Vec<HealthState>, Problem>>,
    ) -> Result<Arc<Vec<Extraction>>, Problem> {
        let mut read = self.0.lock().await;
        if let Some((at, found)) = &*read
            && at.elapsed() < FRESH_FOR
        {
            return Ok(Arc::clone(found));
        }
        let states = states.await?;
        let found = tokio::task::spawn_blocking(move || of_states(&states)).await;
        let found = Arc::new(found.map_err(Problem::broken)?);
        *read = Some((Instant::now(), Arc::clone(&found)));
        Ok(found)
    }
}

/// States written by another version are skipped.
fn of_states(states: &[HealthState]) -> Vec<Extraction> {
    let of_mappings = states
        .iter()
        .filter(|state| state.id.starts_with("mapping/"));
    let health = of_mappings
        .filter_map(|state| serde_json::from_str::<MappingHealth>(&state.state).ok())
        .map(|health| Extraction {
            mapping: health.mapping().to_owned(),
            report: health.report(),
            alert: health.alert().map(webfill_health::Alert::text),
        });
    let mut found: Vec<Extraction> = health.collect();
    found.sort_by(|one, other| one.mapping.cmp(&other.mapping));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let found = of_states(&states);
        let names: Vec<&str> = found.iter().map(|one| one.mapping.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(found[0].alert.is_none());
    }
}
