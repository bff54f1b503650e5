//! The part of the summary about mappings: what they extracted, compared with the previous crawl. Results of `writeln!`
//! are ignored, because writing to a string cannot fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};
use webfill_followers::run_changes::RunResults;
use webfill_health::{Alert, Warning};
use webfill_store::{FieldCounts, MappingCounts, RowTotals};

use super::lists::ListCounts;
use super::printing::{escape_and_shorten, format_counts};

mod rows;

/// The names of the fields that each mapping extracts, by the mapping's name.
pub type FieldsByMapping = BTreeMap<String, BTreeSet<String>>;

/// The most mappings in the text, and the most fields of each. Mappings with the most pages come first. The JSON has
/// all.
const MAPPINGS_SHOWN: usize = 10;
const FIELDS_SHOWN: usize = 30;

/// The findings of a crawl.
#[derive(Debug, Default)]
pub struct Findings {
    pub counts: FieldCounts,
    /// The id of the application's previous crawl, and its counts.
    pub before: Option<(String, FieldCounts)>,
    pub fields: FieldsByMapping,
    /// The current alerts of mappings that have read pages of the crawl.
    pub alerts: Vec<Alert>,
    /// Fields of mappings that are filled only by an alternative chain, because their first chain no longer yields
    /// anything.
    pub warnings: Vec<Warning>,
    /// The number of changed pages and new documents, if the crawl compared pages.
    pub of_run: Option<RunResults>,
    /// The counts of lists. Only if some lists mark missing rows as gone.
    pub lists: Option<ListCounts>,
}

/// Explains why pages have not filled records. `why` is the name of the reason in the store.
fn explain_doubt(why: &str) -> &str {
    match why {
        "other_values" => {
            "they contradict what you know of the record, and filled nothing; \
            the fields by which a record is recognised can be named in the mapping (`match`)"
        }
        "other_record" => "another record names their URL, which they fill instead",
        "rivals" => {
            "they disagree, and nothing shows whose they are: the field stays missing; \
            name a field by which a record is recognised in the mapping (`match`), \
            or give each record its own URL"
        }
        "gap" => {
            "they belong to a list that continues on several pages, and were not read: \
            a list with a hole is not filled"
        }
        other => other,
    }
}

/// The number of pages with and without a value for a field of a mapping.
struct Field<'a> {
    name: &'a str,
    filled: u64,
    empty: u64,
    /// Of the pages without a value, the number whose text was ambiguous.
    undecided: u64,
    /// The share of pages with a value in the previous crawl; `None` if the mapping read no page in that crawl.
    share_before: Option<f64>,
}

impl Findings {
    /// The fields of a mapping that has read pages, including fields that only an earlier version of the mapping has
    /// filled.
    fn fields<'a>(&'a self, mapping: &str, counts: &'a MappingCounts) -> Vec<Field<'a>> {
        let extracted = self.fields.get(mapping).into_iter().flatten();
        let names: BTreeSet<&String> = extracted.chain(counts.filled.keys()).collect();
        let before = self.before.as_ref();
        let before = before.and_then(|(_, counts)| counts.mappings.get(mapping));
        let field = |name: &'a String| {
            let filled = filled_pages(counts, name);
            Field {
                name,
                filled,
                empty: counts.pages.saturating_sub(filled),
                undecided: counts.undecided.get(name).copied().unwrap_or_default(),
                share_before: before
                    .map(|before| share(self::filled_pages(before, name), before.pages)),
            }
        };
        names.into_iter().map(field).collect()
    }

    /// A field whose mapping has found its value on no page or in no row; `None` if there is no such field.
    pub fn empty_field(&self) -> Option<String> {
        self.counts.mappings.iter().find_map(|(mapping, counts)| {
            let mut fields = self.fields(mapping, counts).into_iter();
            let empty = fields.find(|field| field.filled == 0 && counts.pages > 0);
            let what = match empty {
                Some(field) => format!("`{}` on none of its pages", field.name),
                None => rows::unfilled_field(counts)?,
            };
            Some(format!("the mapping {mapping} has found {what}"))
        })
    }

    /// Reports which pages have not filled records, and why.
    fn write_doubts(&self, text: &mut String) {
        for (why, by_mapping) in &self.counts.doubts {
            for (mapping, records) in by_mapping {
                let whom = if *records == 1 { "record" } else { "records" };
                let _ = writeln!(
                    text,
                    "  doubt     {records} {whom}, pages of {}: {}",
                    escape_and_shorten(mapping),
                    explain_doubt(why)
                );
            }
        }
    }

    pub fn json(&self) -> Value {
        let mapping = |(name, counts): (&String, &MappingCounts)| {
            let fields = self.fields(name, counts);
            let fields: BTreeMap<&str, Value> = fields
                .iter()
                .map(|field| (field.name, field.json(counts.pages)))
                .collect();
            let mut report = json!({"pages": counts.pages, "fields": fields});
            if !counts.rows.is_empty() {
                report["rows"] = self.rows_json(name, counts);
            }
            (name.clone(), report)
        };
        let mappings: serde_json::Map<String, Value> =
            self.counts.mappings.iter().map(mapping).collect();
        json!({
            "mappings": mappings,
            "unmatched": self.counts.unmatched,
            "resolved": self.counts.resolved,
            "missing": self.counts.missing,
            "doubts": self.counts.doubts,
            "alerts": self.alerts.iter().map(Alert::notification).collect::<Vec<_>>(),
            "warnings": self.warnings,
            "changes": self.of_run.as_ref().map(|found| &found.changes),
            "documents": self.of_run.as_ref().map(|found| found.documents),
            "lists": self.lists.as_ref().map(ListCounts::json),
            "before": self.before.as_ref().map(|(crawl, _)| crawl),
        })
    }

    /// Reports how many values were left out because they are ambiguous.
    fn write_undecided(&self, text: &mut String) {
        let of_rows = |totals: &RowTotals| -> u64 {
            let fields = totals.fields.values();
            fields.map(|field| field.undecided).sum()
        };
        let of_mapping = |counts: &MappingCounts| {
            counts.undecided.values().sum::<u64>() + counts.rows.values().map(of_rows).sum::<u64>()
        };
        let left_out: u64 = self.counts.mappings.values().map(of_mapping).sum();
        if left_out > 0 {
            let values = if left_out == 1 { "value" } else { "values" };
            let _ = writeln!(
                text,
                "  undecided {left_out} {values} left out that can be read in two ways: set `decimal` of `number`, \
                 `order` or `formats` of `date`; the log names them (extraction_warning)"
            );
        }
    }

    pub fn write(&self, text: &mut String) {
        self.write_doubts(text);
        self.write_undecided(text);
        self.write_mappings(text);
        self.write_changes(text);
        if let Some(lists) = &self.lists {
            let _ = writeln!(text, "  lists     {}", lists.text());
        }
        for alert in &self.alerts {
            let shown = alert.text().escape_debug().to_string();
            let _ = writeln!(text, "  ALERT     {shown}; see `webfill health`");
        }
        for warning in &self.warnings {
            let shown = warning.text().escape_debug().to_string();
            let _ = writeln!(text, "  WARNING   {shown}; see `webfill health`");
        }
        if self.counts.unmatched > 0 {
            let pages = format_page_count(self.counts.unmatched);
            let _ = writeln!(text, "  unmatched {pages}, whose URLs match no mapping");
        }
        for (name, by_field) in [
            ("resolved", &self.counts.resolved),
            ("missing", &self.counts.missing),
        ] {
            if !by_field.is_empty() {
                let records = by_field.iter();
                let records = records.map(|(field, records)| (escape_and_shorten(field), *records));
                let records = format_counts(&records.collect());
                let _ = writeln!(text, "  {name:<9} {records} (records, by field)");
            }
        }
    }

    fn write_mappings(&self, text: &mut String) {
        let mut mappings: Vec<_> = self.counts.mappings.iter().collect();
        mappings.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.pages));
        for (name, counts) in mappings.iter().take(MAPPINGS_SHOWN) {
            let fields = self.fields(name, counts);
            let _ = write!(
                text,
                "  mapping   {} has read {}",
                escape_and_shorten(name),
                format_page_count(counts.pages)
            );
            let (full, fields): (Vec<_>, Vec<_>) =
                fields.iter().partition(|field| field.empty == 0);
            let full: Vec<_> = full
                .iter()
                .map(|field| escape_and_shorten(field.name))
                .collect();
            let _ = match full.is_empty() {
                true => writeln!(text),
                false => writeln!(text, "; always filled: {}", full.join(", ")),
            };
            for field in fields.iter().take(FIELDS_SHOWN) {
                let _ = writeln!(text, "            {}", field.text(counts.pages));
            }
            write_more(text, fields.len().saturating_sub(FIELDS_SHOWN), "fields");
            self.write_rows(name, counts, text);
        }
        write_more(
            text,
            mappings.len().saturating_sub(MAPPINGS_SHOWN),
            "mappings",
        );
    }

    fn write_changes(&self, text: &mut String) {
        let Some(found) = &self.of_run else {
            return;
        };
        let kinds: Vec<String> = found
            .changes
            .iter()
            .map(|(kind, pages)| format!("{pages} {kind}"))
            .collect();
        let kinds = match kinds.is_empty() {
            true => String::from("none"),
            false => format!("{}; see `webfill changes`", kinds.join(", ")),
        };
        let _ = writeln!(text, "  changes   {kinds}");
        if found.documents > 0 {
            let _ = writeln!(text, "  documents {} new", found.documents);
        }
    }
}

impl Field<'_> {
    fn json(&self, pages: u64) -> Value {
        json!({
            "filled": self.filled,
            "empty": self.empty,
            "undecided": self.undecided,
            "share": round_share(share(self.filled, pages)),
            "share_before": self.share_before.map(round_share),
        })
    }

    fn text(&self, pages: u64) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let mut text = format!(
            "{}: {} filled, {} empty, {}",
            escape_and_shorten(self.name),
            self.filled,
            self.empty,
            percent(share(self.filled, pages))
        );
        if self.undecided > 0 {
            text += &format!("; {} can be read in two ways", self.undecided);
        }
        if let Some(before) = self.share_before {
            text += &format!("; {} in the crawl before", percent(before));
        }
        text
    }
}

fn filled_pages(counts: &MappingCounts, field: &str) -> u64 {
    counts.filled.get(field).copied().unwrap_or_default()
}

fn share(filled: u64, pages: u64) -> f64 {
    filled as f64 / pages.max(1) as f64
}

fn round_share(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

fn format_page_count(count: u64) -> String {
    match count {
        1 => "1 page".into(),
        _ => format!("{count} pages"),
    }
}

fn write_more(text: &mut String, more: usize, what: &str) {
    if more > 0 {
        let _ = writeln!(
            text,
            "            and {more} more {what}; see --summary json"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pages: u64, name: u64) -> FieldCounts {
        let mapping = MappingCounts {
            pages,
            filled: [("id".to_owned(), pages), ("name".to_owned(), name)].into(),
            undecided: [("born".to_owned(), 2)].into(),
            ..MappingCounts::default()
        };
        FieldCounts {
            mappings: [("people".to_owned(), mapping)].into(),
            unmatched: 3,
            resolved: [("name".to_owned(), 2)].into(),
            missing: [("born".to_owned(), 7)].into(),
            doubts: BTreeMap::new(),
        }
    }

    fn findings(before: Option<FieldCounts>) -> Findings {
        let names = ["born", "name"].map(str::to_owned);
        Findings {
            alerts: Vec::new(),
            warnings: Vec::new(),
            of_run: None,
            lists: None,
            counts: counts(4, 3),
            before: before.map(|counts| ("first".to_owned(), counts)),
            fields: [("people".to_owned(), names.into())].into(),
        }
    }

    #[test]
    fn each_field_is_shown_beside_its_earlier_share() {
        let mut text = String::new();
        findings(Some(counts(8, 8))).write(&mut text);
        assert_eq!(
            text,
            "  undecided 2 values left out that can be read in two ways: set `decimal` of `number`, \
             `order` or `formats` of `date`; the log names them (extraction_warning)
  mapping   people has read 4 pages; always filled: id
            born: 0 filled, 4 empty, 0.0 %; 2 can be read in two ways; 0.0 % in the crawl before
            name: 3 filled, 1 empty, 75.0 %; 100.0 % in the crawl before
  unmatched 3 pages, whose URLs match no mapping
  resolved  2 name (records, by field)
  missing   7 born (records, by field)\n"
        );
    }

    #[test]
    fn json_has_shares_and_null_where_there_was_no_crawl_before() {
        let json = findings(None).json();
        let name =
            json!({"filled": 3, "empty": 1, "undecided": 0, "share": 0.75, "share_before": null});
        assert_eq!(json["mappings"]["people"]["fields"]["name"], name);
        assert_eq!(json["before"], Value::Null);
    }

    #[test]
    fn a_field_that_was_found_on_no_page_is_empty() {
        let reason = "the mapping people has found `born` on none of its pages";
        assert_eq!(findings(None).empty_field().as_deref(), Some(reason));
        let mut all = findings(None);
        // A field that the mapping no longer extracts does not count as empty.
        all.fields.clear();
        assert_eq!(all.empty_field(), None);
    }
}
