//! Warns of fields whose first chain (their main extraction rule) no longer yields values, while an alternative chain
//! does. No values are lost yet, but the layout has changed, and no other alternative may be left.
//!
//! The first chain is judged by a [`Series`], as the field itself is: for each template and for all pages. Only pages
//! with a value count. The series begins when an alternative yields the field's value for the first time.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::alert::{Event, Warning, WarningKind};
use crate::good_page::GoodPage;
use crate::mapping_health::MappingHealth;
use crate::scope::Scope;
use crate::series::{Series, Witness};

/// A field that was reported is not reported again for this many pages. Otherwise one change would be reported several
/// times, because the first extraction chain falls in one template after another.
const REPORTED_FOR: u64 = 1_000;

/// The most crawls that are kept as evidence for a field.
const MOST_CRAWLS: usize = 20;

impl MappingHealth {
    /// Judges which extraction chains yielded the values of the page. `witness` is the page's weight and source for the
    /// series of all pages.
    pub(crate) fn judge_chains(
        &mut self,
        index: usize,
        page: &GoodPage<'_>,
        witness: Witness,
        events: &mut Vec<Event>,
    ) {
        let scope = &mut self.templates[index].scope;
        let of_template = Witness {
            is_known_layout: false,
            ..witness
        };
        let mut fell = scope.note_chains(page, of_template, |_, _| true);
        let shares: BTreeMap<&str, f64> = scope
            .fields
            .iter()
            .filter_map(|(name, field)| Some((name.as_str(), field.first.as_ref()?.share())))
            .collect();
        // If alternatives have always yielded the field's value on pages of this layout, the page is no evidence.
        let is_judged = |name: &str, first: &Series| {
            let share = shares.get(name).copied().unwrap_or(1.0);
            let is_usual = |usual| share >= usual / 2.0;
            let is_back = first.current_fall().is_some() && !page.alternatives.contains_key(name);
            !witness.is_known_layout || is_back || first.baseline().is_none_or(is_usual)
        };
        for name in self.all.note_chains(page, witness, is_judged) {
            if !fell.contains(&name) {
                fell.push(name);
            }
        }
        for name in fell {
            self.warn_of_alternative(&name, page, events);
        }
        self.record_served_crawls(page);
    }

    /// Adds the page's crawl to the evidence for each field whose value comes from an alternative now.
    fn record_served_crawls(&mut self, page: &GoodPage<'_>) {
        if self.served_crawls.is_empty() && page.alternatives.is_empty() {
            return;
        }
        let mut served = std::mem::take(&mut self.served_crawls);
        served.retain(|name, _| self.is_served_by_alternative(name));
        let crawl = page.id.rsplit_once('/').map_or("", |(crawl, _)| crawl);
        for name in page
            .alternatives
            .keys()
            .filter(|name| self.is_served_by_alternative(name))
        {
            let crawls = served.entry(name.clone()).or_default();
            if crawls.len() < MOST_CRAWLS {
                crawls.insert(crawl.to_owned());
            }
        }
        self.served_crawls = served;
    }

    /// Whether the first extraction chain of a field has fallen: it no longer yields the field's values.
    fn is_served_by_alternative(&self, name: &str) -> bool {
        let has_fallen = |scope: &Scope| {
            let field = scope.fields.get(name);
            let first = field.and_then(|field| field.first.as_ref());
            first.is_some_and(|first| first.current_fall().is_some())
        };
        has_fallen(&self.all) || self.templates.iter().any(|one| has_fallen(&one.scope))
    }

    /// The last warning about each field whose value comes from an alternative extraction chain now.
    pub fn alternative_warnings(&self) -> Vec<&Warning> {
        let mut by_field: BTreeMap<&str, &Warning> = BTreeMap::new();
        for warning in &self.warnings {
            if warning.kind == WarningKind::AlternativeServes
                && self.is_served_by_alternative(&warning.field)
            {
                by_field.insert(&warning.field, warning);
            }
        }
        by_field.into_values().collect()
    }

    /// The first crawls, as `APPID/CRAWLID`, where an alternative extraction chain yielded the field's value.
    pub fn crawls_served_by_alternative(&self, field: &str) -> impl Iterator<Item = &str> {
        let crawls = self.served_crawls.get(field).into_iter().flatten();
        crawls.map(String::as_str)
    }

    fn warn_of_alternative(&mut self, name: &str, page: &GoodPage<'_>, events: &mut Vec<Event>) {
        let reported_at = self.alternatives_reported.get(name);
        if reported_at.is_some_and(|reported_at| self.pages < reported_at + REPORTED_FOR) {
            return;
        }
        self.alternatives_reported
            .insert(name.to_owned(), self.pages);
        let serves = match page.alternatives.get(name).and_then(Value::as_u64) {
            Some(number) => format!("its alternative {number} serves"),
            None => String::from("another alternative serves"),
        };
        let detail = format!("its first chain yields nothing any more; {serves}");
        self.warn(
            WarningKind::AlternativeServes,
            name,
            detail,
            page.at,
            events,
        );
    }
}
