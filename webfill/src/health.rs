//! `webfill health`: shows the health of mappings, as judged by the dispatchers of a store. It reads only the store,
//! which includes the latest pages after a few seconds.

mod pages;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use webfill_health::{Alert, MappingHealth};
use webfill_service::{ExitStatus, Fault};
use webfill_store::{HealthState, Store, StoreError, StoreUri, open_existing};

use crate::demand::table::{table, without_control_characters};
use crate::shell;
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct HealthOptions {
    /// Only these mappings
    pub mappings: Vec<String>,
    /// Store to read
    #[arg(
        long,
        value_name = "URI",
        default_value = "sqlite:webfill.db",
        env = "WEBFILL_STORE"
    )]
    pub store: String,
    /// Print everything as one JSON object, with pages from before and after a change
    #[arg(long)]
    pub json: bool,
    /// Write pages from before and after each change to this folder
    #[arg(long, value_name = "DIR")]
    pub pages: Option<PathBuf>,
    /// Exit with 1 if there is an alert
    #[arg(long)]
    pub fail_on_alert: bool,
}

const HEADS: [&str; 8] = [
    "mapping",
    "field",
    "pages",
    "now",
    "baseline",
    "known",
    "templates",
    "state",
];

/// Runs `webfill health`.
pub fn run(options: HealthOptions) -> Result<ExitStatus, Fault> {
    let uri: StoreUri = options.store.parse().map_err(Fault::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let read = runtime.block_on(async {
        let store = open_existing(&uri).await.map_err(Fault::error)?;
        let mut mappings = load_health(&*store).await.map_err(Fault::error)?;
        if !options.mappings.is_empty() {
            mappings.retain(|one| options.mappings.iter().any(|name| name == one.mapping()));
        }
        if let Some(folder) = &options.pages {
            for alert in mappings.iter().filter_map(MappingHealth::alert) {
                pages::write_pages(&*store, alert, folder).await?;
            }
        }
        Ok::<_, Fault>(mappings)
    });
    let mappings = read?;
    let reports: Vec<Value> = mappings.iter().map(MappingHealth::report).collect();
    let alerts: Vec<&Alert> = mappings.iter().filter_map(MappingHealth::alert).collect();
    match options.json {
        true => print(json!({"alerts": alerts.len(), "mappings": reports}))?,
        false => print(format_health(&reports, &alerts, &uri))?,
    }
    match options.fail_on_alert && !alerts.is_empty() {
        true => Ok(ExitStatus::Error),
        false => Ok(ExitStatus::Done),
    }
}

/// Loads the health of all mappings. Entries in the format of another version are skipped.
pub async fn load_health(store: &dyn Store) -> Result<Vec<MappingHealth>, StoreError> {
    let states = store.health().await?;
    let read = |state: &HealthState| {
        let of_mapping = state.id.starts_with("mapping/");
        of_mapping.then(|| serde_json::from_str(&state.state).ok())?
    };
    Ok(states.iter().filter_map(read).collect())
}

/// A field that had no values on its last pages is reported if this is no accident with at least this probability.
const SURE: f64 = 0.999;

/// Formats the health of mappings for people: a table, alerts and warnings.
fn format_health(reports: &[Value], alerts: &[&Alert], store: &StoreUri) -> String {
    if reports.is_empty() {
        return String::from("no mapping has read a page yet");
    }
    let rows: Vec<Vec<String>> = reports.iter().flat_map(field_rows).collect();
    let mut parts = vec![table(&HEADS, &rows)];
    for alert in alerts {
        parts.push(format_alert(alert, store));
    }
    let warnings = reports
        .iter()
        .filter_map(|report| report["warnings"].as_array());
    let warnings = warnings.flatten().map(|warning| {
        let of =
            |name: &str| without_control_characters(warning[name].as_str().unwrap_or_default());
        let field = match of("field") {
            field if field.is_empty() => field,
            field => format!("{field}: "),
        };
        format!("{} {}: {field}{}", of("at"), of("mapping"), of("detail"))
    });
    let warnings: Vec<String> = warnings.collect();
    if !warnings.is_empty() {
        parts.push(warnings.join("\n"));
    }
    parts.join("\n\n")
}

fn field_rows(report: &Value) -> Vec<Vec<String>> {
    let known = |field: &Value| {
        let known = report["known_values"].as_array();
        let mut known = known.into_iter().flatten();
        known.find(|one| one["field"] == field["field"])
    };
    let templates = report["templates"].as_array().map_or(0, Vec::len);
    let fields = report["fields"].as_array().into_iter().flatten();
    let row = |field: &Value| {
        let known = known(field);
        let has_fallen = |of: Option<&Value>| of.is_some_and(|of| of["fallen"] == true);
        let named = report["alert"]["fields"].as_array().into_iter().flatten();
        let is_named = named.clone().any(|one| one["field"] == field["field"]);
        let is_lost = field["sure"].as_f64().is_some_and(|sure| sure >= SURE);
        let state = match is_named || has_fallen(known) {
            true => "ALERT".to_owned(),
            false if is_lost => format!("empty on the last {} pages", field["empty_in_row"]),
            false if field["provisional"] == true => "not known yet".to_owned(),
            false => "fine".to_owned(),
        };
        vec![
            without_control_characters(report["mapping"].as_str().unwrap_or_default()),
            without_control_characters(field["field"].as_str().unwrap_or_default()),
            field["pages"].to_string(),
            format_share(&field["now"]),
            format_share(&field["baseline"]),
            known.map_or_else(|| "-".into(), |known| format_share(&known["now"])),
            templates.to_string(),
            state,
        ]
    };
    fields.map(row).collect()
}

/// Formats a share in percent.
fn format_share(share: &Value) -> String {
    match share.as_f64() {
        Some(share) => format!("{:.1}", share * 100.0),
        None => "-".into(),
    }
}

fn format_alert(alert: &Alert, store: &StoreUri) -> String {
    let mut lines = vec![without_control_characters(&format!(
        "{} {}",
        alert.raised_at,
        alert.text()
    ))];
    for (when, pages) in [("before", &alert.before), ("after", &alert.after)] {
        for page in pages.iter().rev().take(3) {
            lines.push(format!(
                "  {when:<6}  {}",
                without_control_characters(&page.url)
            ));
        }
    }
    if !alert.page_field_names().is_empty() {
        // The `Display` of the store's address omits the password.
        lines.push(without_control_characters(&format!(
            "  repair  webfill mapping repair FILE --mapping {} --store {}",
            shell::quote(&alert.mapping),
            shell::quote(&store.to_string())
        )));
    }
    if !alert.row_field_names().is_empty() {
        lines.push(String::from(
            "  rows    learn their rule anew: webfill mapping learn",
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_in_an_alert_is_shown_in_the_table() {
        let report = json!({
            "mapping": "shop", "templates": [{}, {}], "warnings": [],
            "known_values": [{"field": "name", "now": 0.5, "fallen": false}],
            "fields": [
                {"field": "name", "pages": 250, "now": 1.0, "baseline": 0.949, "provisional": false},
                {"field": "price", "pages": 250, "now": 0.0, "baseline": 0.949, "provisional": false},
            ],
            "alert": {"fields": [{"field": "price"}]},
        });
        let reported = format_health(&[report], &[], &"sqlite:a.db".parse().unwrap());
        let expected = "\
mapping  field  pages    now  baseline  known  templates  state
shop     name     250  100.0      94.9   50.0          2  fine
shop     price    250    0.0      94.9      -          2  ALERT";
        assert_eq!(reported, expected);
    }
}
