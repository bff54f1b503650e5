//! [`MappingHealth`]: everything known about the extractions of one mapping, and its alert.
//!
//! Each page is judged twice: among the pages of its template (its layout), and among all pages. A small change of the
//! layout is noticed in the template. A redesign makes a new template, so it is noticed among all pages. There, a page
//! of a known template that never had the field gives no evidence. While pages of known templates still come, a new
//! template only causes a warning. `alert_state.rs` handles fields that fall (lose their values).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::alert::{Alert, Event, FallenField, Sign, Warning, WarningKind};
use crate::good_page::GoodPage;
use crate::has_value;
use crate::kept::LastPages;
use crate::profile::{Finding, Profile};
use crate::recent::{Novelty, RecentPages};
use crate::rechecked_pages::RecheckedPages;
use crate::rows::{PageEvidence, Rows};
use crate::scope::Scope;
use crate::series::{Series, Step, Witness, weight_of_nth_page};
use crate::sources::Sources;
use crate::template::{self, KNOWN, Template};

/// The most warnings that a mapping keeps.
const MOST_WARNINGS: usize = 20;

/// The most fields with a profile of their values, and the most fields with values known from records.
const MOST_PROFILES: usize = 200;

/// After this many pages in a row that were read by the previous version of the mapping, that version is the current
/// one again.
const BACK_AFTER: u32 = 20;

/// A field is usual if at least this share of pages has a value for it.
const USUAL: f64 = 0.5;

/// The state of health of one mapping: its fields by template and overall, its alert and its warnings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MappingHealth {
    pub(crate) mapping: String,
    pub(crate) version: Option<String>,
    /// The previous version of the mapping, and how many of the last pages in a row were read by it.
    former: Option<String>,
    former_in_row: u32,
    /// How many good pages of the current version were judged.
    pub(crate) pages: u64,
    pub(crate) last_at: String,
    pub(crate) all: Scope,
    pub(crate) templates: Vec<Template>,
    pub(crate) known_values: BTreeMap<String, Series>,
    pub(crate) profiles: BTreeMap<String, Profile>,
    /// The fields that have the same value on most pages, each with the number of the last page that had a value.
    pub(crate) one_value: BTreeMap<String, u64>,
    /// For each field, the number of the last page with a warning about an alternative extraction chain.
    #[serde(default)]
    pub(crate) alternatives_reported: BTreeMap<String, u64>,
    /// For each field whose value comes from an alternative extraction chain now, the crawls (`APPID/CRAWLID`) that
    /// show it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) served_crawls: BTreeMap<String, BTreeSet<String>>,
    pub(crate) alert: Option<Alert>,
    pub(crate) past: Vec<Alert>,
    pub(crate) warnings: Vec<Warning>,
    recent: RecentPages,
    sources: Sources,
    #[serde(default)]
    pub(crate) returning: RecheckedPages,
    #[serde(default)]
    pub(crate) rows: Rows,
    pub(crate) last_pages: LastPages,
}

impl MappingHealth {
    pub fn new(mapping: &str) -> MappingHealth {
        MappingHealth {
            mapping: mapping.to_owned(),
            ..MappingHealth::default()
        }
    }

    /// Judges a page. Pages must come in the order they were saved.
    pub fn note_page(&mut self, page: &GoodPage<'_>) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.check_and_update_version(page, &mut events)
            || !self.record_and_check_novelty(page, &mut events)
        {
            return events;
        }
        self.pages += 1;
        page.at.clone_into(&mut self.last_at);
        let template = template::find_or_add(&mut self.templates, page.template, self.pages);
        let mut said = PageEvidence::from_fields(page.fields);
        self.rows.add_evidence(page.rows, &mut said);
        let with_rows = GoodPage {
            fields: &said.values,
            ..*page
        };
        let lacks = self.lacks_usual_field(template, &said);
        self.last_pages.note_page(&with_rows, self.pages, !lacks);
        self.judge_fields(template, &with_rows, &said, &mut events);
        self.judge_rechecked_page(page, &mut events);
        self.judge_known_values(page, &mut events);
        self.judge_values(page, &mut events);
        self.keep_evidence(&with_rows);
        self.clear_if_recovered(page.at, &mut events);
        events
    }

    /// Returns whether the page was read by the current version of the mapping. A page of a new version makes this
    /// version current and resets the state.
    fn check_and_update_version(&mut self, page: &GoodPage<'_>, events: &mut Vec<Event>) -> bool {
        let version = page.mapping_version;
        if self.pages == 0 && self.version.is_none() {
            self.version = version.map(str::to_owned);
        }
        if self.version.as_deref() == version {
            self.former_in_row = 0;
            return true;
        }
        if self.former.as_deref() == version && version.is_some() {
            // Pages of the previous version still come while the fleet reloads the mapping.
            self.former_in_row += 1;
            if self.former_in_row < BACK_AFTER {
                return false;
            }
        }
        let fresh = MappingHealth {
            former: self.version.take(),
            version: version.map(str::to_owned),
            past: std::mem::take(&mut self.past),
            recent: std::mem::take(&mut self.recent),
            last_pages: std::mem::take(&mut self.last_pages),
            alert: self.alert.take(),
            ..MappingHealth::new(&self.mapping)
        };
        *self = fresh;
        self.clear_alert("new_mapping", page.at, events);
        true
    }

    /// Whether the page gives new evidence: it is neither a repetition nor a copy of a counted page.
    fn record_and_check_novelty(&mut self, page: &GoodPage<'_>, events: &mut Vec<Event>) -> bool {
        let novelty = self.recent.note_page(page);
        if let Novelty::OneContent { urls, of } = novelty {
            let detail = match urls == of {
                true => format!("{urls} URLs in a row were served one content"),
                false => format!("{urls} of {of} URLs in a row were served one content"),
            };
            self.warn(WarningKind::OneContent, "", detail, page.at, events);
        }
        novelty == Novelty::New
    }

    /// Whether the page lacks a field that most pages of the mapping have. If its template (layout) is known, fields
    /// that pages of the template often lack do not count.
    fn lacks_usual_field(&self, template: usize, said: &PageEvidence) -> bool {
        let own = &self.templates[template].scope;
        self.all.fields.iter().any(|(name, field)| {
            let is_usual = field.fill.baseline().is_some_and(|share| share >= USUAL);
            let share = own.fields.get(name).map_or(0.0, |field| field.fill.share());
            let is_expected = is_usual && (own.pages < KNOWN || share >= USUAL / 2.0);
            let has = said.silent.contains(name) || said.values.get(name).is_some_and(has_value);
            is_expected && !has
        })
    }

    fn judge_fields(
        &mut self,
        index: usize,
        page: &GoodPage<'_>,
        said: &PageEvidence,
        events: &mut Vec<Event>,
    ) {
        let scope = &mut self.templates[index].scope;
        let source = crate::hash(page.source);
        let mut witness = Witness {
            source,
            number: self.pages,
            weight: weight_of_nth_page(self.sources.note_page(source)),
            is_known_layout: false,
        };
        let is_said = |name: &str| !said.silent.contains(name);
        let steps = scope.note_page(page.fields, witness, |name, _| is_said(name));
        let is_known = scope.pages >= KNOWN;
        let becomes_known = scope.pages == KNOWN;
        let shares: BTreeMap<&str, f64> = scope
            .fields
            .iter()
            .map(|(name, field)| (name.as_str(), field.fill.share()))
            .collect();
        witness.is_known_layout = is_known;
        let is_judged = |name: &str, series: &Series| {
            let share = shares.get(name).copied().unwrap_or_default();
            let is_back =
                series.current_fall().is_some() && page.fields.get(name).is_some_and(has_value);
            let is_usual = |usual| share >= usual / 2.0;
            is_said(name) && (!is_known || is_back || series.baseline().is_none_or(is_usual))
        };
        let steps_of_all = self.all.note_page(page.fields, witness, is_judged);
        let founded = self.templates[index].founded;
        self.all.note_lasting_falls(founded, self.pages);
        let fell = |steps: Vec<(String, Step)>| {
            let fell = steps.into_iter().filter(|(_, step)| *step == Step::Fell);
            fell.map(|(name, _)| name).collect::<Vec<_>>()
        };
        let (of_template, mut of_all) = (fell(steps), fell(steps_of_all));
        of_all.retain(|name| !of_template.contains(name));
        let sketch = Some(self.templates[index].sketch.clone());
        for (names, of) in [(of_template, Some(index)), (of_all, None)] {
            if names.is_empty() {
                continue;
            }
            let template = of.and(sketch.clone());
            self.raise_alert_for_fallen(names, of, template, page, events);
        }
        self.judge_chains(index, page, witness, events);
        if becomes_known {
            self.warn_of_new_layout(index, page, events);
        }
        self.rows.learn_norms(
            page.rows,
            witness,
            index,
            &mut self.all,
            &mut self.templates,
        );
    }

    /// Raises an alert for the fields that have fallen. Other fields that have much of the evidence for a fall are
    /// added.
    fn raise_alert_for_fallen(
        &mut self,
        mut names: Vec<String>,
        of: Option<usize>,
        template: Option<String>,
        page: &GoodPage<'_>,
        events: &mut Vec<Event>,
    ) {
        let scope = match of {
            Some(index) => &mut self.templates[index].scope,
            None => &mut self.all,
        };
        names.extend(scope.complete_imminent_falls());
        let mut since = self.pages;
        let fallen = names.into_iter().filter_map(|field| {
            let fall = scope.fields.get(&field)?.fill.current_fall()?;
            since = since.min(fall.since);
            Some(FallenField {
                least: self.rows.lowest_normal(&field),
                field,
                sign: Sign::Empty,
                template: template.clone(),
                before: fall.before,
                after: fall.after,
                at: page.at.to_owned(),
            })
        });
        let fallen: Vec<FallenField> = fallen.collect();
        self.raise_alert(fallen, since, page, events);
    }

    /// Raises an alert for fields that repeatedly checked pages had at earlier checks and now lack.
    fn judge_rechecked_page(&mut self, page: &GoodPage<'_>, events: &mut Vec<Event>) {
        let said = PageEvidence::from_fields_and_rows(page.fields, page.rows);
        let losses = self
            .returning
            .note_page(crate::hash(page.url), &said, self.pages);
        let Some(since) = losses.iter().map(|loss| loss.since).min() else {
            return;
        };
        let fallen = losses.into_iter().map(|loss| FallenField {
            least: None,
            field: loss.field,
            sign: Sign::Empty,
            template: None,
            before: 1.0,
            after: loss.after,
            at: page.at.to_owned(),
        });
        self.raise_alert(fallen.collect(), since, page, events);
    }

    fn judge_known_values(&mut self, page: &GoodPage<'_>, events: &mut Vec<Event>) {
        let witness = Witness {
            source: crate::hash(page.id),
            number: self.pages,
            weight: 1.0,
            is_known_layout: false,
        };
        let mut fallen = Vec::new();
        for (field, agrees) in page.known_values {
            if self.known_values.len() >= MOST_PROFILES && !self.known_values.contains_key(field) {
                continue;
            }
            let series = self.known_values.entry(field.clone()).or_default();
            if series.note_page(*agrees, witness) != Step::Fell {
                continue;
            }
            let Some(fall) = series.current_fall() else {
                continue;
            };
            fallen.push(FallenField {
                field: field.clone(),
                sign: Sign::WrongValues,
                least: None,
                template: None,
                before: fall.before,
                after: fall.after,
                at: page.at.to_owned(),
            });
        }
        if !fallen.is_empty() {
            self.raise_alert(fallen, self.pages, page, events);
        }
    }

    fn judge_values(&mut self, page: &GoodPage<'_>, events: &mut Vec<Event>) {
        for (name, value) in page.fields.iter().filter(|(_, value)| has_value(value)) {
            if self.profiles.len() >= MOST_PROFILES && !self.profiles.contains_key(name) {
                continue;
            }
            if let Some(last_page) = self.one_value.get_mut(name) {
                *last_page = self.pages;
            }
            let profile = self.profiles.entry(name.clone()).or_default();
            match profile.note_value(value) {
                Some(Finding::Changed { what, index }) => {
                    let detail = format!("the {what} of its values changed (PSI {index:.2})");
                    self.warn(WarningKind::ValuesChanged, name, detail, page.at, events);
                }
                Some(Finding::OneValue { before, now }) => {
                    self.one_value.insert(name.clone(), self.pages);
                    let fallen = FallenField {
                        field: name.clone(),
                        sign: Sign::OneValue,
                        least: None,
                        template: None,
                        before,
                        after: now,
                        at: page.at.to_owned(),
                    };
                    self.raise_alert(vec![fallen], self.pages, page, events);
                }
                Some(Finding::ManyValues) => {
                    self.one_value.remove(name);
                }
                None => {}
            }
        }
    }

    /// Warns that pages of a new layout lack fields that pages of the mapping usually have.
    fn warn_of_new_layout(&mut self, index: usize, page: &GoodPage<'_>, events: &mut Vec<Event>) {
        let scope = &self.templates[index].scope;
        let lacking = self.all.fields.iter().filter_map(|(name, field)| {
            let usual = field
                .fill
                .baseline()
                .filter(|_| !field.fill.is_provisional())?;
            let share = scope
                .fields
                .get(name)
                .map_or(0.0, |field| field.fill.share());
            let lacks =
                usual >= USUAL && share < usual / 2.0 && field.fill.current_fall().is_none();
            lacks.then(|| (name.clone(), share, usual))
        });
        for (name, share, usual) in lacking.collect::<Vec<_>>() {
            let detail = format!(
                "pages of a new layout have it in {:.0} % of the cases, others in {:.0} % or more",
                share * 100.0,
                usual * 100.0
            );
            self.warn(WarningKind::OtherLayout, &name, detail, page.at, events);
        }
    }

    pub(crate) fn warn(
        &mut self,
        kind: WarningKind,
        field: &str,
        detail: String,
        at: &str,
        events: &mut Vec<Event>,
    ) {
        let warning = Warning {
            kind,
            mapping: self.mapping.clone(),
            field: field.to_owned(),
            detail,
            at: at.to_owned(),
        };
        let can_stand = |one: &Warning| one.kind == WarningKind::AlternativeServes;
        if can_stand(&warning) {
            self.warnings
                .retain(|one| !can_stand(one) || one.field != field);
        }
        if self.warnings.len() >= MOST_WARNINGS {
            // Warnings about alternative extraction chains are shown until the first chain yields values again, so
            // other warnings are dropped before them.
            let oldest = self.warnings.iter().position(|one| !can_stand(one));
            self.warnings.remove(oldest.unwrap_or(0));
        }
        self.warnings.push(warning.clone());
        events.push(Event::Warned(warning));
    }

    /// The warnings, oldest first.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The mapping's name.
    pub fn mapping(&self) -> &str {
        &self.mapping
    }
}
