//! Candidates for a field: chains (lists of processors, which are extraction steps) that read a known value from its
//! place on a page.

mod conversions;
mod patterns;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::conversions::conversions;
use self::patterns::surrounding_patterns;
pub(crate) use self::patterns::{has_word, pattern_with_any_digits};
use crate::fold::KnownValue;
use crate::forms;
use crate::joined;
use crate::labels::{Labels, Leaks};
use crate::measures;
use crate::optional;
use crate::places::{Place, Places};
use crate::routes::{self, Route};
use crate::score::Label;
use crate::shape::{self, Lengths};
use crate::survival::Anchor;

/// A chain of processors that may read the field, with the anchor that it finds the place by.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) anchor: Anchor,
    pub(crate) processors: Vec<Value>,
    /// How much the extraction chain depends on positions, plus how long it is. Lower is better.
    pub(crate) burden: f64,
    /// The numbers of the pages on whose known values the extraction chain was found.
    pub(crate) found_on: Vec<usize>,
    /// Whether the page writes the value in another form than the record; see `forms.rs`.
    pub(crate) is_formed: bool,
    /// The number of the same extraction chain without conditions, if this chain has conditions; see `foreign_parts.rs`
    /// and `stand_ins.rs`.
    pub(crate) without_condition: Option<usize>,
    /// Whether a condition of the extraction chain accepts only the first of several siblings, or only later ones.
    pub(crate) is_by_order: bool,
    /// Whether the extraction chain is known to read another value if a page lacks its own; see `stand_ins.rs`.
    pub(crate) is_unusable: bool,
}

/// The burden of a processor that runs after the place is found. A pattern depends on surrounding words, so it costs
/// more than a conversion, which depends only on the value.
fn burden_of(processor: &Value) -> f64 {
    match processor["type"].as_str() {
        // An extraction chain that accepts any label before a colon may read the value of another label.
        Some("regex") if finds_any_label(processor) => 1.2,
        Some("regex") if optional::is_optional(processor) => 0.8,
        Some("regex") if has_several_words(processor) => 0.58,
        Some("regex") => 0.6,
        // A date without a set order costs more: if known values prove the order of day and month, it is better to set
        // it.
        Some("date") if processor["parameters"] == json!({}) => 0.35,
        // Each of the twelve processors for the months is free, because together they are one conversion.
        Some("replace") if forms::names_month(processor) => 0.0,
        _ => 0.3,
    }
}

/// Whether a pattern requires more than one word before the value.
fn has_several_words(processor: &Value) -> bool {
    let pattern = processor["parameters"]["pattern"]
        .as_str()
        .unwrap_or_default();
    let before = pattern.split(r"\s*(").next().unwrap_or_default();
    before.trim().contains(' ')
}

/// Whether a pattern extracts the text after a colon, whatever label precedes the colon.
fn finds_any_label(processor: &Value) -> bool {
    let pattern = processor["parameters"]["pattern"].as_str();
    pattern.is_some_and(|pattern| pattern.starts_with(":\\s*(") || pattern.starts_with("^.*:\\s*("))
}

impl Candidate {
    /// Whether the extraction chain takes the text after a colon, whatever label precedes the colon.
    pub(crate) fn finds_any_label(&self) -> bool {
        self.processors.iter().any(finds_any_label)
    }

    /// Whether the extraction chain drops words that only some pages have beside the value.
    pub(crate) fn has_optional_words(&self) -> bool {
        self.processors.iter().any(optional::is_optional)
    }

    /// Whether the extraction chain counts elements to find the value. Going to the element right after a label is not
    /// counting.
    pub(crate) fn counts_positions(&self) -> bool {
        self.is_by_order || self.has_positions()
    }

    /// Whether a number in the extraction chain chooses an element.
    pub(crate) fn has_positions(&self) -> bool {
        self.processors.iter().any(|processor| {
            let parameters = &processor["parameters"];
            let expression = parameters["expression"].as_str().unwrap_or_default();
            !parameters["column"].is_null() || has_position(expression)
        })
    }
}

fn has_position(expression: &str) -> bool {
    let expression = &*without_inner_conditions(expression);
    let mut before = "";
    for part in expression.split('[') {
        let number = part.split(']').next().unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let step = before.rsplit('/').next().unwrap_or_default();
        let is_beside = step.contains("-sibling::") && number == "1";
        if (is_number && !is_beside) || number == "last()" {
            return true;
        }
        before = part;
    }
    false
}

/// The expression without conditions that are nested in other conditions. Nested conditions choose no element by its
/// number.
fn without_inner_conditions(expression: &str) -> String {
    let (mut depth, mut quote) = (0usize, None);
    let mut outer = String::with_capacity(expression.len());
    for c in expression.chars() {
        let is_quoted = quote.is_some();
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('[', None) => depth += 1,
            _ => {}
        }
        if depth < 2 && !is_quoted {
            outer.push(c);
        }
        if c == ']' && !is_quoted {
            depth = depth.saturating_sub(1);
        }
    }
    outer
}

/// What the known values of a field have in common.
#[derive(Debug, Default)]
pub(crate) struct Column {
    /// Whether pages and records write the field's numbers differently, so that comparing texts is not enough. It is
    /// false for codes: as a number, a postcode or telephone number would lose its leading zeros.
    has_numbers: bool,
    /// The patterns that match the codes of the field; see [`shape::code_pattern`]. One pattern requires the lengths of
    /// the known codes, to exclude other numbers. Another one accepts any length.
    codes: Vec<String>,
}

impl Column {
    pub(crate) fn new(labels: &[Label], pages: &[Places<'_>]) -> Column {
        let known = || {
            labels.iter().flat_map(|label| {
                let page = &pages[label.page];
                label.wanted.iter().map(move |wanted| (page, wanted))
            })
        };
        let is_demanded = |(page, wanted): (&Places<'_>, &KnownValue)| {
            wanted.number.is_some()
                && !page.contains_exactly(wanted)
                && !page.find_exact(wanted).is_empty()
        };
        let code =
            |lengths| shape::code_pattern(known().map(|(_, wanted)| wanted.text.as_str()), lengths);
        let mut codes: Vec<String> = [Lengths::Proven, Lengths::AsKnown]
            .into_iter()
            .filter_map(code)
            .collect();
        codes.dedup();
        Column {
            has_numbers: !known().any(|(_, wanted)| wanted.is_code()) && known().any(is_demanded),
            codes,
        }
    }

    /// Patterns that extract a code from a longer text, whatever surrounds it.
    fn code_patterns(&self, place: &Place<'_>, start: usize, length: usize) -> Vec<String> {
        let value = &place.text[start..start + length];
        let bounded = |text: Option<char>| match text.is_some_and(char::is_alphanumeric) {
            true => r"\b",
            false => "",
        };
        let (first, last) = (value.chars().next(), value.chars().next_back());
        let (open, close) = (bounded(first), bounded(last));
        let of_code = |code: &String| {
            let mut patterns = vec![format!("{open}({code}){close}")];
            if start == 0 {
                patterns.insert(0, format!("^({code}){close}"));
            }
            if start + length == place.text.len() {
                patterns.insert(0, format!("{open}({code})$"));
            }
            patterns
        };
        self.codes.iter().flat_map(of_code).collect()
    }
}

/// Collects the distinct candidates of a field.
#[derive(Default)]
pub(crate) struct Candidates {
    by_chain: BTreeMap<String, Candidate>,
    /// Whether the page writes the value in another form than the record, for the candidates that are being added.
    is_formed: bool,
}

/// The most distinct candidates kept while candidates are generated.
const MOST: usize = 60_000;

/// The most places of one value on one page that candidates are made for.
const MOST_PLACES: usize = 12;

/// The burden of the former extraction chain's steps, if a new chain ends with them. It decides between two chains that
/// read the same.
const FORMER_STEPS: f64 = 0.1;

/// The burden of a pattern that keeps only matching texts.
const NARROWED: f64 = 0.15;

impl Candidates {
    /// Adds the candidates for one known value of a page.
    pub(crate) fn add_value(
        &mut self,
        number: usize,
        page: &Places<'_>,
        wanted: &KnownValue,
        column: &Column,
        labels: &Labels,
        leaks: &Leaks,
    ) {
        let whole = page.find_exact(wanted);
        for &index in whole.iter().take(MOST_PLACES) {
            let place = &page.all[index];
            for conversion in conversions(wanted, &place.text, column.has_numbers) {
                self.add_place(number, page, index, &conversion, labels, leaks);
            }
            for form in forms::conversions(wanted, &place.text) {
                self.add_converted_place(number, page, index, &form, labels, leaks);
            }
        }
        let most = if whole.is_empty() { 6 } else { 2 };
        for (index, start) in page.find_containing(wanted, most) {
            let place = &page.all[index];
            let mut patterns = surrounding_patterns(place, start, wanted.text.len(), leaks);
            patterns.extend(optional::patterns(place, start, wanted.text.len(), leaks));
            patterns.extend(column.code_patterns(place, start, wanted.text.len()));
            for pattern in patterns {
                let regex = json!({"type": "regex", "parameters": {"pattern": pattern}});
                self.add_place(number, page, index, &[regex], labels, leaks);
            }
        }
        if whole.is_empty() {
            self.add_date(number, page, wanted, labels, leaks);
            let measures = measures::find(page, &wanted.text).into_iter();
            for formed in measures.chain(forms::find(page, wanted, leaks)) {
                let (place, form) = (formed.place, &formed.processors);
                self.add_converted_place(number, page, place, form, labels, leaks);
            }
        }
    }

    /// Adds the candidates for a place that has the value in another form.
    fn add_converted_place(
        &mut self,
        number: usize,
        page: &Places<'_>,
        index: usize,
        form: &[Value],
        labels: &Labels,
        leaks: &Leaks,
    ) {
        self.is_formed = true;
        self.add_place(number, page, index, form, labels, leaks);
        self.is_formed = false;
    }

    /// Adds the candidates for places that contain the known date among other words.
    fn add_date(
        &mut self,
        number: usize,
        page: &Places<'_>,
        wanted: &KnownValue,
        labels: &Labels,
        leaks: &Leaks,
    ) {
        let Some(day) = &wanted.day else { return };
        for (index, start, end, ways) in page.find_containing_date(day, 6) {
            for pattern in surrounding_patterns(&page.all[index], start, end - start, leaks) {
                let regex = json!({"type": "regex", "parameters": {"pattern": pattern}});
                for way in &ways {
                    let mut after = vec![regex.clone()];
                    after.extend(way.processors(false));
                    self.add_place(number, page, index, &after, labels, leaks);
                }
            }
        }
    }

    /// Adds the candidates for places that contain several known values of a page in one text.
    pub(crate) fn add_joined_values(
        &mut self,
        number: usize,
        page: &Places<'_>,
        wanted: &[KnownValue],
        labels: &Labels,
        leaks: &Leaks,
    ) {
        for found in joined::find(page, wanted) {
            let place = &page.all[found.place];
            let length = found.end - found.start;
            let split = found.split_processor();
            if length == place.text.len() {
                self.add_place(number, page, found.place, &[split], labels, leaks);
                continue;
            }
            for pattern in surrounding_patterns(place, found.start, length, leaks) {
                let regex = json!({"type": "regex", "parameters": {"pattern": pattern}});
                let after = [regex, split.clone()];
                self.add_place(number, page, found.place, &after, labels, leaks);
            }
        }
    }

    /// Adds a candidate for each route to a place. It reads the text of the place, and then runs the processors
    /// `after`.
    pub(crate) fn add_place(
        &mut self,
        number: usize,
        page: &Places<'_>,
        index: usize,
        after: &[Value],
        labels: &Labels,
        leaks: &Leaks,
    ) {
        for route in routes::routes(page, index, labels, leaks) {
            self.add(number, route, after);
        }
    }

    /// Adds candidates for a place without further processors, by the best two routes from each kind of anchor.
    pub(crate) fn add_best_routes(
        &mut self,
        number: usize,
        page: &Places<'_>,
        index: usize,
        labels: &Labels,
        leaks: &Leaks,
    ) {
        const OF_A_KIND: usize = 2;
        let mut routes = routes::routes(page, index, labels, leaks);
        routes.sort_by(|one, other| one.burden.total_cmp(&other.burden));
        let mut kinds: BTreeMap<Anchor, usize> = BTreeMap::new();
        for route in routes {
            let of_kind = kinds.entry(route.anchor).or_default();
            *of_kind += 1;
            if *of_kind <= OF_A_KIND {
                self.add(number, route, &[]);
            }
        }
    }

    /// Adds candidates for a place if the steps of the field's former extraction chain extract the value from its text.
    pub(crate) fn add_with_former_steps(
        &mut self,
        number: usize,
        page: &Places<'_>,
        index: usize,
        steps: &[Value],
        labels: &Labels,
        leaks: &Leaks,
    ) {
        for mut route in routes::routes(page, index, labels, leaks) {
            // White space is kept, because the steps of the former extraction chain may split the text at its line
            // breaks.
            route.is_text = false;
            let burden = route.burden + FORMER_STEPS;
            self.add_chain(number, route, steps, burden);
        }
    }

    fn add(&mut self, number: usize, route: Route, after: &[Value]) {
        let burden = route.burden + after.iter().map(burden_of).sum::<f64>();
        self.add_chain(number, route, after, burden);
    }

    fn add_chain(&mut self, number: usize, route: Route, after: &[Value], burden: f64) {
        let mut processors = vec![route.select];
        processors.extend(route.then);
        if route.is_text {
            processors.push(json!({"type": "collapse_whitespace"}));
        }
        processors.extend(after.iter().cloned());
        let key = Value::from(processors.clone()).to_string();
        if self.by_chain.len() >= MOST && !self.by_chain.contains_key(&key) {
            return;
        }
        let is_formed = self.is_formed;
        let candidate = self.by_chain.entry(key).or_insert_with(|| Candidate {
            anchor: route.anchor,
            burden,
            processors,
            found_on: Vec::new(),
            is_formed,
            without_condition: None,
            is_by_order: false,
            is_unusable: false,
        });
        if candidate.found_on.last() != Some(&number) {
            candidate.found_on.push(number);
        }
    }

    /// For each candidate that yields plain text, adds a variant that keeps only texts that match `pattern`.
    pub(crate) fn add_pattern_filtered(&mut self, pattern: &str) {
        let regex = json!({"type": "regex", "parameters": {"pattern": pattern}});
        let ends_in_text = |candidate: &&Candidate| {
            let last = candidate.processors.last();
            last.is_some_and(|last| last["type"] == "collapse_whitespace")
        };
        let plain = self.by_chain.values().filter(ends_in_text);
        let narrowed: Vec<Candidate> = plain
            .take(MOST - self.by_chain.len().min(MOST))
            .map(|candidate| {
                let mut narrowed = candidate.clone();
                narrowed.processors.push(regex.clone());
                narrowed.burden += NARROWED;
                narrowed
            })
            .collect();
        for candidate in narrowed {
            let key = Value::from(candidate.processors.clone()).to_string();
            self.by_chain.entry(key).or_insert(candidate);
        }
    }

    /// The likeliest candidates, at most `most`: those with stable anchors that were found on the most pages.
    pub(crate) fn select_likeliest(self, most: usize) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = self.by_chain.into_values().collect();
        // A conversion from another form must be found on several pages, because a single page does not prove it.
        let is_shown = |one: &Candidate| !one.is_formed || one.found_on.len() >= forms::SHOWN_BY;
        all.retain(is_shown);
        let rank = |candidate: &Candidate| {
            candidate.found_on.len() as f64 * 2.0 + candidate.anchor.survival() - candidate.burden
        };
        // The sort is stable, so equal candidates stay in the order of their extraction chains.
        all.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
        all.truncate(most);
        all
    }
}
