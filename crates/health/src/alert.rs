//! [`Alert`], [`Warning`] and [`Event`]: reports to people and programs about the health of a mapping.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kept::KeptPage;
use crate::rows::split_rows_name;

/// How it was noticed that a field has fallen (is no longer read).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// The field has a value on far fewer pages than before.
    Empty,
    /// The field differs from values that records already had.
    WrongValues,
    /// The field has the same value on most pages.
    OneValue,
}

impl Sign {
    pub fn as_str(self) -> &'static str {
        match self {
            Sign::Empty => "empty",
            Sign::WrongValues => "wrong_values",
            Sign::OneValue => "one_value",
        }
    }
}

/// A field that has fallen: its pages yield its values much less often, or wrong ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FallenField {
    pub field: String,
    pub sign: Sign,
    /// The template of the pages where the field fell: a sketch of their layout. `None` if they have several templates,
    /// or a new one.
    pub template: Option<String>,
    /// The lowest normal number of rows on a page, or the lowest normal share of rows with a value, if the name of the
    /// field concerns rows ([`split_rows_name`]). `None` if any number is normal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The share before the fall (and after it, in `after`). Depending on `sign`, it is the share of pages with a
    /// value, of known values found again, or of the commonest value.
    pub before: f64,
    pub after: f64,
    pub at: String,
}

/// An alert that the layout of pages has changed. It lists the fields of one mapping that fell together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Alert {
    pub mapping: String,
    pub mapping_version: Option<String>,
    /// When the page that raised the alert was fetched, in ISO 8601.
    pub raised_at: String,
    pub fields: Vec<FallenField>,
    /// Pages from before the change, and from after it: at most 20 each.
    pub before: Vec<KeptPage>,
    pub after: Vec<KeptPage>,
    pub cleared_at: Option<String>,
    /// Why the alert was cleared: `recovered`, `new_mapping`, `not_seen` (for a long time, no page gave evidence of it)
    /// or `blocked` (the sites of its pages block the crawler).
    pub cleared_by: Option<String>,
    /// The last URLs from before the change (and after it, in `urls_after`). They remain when the alert is cleared and
    /// its pages are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls_before: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls_after: Vec<String>,
    /// Whether the alert is not reported yet, because its pages may come from sites that block the crawler.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_held: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The URLs of the last three pages, newest first.
fn last_three_urls(pages: &[KeptPage]) -> Vec<String> {
    let last = pages.iter().rev().take(3);
    last.map(|page| page.url.clone()).collect()
}

impl Alert {
    pub(crate) fn contains_field(&self, fallen: &FallenField) -> bool {
        let is_it = |one: &FallenField| {
            one.field == fallen.field && one.sign == fallen.sign && one.template == fallen.template
        };
        self.fields.iter().any(is_it)
    }

    /// The alert without its pages, but with their last URLs. Cleared alerts are kept in this form.
    pub(crate) fn without_pages(self) -> Alert {
        Alert {
            urls_before: last_three_urls(&self.before),
            urls_after: last_three_urls(&self.after),
            before: Vec::new(),
            after: Vec::new(),
            ..self
        }
    }

    /// The names of the fallen fields, each once.
    pub fn field_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for fallen in &self.fields {
            if !names.contains(&fallen.field.as_str()) {
                names.push(&fallen.field);
            }
        }
        names
    }

    /// The names of the fallen fields of pages, without names that concern rows.
    pub fn page_field_names(&self) -> Vec<&str> {
        let mut names = self.field_names();
        names.retain(|name| split_rows_name(name).is_none());
        names
    }

    /// The fallen names that concern rows: `DATASET[]` for the number of rows, and `DATASET[].FIELD` for a field of
    /// rows.
    pub fn row_field_names(&self) -> Vec<&str> {
        let mut names = self.field_names();
        names.retain(|name| split_rows_name(name).is_some());
        names
    }

    /// The alert as JSON for programs: without its pages, but with their last URLs.
    pub fn notification(&self) -> Value {
        let urls = |pages: &[KeptPage], kept: &[String]| match pages.is_empty() {
            true => kept.to_owned(),
            false => last_three_urls(pages),
        };
        json!({
            "mapping": self.mapping,
            "mapping_version": self.mapping_version,
            "raised_at": self.raised_at,
            "fields": self.fields,
            "urls_before": urls(&self.before, &self.urls_before),
            "urls_after": urls(&self.after, &self.urls_after),
            "cleared_at": self.cleared_at,
            "cleared_by": self.cleared_by,
        })
    }

    /// The alert as a row of the table of standing alerts (alerts that are not cleared).
    pub fn row(&self) -> Value {
        json!({
            "mapping": self.mapping,
            "layout_changed": self.raised_at,
            "fields": self.field_names().join(", "),
        })
    }

    /// The alert as one line of text for people.
    pub fn text(&self) -> String {
        let is_first = |(at, fallen): &(usize, &FallenField)| {
            let mut earlier = self.fields[..*at].iter();
            !earlier.any(|one| one.field == fallen.field && one.sign == fallen.sign)
        };
        let first = self.fields.iter().enumerate().filter(is_first);
        let fields = first.map(|(_, fallen)| {
            let (before, after) = (format_percent(fallen.before), format_percent(fallen.after));
            let what = match (fallen.sign, split_rows_name(&fallen.field)) {
                (Sign::Empty, Some((_, field))) => format!(
                    "{} on {after} of the pages, before on {before}",
                    describe_lowest_normal(fallen.least, field.is_some())
                ),
                (Sign::Empty, None) => format!("on {after} of the pages, before on {before}"),
                (Sign::WrongValues, _) => {
                    format!("as known in {after} of the cases, before in {before}")
                }
                (Sign::OneValue, _) => format!("one value on {after}, before on {before} at most"),
            };
            format!("{} ({what})", fallen.field)
        });
        format!(
            "the layout of mapping {} changed: {}",
            self.mapping,
            fields.collect::<Vec<_>>().join(", ")
        )
    }
}

/// Describes in words the lowest normal number of rows, or (`is_field`) the lowest normal share of rows with a value.
fn describe_lowest_normal(least: Option<f64>, is_field: bool) -> String {
    match (least, is_field) {
        (Some(least), false) if least > 1.0 => format!("{:.0} or more", least.ceil()),
        (_, false) => "any".to_owned(),
        (Some(least), true) if least > 0.0 => {
            format!("in {} of the rows or more", format_percent(least))
        }
        (_, true) => "in any row".to_owned(),
    }
}

fn format_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The kind of a warning. A warning is less certain than an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarningKind {
    /// The values of a field look different from before.
    #[serde(rename = "values_changed")]
    ValuesChanged,
    /// Pages of a new layout lack a field that others have.
    #[serde(rename = "other_layout")]
    OtherLayout,
    /// Many URLs returned the same page.
    #[serde(rename = "one_content")]
    OneContent,
    /// The first chain of a field (its main extraction rule) no longer yields values, but an alternative chain does.
    #[serde(rename = "alternative_serves")]
    AlternativeServes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    pub kind: WarningKind,
    pub mapping: String,
    /// The field's name; empty if the warning concerns whole pages.
    pub field: String,
    /// The warning in words.
    pub detail: String,
    pub at: String,
}

impl Warning {
    /// The warning as a row of the table of fields whose values come from an alternative extraction chain.
    pub fn row(&self) -> Value {
        json!({
            "mapping": self.mapping,
            "alternative_serves": self.at,
            "field": self.field,
            "detail": self.detail,
        })
    }

    /// The warning as one line of text for people.
    pub fn text(&self) -> String {
        match self.field.is_empty() {
            true => format!("mapping {}: {}", self.mapping, self.detail),
            false => format!(
                "field {} of mapping {}: {}",
                self.field, self.mapping, self.detail
            ),
        }
    }
}

/// The effect of one page on the alert and the warnings of its mapping.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A new alert of the mapping is raised; [`MappingHealth::alert`](crate::MappingHealth::alert) returns it.
    LayoutChanged,
    /// The standing alert now covers more fields, or a field on pages of more templates.
    MoreFell,
    /// The alert that was standing is cleared.
    Cleared(Box<Alert>),
    Warned(Warning),
}

impl Event {
    /// Whether the event concerns the standing alert.
    pub fn concerns_standing_alert(&self) -> bool {
        matches!(self, Event::LayoutChanged | Event::MoreFell)
    }
}
