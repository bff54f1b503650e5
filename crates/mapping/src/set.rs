//! [`MappingSet`], a checked set of mappings that all threads of a process share. All errors are found
//! when it is loaded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::fault::{Fault, LoadErrors, quote};
use crate::mapping::{Mapping, PageLane, read_mapping};
use crate::reader::{Reader, ValueAtPath};
use crate::selectors::Selectors;
use crate::source::{self, Source};
use crate::url_index::UrlIndex;
use crate::url_pattern::UrlPattern;

/// The position of a mapping in its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappingIndex(usize);

/// A checked set of mappings. Share it between threads in an `Arc`.
pub struct MappingSet {
    sources: Vec<Source>,
    mappings: Vec<Mapping>,
    index: UrlIndex,
    selectors: Selectors,
    warnings: Vec<Fault>,
    /// Whether a mapping decides how its pages are read, or adds headers to their requests. Few do, and without them no
    /// URL has to be matched to find this out.
    has_lanes: bool,
    has_headers: bool,
}

impl MappingSet {
    /// Loads every `*.json` of a folder, in order of name, except `schema.json`, hidden files and sub-folders. A folder
    /// without mappings gives an empty set.
    ///
    /// # Errors
    ///
    /// All errors in all of the files.
    pub fn load_dir(dir: &Path) -> Result<MappingSet, LoadErrors> {
        MappingSet::from_sources(source::read_dir(dir).map_err(LoadErrors)?)
    }

    /// The files of a folder that [`MappingSet::load_dir`] would load, in the same order and unchecked, and the faults
    /// of those that cannot be read.
    pub fn sources_of_dir(dir: &Path) -> (Vec<Source>, Vec<Fault>) {
        source::read_dir_leniently(dir)
    }

    /// Loads one file.
    ///
    /// # Errors
    ///
    /// All errors in the file.
    pub fn load_file(path: &Path) -> Result<MappingSet, LoadErrors> {
        let source = source::read_file(path).map_err(|fault| LoadErrors(vec![fault]))?;
        MappingSet::from_sources(vec![source])
    }

    /// Checks mappings that were read elsewhere. Each source contains one mapping or a list. If several
    /// mappings match a URL, the first one in the order of sources wins.
    ///
    /// # Errors
    ///
    /// All errors in all of them.
    pub fn from_sources(sources: Vec<Source>) -> Result<MappingSet, LoadErrors> {
        let mut loading = Loading::default();
        for source in &sources {
            loading.read(source);
        }
        if !loading.faults.is_empty() {
            return Err(LoadErrors(loading.faults));
        }
        Ok(MappingSet {
            has_lanes: loading.mappings.iter().any(|one| one.lane.is_some()),
            has_headers: loading.mappings.iter().any(|one| !one.headers.is_empty()),
            sources,
            mappings: loading.mappings,
            index: UrlIndex::new(loading.url_patterns),
            selectors: loading.selectors,
            warnings: loading.warnings,
        })
    }

    /// The files as they were read, to be sent to workers.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Likely mistakes in the files, which do not prevent the use of the set.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }

    /// A hash over the contents of all files.
    pub fn version(&self) -> String {
        let texts: Vec<&str> = self
            .sources
            .iter()
            .map(|source| source.text.as_str())
            .collect();
        webfill_urls::page_hash(&texts.join("\0"))
    }

    /// The number of mappings.
    pub fn len(&self) -> usize {
        self.mappings.len()
    }

    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// The positions of all mappings, in order of precedence.
    pub fn indexes(&self) -> impl Iterator<Item = MappingIndex> {
        (0..self.mappings.len()).map(MappingIndex)
    }

    /// The names of all mappings, in order of precedence.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.mappings.iter().map(|mapping| mapping.name.as_str())
    }

    /// The mapping of a canonical URL: the first whose patterns match it.
    pub fn find(&self, url: &str) -> Option<MappingIndex> {
        let found = self.find_with_warnings(url);
        for warning in found.1 {
            tracing::warn!(url, "{warning}");
        }
        found.0
    }

    /// Whether a mapping matches a canonical URL. `None` if this is unknown, because a pattern took too many steps.
    pub fn has_mapping_for(&self, url: &str) -> Option<bool> {
        let found = self.index.find_first(url);
        let is_match = !found.mappings.is_empty();
        (is_match || found.gave_up.is_empty()).then_some(is_match)
    }

    /// Every mapping that matches a canonical URL; the first of them wins.
    pub fn find_all(&self, url: &str) -> Vec<MappingIndex> {
        self.index
            .find_all(url)
            .mappings
            .into_iter()
            .map(MappingIndex)
            .collect()
    }

    pub(crate) fn find_with_warnings(&self, url: &str) -> (Option<MappingIndex>, Vec<String>) {
        let found = self.index.find_first(url);
        let warn = |&mapping: &usize| {
            let name = &self.mappings[mapping].name;
            format!("a URL pattern of mapping {name} took too many steps; counted as no match")
        };
        (
            found.mappings.first().copied().map(MappingIndex),
            found.gave_up.iter().map(warn).collect(),
        )
    }

    /// The mapping with this name.
    pub fn find_by_name(&self, name: &str) -> Option<MappingIndex> {
        self.mappings
            .iter()
            .position(|mapping| mapping.name == name)
            .map(MappingIndex)
    }

    /// The name of a mapping.
    pub fn name(&self, index: MappingIndex) -> &str {
        &self.mapping(index).name
    }

    /// The version of a mapping: the first 32 digits of the SHA-256 of its file.
    pub fn version_of(&self, index: MappingIndex) -> &str {
        &self.mapping(index).version
    }

    /// The headers that the mapping of a canonical URL adds to its request; the names are in lower case.
    pub fn find_headers(&self, url: &str) -> &[(String, String)] {
        let found = self.has_headers.then(|| self.find(url)).flatten();
        found.map_or(&[], |index| &self.mapping(index).headers)
    }

    /// The fields that a mapping recognises a page's record by.
    pub fn match_fields(&self, index: MappingIndex) -> &[String] {
        &self.mapping(index).match_fields
    }

    /// The fields whose lists continue on further pages of the mapping.
    pub fn continued_fields(&self, index: MappingIndex) -> Vec<&str> {
        let fields = self.mapping(index).fields.iter();
        let continued = fields.filter(|field| field.continues);
        continued.map(|field| field.name.as_str()).collect()
    }

    /// Whether the mapping's pages list rows.
    pub fn lists_rows(&self, index: MappingIndex) -> bool {
        !self.mapping(index).rows.is_empty()
    }

    /// Whether any mapping has lists whose missing rows count as gone.
    pub fn has_complete_lists(&self) -> bool {
        let mut rules = self.mappings.iter().flat_map(|mapping| &mapping.rows);
        rules.any(|rule| rule.complete)
    }

    /// The row rules of a mapping: the dataset of each, and whether missing rows of its lists count as gone.
    pub fn datasets_with_completeness(
        &self,
        index: MappingIndex,
    ) -> impl Iterator<Item = (&str, bool)> {
        let rules = self.mapping(index).rows.iter();
        rules.map(|rule| (rule.dataset.as_str(), rule.complete))
    }

    /// The mapping's description.
    pub fn description(&self, index: MappingIndex) -> Option<&str> {
        self.mapping(index).description.as_deref()
    }

    /// How the mapping of a canonical URL requires its pages to be read; `None` if the crawl decides.
    pub fn find_lane(&self, url: &str) -> Option<PageLane> {
        let found = self.has_lanes.then(|| self.find(url)).flatten();
        self.mapping(found?).lane
    }

    /// The names of the fields of one mapping, in the order of its file.
    pub fn fields_of(&self, index: MappingIndex) -> Vec<&str> {
        let fields = self.mapping(index).fields.iter();
        fields.map(|field| field.name.as_str()).collect()
    }

    /// The row rules of a mapping: for each, its dataset and the names of its fields.
    pub fn rows_of(&self, index: MappingIndex) -> Vec<(&str, Vec<&str>)> {
        let rules = self.mapping(index).rows.iter();
        let named = rules.map(|rule| {
            let fields = rule.fields.iter().map(|one| one.field.name.as_str());
            (rule.dataset.as_str(), fields.collect())
        });
        named.collect()
    }

    /// Drops everything that the mappings extract except these fields; links are dropped, too. A row rule that has one
    /// of the fields is kept with all its fields, because they identify the rows.
    pub fn retain_fields(&mut self, names: &[String]) {
        for mapping in &mut self.mappings {
            mapping.fields.retain(|field| names.contains(&field.name));
            mapping.rows.retain(|rule| {
                let mut fields = rule.fields.iter();
                fields.any(|one| names.contains(&one.field.name))
            });
            mapping.url_parsers.clear();
        }
    }

    /// The names of the fields that may have several values.
    pub fn list_fields(&self) -> BTreeSet<&str> {
        let fields = self.mappings.iter().flat_map(|mapping| &mapping.fields);
        let lists = fields.filter(|field| field.multiple);
        lists.map(|field| field.name.as_str()).collect()
    }

    /// The names of the fields that any mapping extracts.
    pub fn field_names(&self) -> BTreeSet<&str> {
        let fields = self.mappings.iter().flat_map(|mapping| &mapping.fields);
        fields.map(|field| field.name.as_str()).collect()
    }

    /// The names of the fields that each mapping extracts, by the mapping's name.
    pub fn fields_by_mapping(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for mapping in &self.mappings {
            let names = mapping.fields.iter().map(|field| field.name.as_str());
            all.entry(&mapping.name).or_default().extend(names);
        }
        all
    }

    pub(crate) fn mapping(&self, index: MappingIndex) -> &Mapping {
        &self.mappings[index.0]
    }

    pub(crate) fn selectors(&self) -> &Selectors {
        &self.selectors
    }
}

/// What was read from mapping files so far, while a set is loaded.
#[derive(Default)]
struct Loading {
    mappings: Vec<Mapping>,
    url_patterns: Vec<(usize, UrlPattern)>,
    selectors: Selectors,
    /// The file where each mapping name was used first.
    names: HashMap<String, String>,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl Loading {
    fn read(&mut self, source: &Source) {
        let (mut reader, value) = match Reader::parse(source) {
            Ok(parsed) => parsed,
            Err(fault) => return self.faults.push(fault),
        };
        let top = ValueAtPath {
            value: &value,
            path: String::new(),
        };
        let entries = match value.is_array() {
            true => reader.read_list(&top),
            false => vec![top],
        };
        for entry in entries {
            self.read_entry(&entry, &mut reader, source);
        }
        let (faults, warnings) = reader.into_findings();
        self.faults.extend(faults);
        self.warnings.extend(warnings);
    }

    fn read_entry(&mut self, at: &ValueAtPath<'_>, reader: &mut Reader<'_>, source: &Source) {
        let Some((mapping, patterns)) = read_mapping(at, reader, &mut self.selectors) else {
            return;
        };
        if let Some(other) = self.names.get(&mapping.name) {
            let message = format!(
                "duplicate mapping name {}, also in {other}",
                quote(&mapping.name)
            );
            reader.add_fault(&crate::json_positions::key_path(&at.path, "name"), message);
        }
        self.names
            .entry(mapping.name.clone())
            .or_insert_with(|| source.name.clone());
        let number = self.mappings.len();
        self.url_patterns
            .extend(patterns.into_iter().map(|pattern| (number, pattern)));
        self.mappings.push(mapping);
    }
}
