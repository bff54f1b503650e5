//! The alert of a mapping: when it is raised, extended by more fields, cleared or withdrawn.
//!
//! A mapping has one alert at a time. It is cleared when all fallen fields have recovered. A fall without new evidence,
//! such as in an abandoned layout, is forgotten after [`UNJUDGED`] pages. The caller may hold a new alert back until it
//! is sure that the sites do not block the crawler.

use serde_json::{Map, Value};

use crate::alert::{Alert, Event, FallenField, Sign};
use crate::good_page::GoodPage;
use crate::has_value;
use crate::kept::{KEPT, KeptPage};
use crate::mapping_health::MappingHealth;
use crate::series::Series;

/// The most cleared alerts that a mapping keeps.
const MOST_PAST: usize = 10;

/// The most falls in an alert. A field that falls in several templates (layouts of pages) counts once for each.
const MOST_FALLEN: usize = 500;

/// A fall is forgotten after this many pages of the mapping without evidence about it.
const UNJUDGED: u64 = 1_000;

/// Falls without evidence are searched for once in this many pages.
const FORGIVE_EVERY: u64 = 50;

/// Whether a page with these field values is evidence that the fields `fallen` have fallen.
fn is_evidence(fallen: &[FallenField], fields: &Map<String, Value>) -> bool {
    fallen
        .iter()
        .any(|one| one.sign != Sign::Empty || !fields.get(&one.field).is_some_and(has_value))
}

impl MappingHealth {
    /// Raises the alert, or extends the standing one.
    pub(crate) fn raise_alert(
        &mut self,
        fallen: Vec<FallenField>,
        since: u64,
        page: &GoodPage<'_>,
        events: &mut Vec<Event>,
    ) {
        let is_new = self.alert.is_none();
        let alert = self.alert.get_or_insert_with(|| Alert {
            mapping: self.mapping.clone(),
            mapping_version: self.version.clone(),
            raised_at: page.at.to_owned(),
            before: self.last_pages.whole.iter().cloned().collect(),
            after: self.last_pages.lacking.iter().cloned().collect(),
            ..Alert::default()
        });
        let named = alert.fields.len();
        for one in fallen {
            if alert.fields.len() < MOST_FALLEN && !alert.contains_field(&one) {
                alert.fields.push(one);
            }
        }
        if is_new {
            // Before the fall, some pages lacked a field as well. Only pages since the fall are evidence.
            alert
                .after
                .retain(|kept| kept.number >= since && is_evidence(&alert.fields, &kept.fields));
            events.push(Event::LayoutChanged);
        } else if alert.fields.len() > named && !events.iter().any(Event::concerns_standing_alert) {
            events.push(Event::MoreFell);
        }
    }

    /// Keeps the page as evidence if there is an alert that it confirms.
    pub(crate) fn keep_evidence(&mut self, page: &GoodPage<'_>) {
        let Some(alert) = &mut self.alert else {
            return;
        };
        let is_new = alert.after.last().is_none_or(|last| last.id != page.id);
        if alert.after.len() < KEPT && is_new && is_evidence(&alert.fields, page.fields) {
            alert.after.push(KeptPage::from_page(page, self.pages));
        }
    }

    pub(crate) fn clear_if_recovered(&mut self, at: &str, events: &mut Vec<Event>) {
        if self.alert.is_none() {
            return;
        }
        let has_forgiven =
            self.pages.is_multiple_of(FORGIVE_EVERY) && self.forget_unconfirmed_falls();
        let mut scopes = self.templates.iter().map(|template| &template.scope);
        let is_fallen = self.all.has_fallen()
            || self.returning.has_fallen()
            || scopes.any(|scope| scope.has_fallen())
            || self
                .known_values
                .values()
                .any(|series| series.current_fall().is_some());
        if !is_fallen && self.one_value.is_empty() {
            let why = if has_forgiven {
                "not_seen"
            } else {
                "recovered"
            };
            self.clear_alert(why, at, events);
        }
    }

    /// Forgets falls about which the last [`UNJUDGED`] pages gave no evidence. Returns whether any were forgotten.
    fn forget_unconfirmed_falls(&mut self) -> bool {
        let Some(before) = self.pages.checked_sub(UNJUDGED) else {
            return false;
        };
        let mut has_forgiven = self.returning.forget_unconfirmed_falls(before);
        for series in self.all_series_mut() {
            if series.current_fall().is_some() && series.judged_at() <= before {
                series.forget_evidence();
                has_forgiven = true;
            }
        }
        let silent = |_: &String, last_page: &mut u64| *last_page <= before;
        for (field, _) in self.one_value.extract_if(.., silent) {
            if let Some(profile) = self.profiles.get_mut(&field) {
                profile.forget_common_value();
            }
            has_forgiven = true;
        }
        has_forgiven
    }

    fn all_series_mut(&mut self) -> impl Iterator<Item = &mut Series> {
        let templates = self.templates.iter_mut().map(|one| &mut one.scope);
        let scopes = templates.chain([&mut self.all]);
        let fields = scopes.flat_map(|scope| scope.fields.values_mut());
        fields
            .map(|field| &mut field.fill)
            .chain(self.known_values.values_mut())
    }

    pub(crate) fn clear_alert(&mut self, why: &str, at: &str, events: &mut Vec<Event>) {
        let Some(mut alert) = self.alert.take() else {
            return;
        };
        alert.cleared_at = Some(at.to_owned());
        alert.cleared_by = Some(why.to_owned());
        if alert.is_held {
            // The alert was held back and never reported, so its end is not reported either.
            return;
        }
        if self.past.len() >= MOST_PAST {
            self.past.remove(0);
        }
        let alert = alert.without_pages();
        self.past.push(alert.clone());
        events.push(Event::Cleared(Box::new(alert)));
    }

    /// Forgets the alert and its evidence, because the sites of its pages block the crawler. Returns the event that the
    /// alert is cleared, or `None` if it was held back or there is none.
    pub fn withdraw_alert(&mut self) -> Option<Event> {
        for field in std::mem::take(&mut self.one_value).into_keys() {
            if let Some(profile) = self.profiles.get_mut(&field) {
                profile.forget_common_value();
            }
        }
        self.all_series_mut().for_each(Series::forget_evidence);
        self.returning.forget_evidence();
        let mut events = Vec::new();
        let at = self.last_at.clone();
        self.clear_alert("blocked", &at, &mut events);
        events.pop()
    }

    /// Holds the alert back: it is not reported until [`release_alert`](Self::release_alert) is called.
    pub fn hold_alert(&mut self) {
        if let Some(alert) = &mut self.alert {
            alert.is_held = true;
        }
    }

    /// Releases an alert that was held back, so that it is reported. Returns whether there was one.
    pub fn release_alert(&mut self) -> bool {
        let held = self.alert.as_mut().filter(|alert| alert.is_held);
        held.map(|alert| alert.is_held = false).is_some()
    }

    pub fn holds_alert(&self) -> bool {
        self.alert.as_ref().is_some_and(|alert| alert.is_held)
    }

    /// The pages that are evidence of the alert, even if it is held back.
    pub fn evidence(&self) -> &[KeptPage] {
        self.alert.as_ref().map_or(&[], |alert| &alert.after)
    }

    /// Drops pages from the alert's evidence if `is_blocked` returns true for them.
    pub fn drop_evidence(&mut self, is_blocked: impl Fn(&KeptPage) -> bool) {
        if let Some(alert) = &mut self.alert {
            alert.after.retain(|page| !is_blocked(page));
        }
    }

    /// The standing alert; `None` if there is none or it is held back.
    pub fn alert(&self) -> Option<&Alert> {
        self.alert.as_ref().filter(|alert| !alert.is_held)
    }

    /// The current version of the mapping.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Cleared alerts, oldest first.
    pub fn cleared_alerts(&self) -> &[Alert] {
        &self.past
    }
}
