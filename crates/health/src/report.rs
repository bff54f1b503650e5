//! The report of `webfill health` about a mapping.

use serde_json::{Value, json};

use crate::mapping_health::MappingHealth;
use crate::scope::Scope;
use crate::series::Series;

impl MappingHealth {
    /// The report on a mapping's health as JSON. Shares are rounded to a thousandth.
    pub fn report(&self) -> Value {
        let templates = self.templates.iter().map(|template| {
            json!({"template": template.sketch, "pages": template.scope.pages, "fields": self.field_reports(&template.scope)})
        });
        let known = self
            .known_values
            .iter()
            .map(|(field, series)| series_json(field, series));
        json!({
            "mapping": self.mapping,
            "mapping_version": self.version,
            "pages": self.pages,
            "last_at": self.last_at,
            "fields": self.field_reports(&self.all),
            "known_values": known.collect::<Vec<_>>(),
            "templates": templates.collect::<Vec<_>>(),
            "alert": self.alert(),
            "past_alerts": self.past,
            "warnings": self.warnings,
        })
    }

    fn field_reports(&self, scope: &Scope) -> Vec<Value> {
        let fields = scope.fields.iter();
        let reports = fields.map(|(name, field)| {
            let mut report = series_json(name, &field.fill);
            if let Some(least) = self.rows.lowest_normal(name) {
                report["least"] = round_share(least).into();
            }
            report
        });
        reports.collect()
    }
}

fn series_json(field: &str, series: &Series) -> Value {
    json!({
        "field": field,
        "pages": series.page_count(),
        "now": round_share(series.now()),
        "baseline": series.baseline().map(round_share),
        "provisional": series.is_provisional(),
        "fallen": series.current_fall().is_some(),
        "empty_in_row": series.empty_in_row(),
        "sure": series.loss_confidence(),
    })
}

fn round_share(share: f64) -> f64 {
    (share * 1_000.0).round() / 1_000.0
}
