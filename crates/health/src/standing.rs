//! The alarm of a mapping: raised, extended by what falls later, cleared, or withdrawn.
//!
//! A mapping has one alarm at a time. It ends when all that has fallen has recovered; what no page can tell of
//! any more, such as a field of a layout that the site has given up, ends it as well after [`UNJUDGED`] pages.
//! Who judges may hold an alarm back at first, until it is sure that its pages are good ones.

use serde_json::{Map, Value};

use crate::alarm::{Alarm, Event, FallenField, Sign};
use crate::has_value;
use crate::kept::{KEPT, KeptPage};
use crate::mapping_health::{GoodPage, MappingHealth};
use crate::series::Series;

/// Cleared alarms that are remembered.
const MOST_PAST: usize = 10;

/// Falls that an alarm names: a field of each of many templates is one each.
const MOST_FALLEN: usize = 500;

/// What has fallen, and of which so many pages of the mapping have told nothing, is forgiven.
const UNJUDGED: u64 = 1_000;

/// How often that is looked at, in pages.
const LOOK_EVERY: u64 = 50;

/// Whether a page with these fields shows what an alarm is about.
fn alarm_shows(fallen: &[FallenField], fields: &Map<String, Value>) -> bool {
    fallen
        .iter()
        .any(|one| one.sign != Sign::Empty || !fields.get(&one.field).is_some_and(has_value))
}

impl MappingHealth {
    /// Raises the alarm, or extends the one that stands.
    pub(crate) fn raise(
        &mut self,
        fallen: Vec<FallenField>,
        since: u64,
        page: &GoodPage<'_>,
        events: &mut Vec<Event>,
    ) {
        let is_new = self.alarm.is_none();
        let alarm = self.alarm.get_or_insert_with(|| Alarm {
            mapping: self.mapping.clone(),
            mapping_version: self.version.clone(),
            raised_at: page.at.to_owned(),
            before: self.last_pages.whole.iter().cloned().collect(),
            after: self.last_pages.lacking.iter().cloned().collect(),
            ..Alarm::default()
        });
        let named = alarm.fields.len();
        for one in fallen {
            if alarm.fields.len() < MOST_FALLEN && !alarm.has(&one) {
                alarm.fields.push(one);
            }
        }
        if is_new {
            // Some pages lack something when all is well, too.
            alarm
                .after
                .retain(|kept| kept.number >= since && alarm_shows(&alarm.fields, &kept.fields));
            events.push(Event::LayoutChanged);
        } else if alarm.fields.len() > named && !events.iter().any(Event::is_of_standing) {
            events.push(Event::MoreFell);
        }
    }

    /// While the alarm stands, pages that show what it is about are kept.
    pub(crate) fn keep_after(&mut self, page: &GoodPage<'_>) {
        let Some(alarm) = &mut self.alarm else {
            return;
        };
        let is_new = alarm.after.last().is_none_or(|last| last.id != page.id);
        if alarm.after.len() < KEPT && is_new && alarm_shows(&alarm.fields, page.fields) {
            alarm.after.push(KeptPage::of(page, self.pages));
        }
    }

    pub(crate) fn clear_if_recovered(&mut self, at: &str, events: &mut Vec<Event>) {
        if self.alarm.is_none() {
            return;
        }
        let has_forgiven = self.pages.is_multiple_of(LOOK_EVERY) && self.forgive_unjudged();
        let mut scopes = self.templates.iter().map(|template| &template.scope);
        let is_fallen = self.all.has_fallen()
            || self.returning.has_fallen()
            || scopes.any(|scope| scope.has_fallen())
            || self
                .known_values
                .values()
                .any(|series| series.fallen().is_some());
        if !is_fallen && self.one_value.is_empty() {
            let why = if has_forgiven {
                "not_seen"
            } else {
                "recovered"
            };
            self.clear(why, at, events);
        }
    }

    /// Forgives what pages have told nothing of for long; whether there was such a fall.
    fn forgive_unjudged(&mut self) -> bool {
        let Some(before) = self.pages.checked_sub(UNJUDGED) else {
            return false;
        };
        let mut has_forgiven = self.returning.forgive_unjudged(before);
        for series in self.series_mut() {
            if series.fallen().is_some() && series.judged_at() <= before {
                series.forgive();
                has_forgiven = true;
            }
        }
        let silent = |_: &String, told_at: &mut u64| *told_at <= before;
        for (field, _) in self.one_value.extract_if(.., silent) {
            if let Some(profile) = self.profiles.get_mut(&field) {
                profile.forgive();
            }
            has_forgiven = true;
        }
        has_forgiven
    }

    fn series_mut(&mut self) -> impl Iterator<Item = &mut Series> {
        let templates = self.templates.iter_mut().map(|one| &mut one.scope);
        let scopes = templates.chain([&mut self.all]);
        let fields = scopes.flat_map(|scope| scope.fields.values_mut());
        fields
            .map(|field| &mut field.fill)
            .chain(self.known_values.values_mut())
    }

    pub(crate) fn clear(&mut self, why: &str, at: &str, events: &mut Vec<Event>) {
        let Some(mut alarm) = self.alarm.take() else {
            return;
        };
        alarm.cleared_at = Some(at.to_owned());
        alarm.cleared_by = Some(why.to_owned());
        if alarm.is_held {
            // Nobody has heard of it.
            return;
        }
        if self.past.len() >= MOST_PAST {
            self.past.remove(0);
        }
        let alarm = alarm.without_pages();
        self.past.push(alarm.clone());
        events.push(Event::Cleared(Box::new(alarm)));
    }

    /// Forgets the alarm and what speaks for it: the sites of its pages blocked. What that brings about, unless
    /// the alarm was held back.
    pub fn withdraw_alarm(&mut self) -> Option<Event> {
        for field in std::mem::take(&mut self.one_value).into_keys() {
            if let Some(profile) = self.profiles.get_mut(&field) {
                profile.forgive();
            }
        }
        self.series_mut().for_each(Series::forgive);
        self.returning.forgive();
        let mut events = Vec::new();
        let at = self.last_at.clone();
        self.clear("blocked", &at, &mut events);
        events.pop()
    }

    /// Holds the alarm back: it is not told before [it is released](Self::release_alarm).
    pub fn hold_alarm(&mut self) {
        if let Some(alarm) = &mut self.alarm {
            alarm.is_held = true;
        }
    }

    /// Whether there was an alarm that was held back, which stands from now on.
    pub fn release_alarm(&mut self) -> bool {
        let held = self.alarm.as_mut().filter(|alarm| alarm.is_held);
        held.map(|alarm| alarm.is_held = false).is_some()
    }

    pub fn holds_alarm(&self) -> bool {
        self.alarm.as_ref().is_some_and(|alarm| alarm.is_held)
    }

    /// The pages that show what the alarm is about, held back or not.
    pub fn evidence(&self) -> &[KeptPage] {
        self.alarm.as_ref().map_or(&[], |alarm| &alarm.after)
    }

    /// Pages of blocked sites show nothing.
    pub fn drop_evidence(&mut self, is_blocked: impl Fn(&KeptPage) -> bool) {
        if let Some(alarm) = &mut self.alarm {
            alarm.after.retain(|page| !is_blocked(page));
        }
    }

    /// The alarm that stands, unless it is held back.
    pub fn alarm(&self) -> Option<&Alarm> {
        self.alarm.as_ref().filter(|alarm| !alarm.is_held)
    }

    /// The version of the mapping that is in force.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Alarms that are cleared, the last one last.
    pub fn past(&self) -> &[Alarm] {
        &self.past
    }
}
