//! The report as JSON.

use serde_json::{Map, Value, json};

use super::{Example, FieldCounts, MappingCounts, Report};

impl Report {
    pub fn json(&self) -> Value {
        let failures = self.failures.iter();
        let failures = failures.map(|(url, reason)| json!({"url": url, "reason": reason}));
        json!({
            "app_id": self.app_id,
            "crawl_id": self.crawl_id,
            "source": self.source,
            "dry_run": self.is_trial,
            "pages": {
                "read": self.read,
                "written": self.written,
                "unchanged": self.unchanged,
                "overtaken": self.overtaken,
                "failed": self.failed,
                "of_another_fetch": self.of_another_fetch,
                "not_stored": self.not_stored,
                "left_out": self.left_out,
            },
            "records": self.records.0,
            "record_values": self.record_values(),
            "record_fields": self.records.1.iter().map(record_field_json).collect::<Map<_, _>>(),
            "mappings": self.mappings.iter().map(mapping_json).collect::<Map<_, _>>(),
            "examples": self.examples.iter().map(example_json).collect::<Vec<_>>(),
            "failures": failures.collect::<Vec<_>>(),
            "torn_files": self.torn,
        })
    }
}

fn mapping_json((name, counts): (&String, &MappingCounts)) -> (String, Value) {
    let field = |(name, of): (&String, &FieldCounts)| {
        let counts = json!({
            "filled": of.filled_records(),
            "empty": of.empty + of.lost,
            "new": of.new,
            "changed": of.changed,
            "same": of.same,
            "lost": of.lost,
        });
        (name.clone(), counts)
    };
    let mut row = json!({
        "pages": counts.pages,
        "changed_pages": counts.changed_pages,
        "fields": counts.fields.iter().map(field).collect::<Map<_, _>>(),
    });
    if !counts.rows.is_empty() {
        row["rows"] = json!(counts.rows);
    }
    (name.clone(), row)
}

fn record_field_json((name, (new, changed)): (&String, &(u64, u64))) -> (String, Value) {
    (name.clone(), json!({"new": new, "changed": changed}))
}

fn example_json(example: &Example) -> Value {
    json!({
        "mapping": example.mapping,
        "field": example.field,
        "change": example.change,
        "url": example.url,
        "old": example.old,
        "new": example.new,
    })
}
