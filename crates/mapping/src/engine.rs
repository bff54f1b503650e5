//! [`Engine`], which extracts fields and links from pages on one thread.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::sync::Arc;

use serde_json::Value;
use webfill_document::Document;
use webfill_urls::{MAX_URL_BYTES, Url, canonical_url};

use crate::chain::{ChainObserver, NoObserver};
use crate::extraction::{
    Continuation, ExtractError, Extraction, Metadatum, PageInput, PageKind, RequestedParts,
};
use crate::item::Item;
use crate::limits::Limits;
use crate::link_scan::scan_links;
use crate::mapping::{Chain, Field, Mapping};
use crate::page::Page;
use crate::plain_links::PlainLinks;
use crate::processors::pagination::PAGINATION;
use crate::robots_directives;
use crate::row_extraction::extract_listings;
use crate::run::{OutOfTime, Run};
use crate::selectors::CompiledSelectors;
use crate::set::{MappingIndex, MappingSet};

/// A mapping set, with the XPath expressions and CSS selectors that this thread has compiled. Each is compiled at its
/// first use.
pub struct Engine {
    set: Arc<MappingSet>,
    limits: Limits,
    selectors: CompiledSelectors,
}

impl Engine {
    pub fn new(set: Arc<MappingSet>, limits: Limits) -> Engine {
        let selectors = CompiledSelectors::new(set.selectors());
        Engine {
            set,
            limits,
            selectors,
        }
    }

    pub fn set(&self) -> &Arc<MappingSet> {
        &self.set
    }

    /// The limits of parsing a page.
    pub fn document_limits(&self) -> &webfill_document::Limits {
        &self.limits.document
    }

    /// Extracts by the mapping that matches the page's URL. Parses only as far as needed; without a matching mapping
    /// and with the default `wants`, not at all.
    ///
    /// # Errors
    ///
    /// The deadline passed.
    pub fn extract(
        &self,
        page: PageInput<'_>,
        wants: RequestedParts,
    ) -> Result<Extraction, ExtractError> {
        let (mapping, warnings) = self.set.find_with_warnings(page.url.as_str());
        let mut extraction = self.extract_with_mapping(mapping, page, wants)?;
        extraction.warnings.splice(0..0, warnings);
        Ok(extraction)
    }

    /// Extracts from the text of a document (PDF, ...) by the mapping that matches its URL. A document has no elements;
    /// the processor `meta` yields its metadata.
    ///
    /// # Errors
    ///
    /// The deadline passed.
    pub fn extract_document(
        &self,
        page: PageInput<'_>,
        metadata: &[Metadatum],
        wants: RequestedParts,
    ) -> Result<Extraction, ExtractError> {
        let (mapping, warnings) = self.set.find_with_warnings(page.url.as_str());
        let mut extraction = self.extract_document_with_mapping(mapping, page, metadata, wants)?;
        extraction.warnings.splice(0..0, warnings);
        Ok(extraction)
    }

    /// Like [`Engine::extract_document`], but uses the given mapping, whatever the URL.
    ///
    /// # Errors
    ///
    /// The deadline passed.
    pub fn extract_document_with_mapping(
        &self,
        mapping: Option<MappingIndex>,
        page: PageInput<'_>,
        metadata: &[Metadatum],
        wants: RequestedParts,
    ) -> Result<Extraction, ExtractError> {
        let page = Page::new(page, &self.limits, wants.deadline).with_metadata(metadata);
        self.extract_page(mapping, &page, wants)
    }

    /// Extracts by the given mapping, whatever the URL; without a mapping, only links and feeds.
    ///
    /// # Errors
    ///
    /// The deadline passed.
    pub fn extract_with_mapping(
        &self,
        mapping: Option<MappingIndex>,
        page: PageInput<'_>,
        wants: RequestedParts,
    ) -> Result<Extraction, ExtractError> {
        let page = Page::new(page, &self.limits, wants.deadline).with_encoding(wants.encoding);
        self.extract_page(mapping, &page, wants)
    }

    fn extract_page(
        &self,
        mapping: Option<MappingIndex>,
        page: &Page<'_>,
        wants: RequestedParts,
    ) -> Result<Extraction, ExtractError> {
        let run = self.new_run(page, wants);
        let mut extraction = Extraction::default();
        let done = self.extract_into(&mut extraction, mapping, wants, &run);
        done.map_err(|OutOfTime| ExtractError::OutOfTime {
            mapping: mapping
                .map_or("none", |index| self.set.name(index))
                .to_owned(),
            subject: run.subject(),
        })?;
        extraction.truncated = page.truncation_message();
        extraction.warnings = run.into_warnings();
        Ok(extraction)
    }

    pub(crate) fn new_run<'p>(&'p self, page: &'p Page<'p>, wants: RequestedParts) -> Run<'p> {
        Run::new(page, &self.selectors, &self.limits, wants.deadline)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    fn extract_into(
        &self,
        extraction: &mut Extraction,
        mapping: Option<MappingIndex>,
        wants: RequestedParts,
        run: &Run<'_>,
    ) -> Result<(), OutOfTime> {
        if let Some(index) = mapping {
            self.apply_mapping(index, extraction, wants, run)?;
        }
        if wants.all_links {
            run.set_subject("all links".to_owned());
            extraction.all_links = find_all_links(run)?;
        }
        let is_read = run.page.is_parsed() || wants.all_links;
        if wants.shell && is_read && run.page.kind() == PageKind::Html {
            extraction.shell = run.page.tree().and_then(Document::shell);
        }
        if wants.feeds && run.page.kind() == PageKind::Html {
            // If the time is over here, the values that are already extracted are kept.
            match run.check_time() {
                Ok(()) => extraction.feeds = find_feeds(run),
                Err(OutOfTime) => run.warn("no time left to look for feeds"),
            }
        }
        Ok(())
    }

    /// Extracts everything that the mapping selects on a page: fields, rows and links.
    fn apply_mapping(
        &self,
        index: MappingIndex,
        extraction: &mut Extraction,
        wants: RequestedParts,
        run: &Run<'_>,
    ) -> Result<(), OutOfTime> {
        let mapping = self.set.mapping(index);
        extraction.mapping = Some(mapping.name.clone());
        extraction.mapping_version = Some(mapping.version.clone());
        self.read_fields(mapping, extraction, run)?;
        extraction.listings = extract_listings(mapping, wants.row_links, run)?;
        let lists_rows = !mapping.rows.is_empty();
        if wants.mapped_links || lists_rows {
            let links = find_mapped_links(mapping, run)?;
            if lists_rows {
                let of_mapping = |link: &str| self.set.find(link) == Some(index);
                let continuation = find_continuation(mapping, &links, of_mapping, run);
                extraction.continuation = Some(continuation);
            }
            if wants.mapped_links {
                extraction.links = links;
            }
        }
        if run.page.is_parsed() {
            extraction.template = run.page.tree().and_then(Document::sketch);
        }
        Ok(())
    }

    fn read_fields(
        &self,
        mapping: &Mapping,
        extraction: &mut Extraction,
        run: &Run<'_>,
    ) -> Result<(), OutOfTime> {
        let mut bytes = 0;
        for field in &mapping.fields {
            run.set_subject(format!("field {}", field.name));
            run.take_undecided();
            let found = field_value(field, &field.alternatives, Item::Page, run, &mut NoObserver)?;
            if let Some((value, index)) = found {
                bytes += estimate_memory(&value);
                if bytes > self.limits.fields_bytes {
                    run.warn("the page's fields exceed the size limit; the rest was dropped");
                    break;
                }
                extraction.fields.insert(field.name.clone(), value);
                if index > 0 {
                    let number = Value::from(index + 1);
                    extraction.alternatives.insert(field.name.clone(), number);
                }
            } else if run.take_undecided() {
                extraction
                    .alternatives
                    .insert(field.name.clone(), Value::from(UNDECIDED));
            }
        }
        Ok(())
    }
}

fn find_feeds(run: &Run<'_>) -> Vec<String> {
    let mut links = Links::new(run.page, run.page.base(), MAX_FEEDS);
    if let Some(document) = run.page.tree() {
        document.feeds().for_each(|href| links.add(href));
    }
    links.finish(run)
}

/// In `alternatives`, the number of a field that has no value because the page's text can be read in two ways.
const UNDECIDED: u64 = 0;

/// How many feeds of a page are kept at most.
const MAX_FEEDS: usize = 20;

/// The approximate memory of a value in addition to its text, in bytes.
const VALUE_BYTES: usize = 64;

pub(crate) fn estimate_memory(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(estimate_memory).sum(),
        Value::Object(object) => {
            let members = object
                .iter()
                .map(|(name, value)| name.len() + estimate_memory(value));
            members.sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE_BYTES + content
}

/// The value of a field, and the index of the first alternative chain that yields one.
pub(crate) fn field_value<'p, W: ChainObserver>(
    field: &Field,
    alternatives: &[Chain],
    start: Item<'p>,
    run: &Run<'p>,
    watch: &mut W,
) -> Result<Option<(Value, usize)>, OutOfTime> {
    for (index, chain) in alternatives.iter().enumerate() {
        let items: Vec<Option<Item<'_>>> = match field.keep_empty {
            true => chain.run_with_positions(start.clone(), run, watch)?,
            false => {
                let items = chain.run(start.clone(), run, watch)?;
                items.into_iter().map(Some).collect()
            }
        };
        if items.iter().any(Option::is_some) {
            return Ok(value_from_items(field, items, run).map(|value| (value, index)));
        }
    }
    Ok(None)
}

fn value_from_items(
    field: &Field,
    mut items: Vec<Option<Item<'_>>>,
    run: &Run<'_>,
) -> Option<Value> {
    if !field.multiple {
        items.truncate(1);
    }
    let mut values = Vec::with_capacity(items.len());
    let mut bytes = 0;
    for item in items {
        let value = item.map_or(Value::Null, |item| item_to_json(item, run));
        bytes += value.as_str().map_or(0, str::len);
        values.push(value);
        if bytes > run.limits.step_bytes {
            run.warn("the values exceed the size limit; the rest was dropped");
            break;
        }
    }
    match field.multiple {
        true => Some(Value::Array(values)),
        false => values.pop(),
    }
}

fn item_to_json(item: Item<'_>, run: &Run<'_>) -> Value {
    if let Item::Number(number) = item {
        return Value::Number(number);
    }
    let text = run.text(&item);
    let length = text.floor_char_boundary(run.limits.value_bytes);
    if length < text.len() {
        run.warn(format_args!("a value was cut to {length} bytes"));
    }
    Value::String(text[..length].to_owned())
}

fn find_mapped_links(mapping: &Mapping, run: &Run<'_>) -> Result<Vec<String>, OutOfTime> {
    if mapping.url_parsers.is_empty() {
        return Ok(Vec::new());
    }
    let mut links = Links::new(run.page, run.page.base(), run.limits.links);
    for (number, parser) in mapping.url_parsers.iter().enumerate() {
        run.set_subject(format!("url_parsers[{number}]"));
        for item in parser.run(Item::Page, run, &mut NoObserver)? {
            links.add(&run.text(&item));
        }
        run.check_time()?;
    }
    Ok(links.finish(run))
}

/// How the list that this page belongs to continues on further pages.
fn find_continuation(
    mapping: &Mapping,
    links: &[String],
    of_mapping: impl Fn(&str) -> bool,
    run: &Run<'_>,
) -> Continuation {
    let own = run.page.url().as_str();
    let next = links.iter().filter(|link| *link != own && of_mapping(link));
    let mut steps = mapping.url_parsers.iter().flat_map(|chain| &chain.steps);
    let is_made_of_count = steps.any(|step| step.name == PAGINATION.name);
    let signs = &run.list;
    let (is_further, is_counted) = (signs.is_further.get(), signs.is_counted.get());
    Continuation {
        next: next.cloned().collect(),
        is_further,
        is_counted,
        lacks_count: is_made_of_count && !is_further && !is_counted,
        is_cut: signs.is_cut.get(),
    }
}

/// Whether the page forbids following its links.
fn is_nofollow(document: &Document) -> bool {
    document.named_meta().any(|(name, content)| {
        robots_directives::is_for_us(name) && robots_directives::is_nofollow(content)
    })
}

/// Every link of the page, unless the page forbids following its links. If an HTML page has not been parsed into a
/// tree, its links are taken from its tags, which costs a fraction of parsing.
fn find_all_links(run: &Run<'_>) -> Result<Vec<String>, OutOfTime> {
    run.check_time()?;
    if run.page.kind() == PageKind::Html && !run.page.is_parsed() {
        let scan = scan_links(run.page.text(), run.limits.links, run.deadline());
        if scan.is_nofollow {
            return Ok(Vec::new());
        }
        if scan.cut {
            run.warn("the end of the page was not searched for links");
        }
        let own = run.page.url();
        let base = scan
            .base
            .and_then(|href| canonical_url(&href, Some(own)).ok());
        let mut links = Links::new(run.page, base.as_ref().unwrap_or(own), run.limits.links);
        scan.hrefs.iter().for_each(|href| links.add(href));
        return Ok(links.finish(run));
    }
    let mut links = Links::new(run.page, run.page.base(), run.limits.links);
    if let Some(document) = run.page.tree().filter(|document| !is_nofollow(document)) {
        document.links().for_each(|href| links.add(href));
    }
    Ok(links.finish(run))
}

/// Collects links as absolute and canonical URLs, without duplicates.
pub(crate) struct Links<'b> {
    page: &'b Page<'b>,
    base: &'b Url,
    /// Made for the first link: the links of many rows are none.
    plain: OnceCell<PlainLinks>,
    most: usize,
    found: Vec<String>,
    /// By the hash of a link, its place in `found`.
    places: HashMap<u64, usize>,
    left_out: usize,
}

impl<'b> Links<'b> {
    pub(crate) fn new(page: &'b Page<'b>, base: &'b Url, most: usize) -> Links<'b> {
        Links {
            page,
            base,
            plain: OnceCell::new(),
            most,
            found: Vec::new(),
            places: HashMap::new(),
            left_out: 0,
        }
    }

    /// Adds a link as it is written on the page.
    pub(crate) fn add(&mut self, text: &str) {
        // Browsers strip only these characters from links (URL Standard, 4.4). Other white space belongs to the URL.
        let text = text.trim_matches(|c| c <= ' ');
        let plain = self.plain.get_or_init(|| PlainLinks::on(self.base));
        let resolved = plain.resolve(text).or_else(|| {
            let parsed = self.page.resolve_link(text, self.base);
            parsed.ok().map(String::from)
        });
        let link = match resolved {
            Some(link) => link,
            // A link that is not a usable URL is kept as written, because the dispatcher counts such links. Only a text
            // that is too long for a link is dropped.
            None if text.len() <= MAX_URL_BYTES => text.to_owned(),
            None => return self.left_out += 1,
        };
        let hash = self.places.hasher().hash_one(&link);
        let is_full = self.found.len() >= self.most;
        match self.places.entry(hash) {
            // Two links with one hash are possible, though nobody will see them.
            Entry::Occupied(place)
                if self.found[*place.get()] == link || self.found.contains(&link) => {}
            _ if is_full => self.left_out += 1,
            place => {
                place.or_insert(self.found.len());
                self.found.push(link);
            }
        }
    }

    pub(crate) fn finish(self, run: &Run<'_>) -> Vec<String> {
        if self.left_out > 0 {
            run.list.is_cut.set(true);
            run.warn(format_args!(
                "{} links beyond the limits were dropped",
                self.left_out
            ));
        }
        self.found
    }
}
