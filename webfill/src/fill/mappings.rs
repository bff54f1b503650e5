//! The mappings of a table: their files, their origins, and the chains of their fields.

mod origin;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use webfill_learn::{FieldReport, LearnedMapping};
use webfill_mapping::{MappingIndex, MappingSet, Source};
use webfill_service::Fault;

use self::origin::{FieldOrigin, Origin, origin_file, read_origin};
use super::project::Project;
use crate::mapping_command::learn::output;
use crate::mapping_command::writing::write_atomically;

/// The mappings of a table, with their origins.
pub struct Mappings {
    pub set: Arc<MappingSet>,
    /// The JSON of each mapping in its file, by its name.
    texts: BTreeMap<String, Value>,
    origins: BTreeMap<String, Origin>,
    /// The names of the mappings in each file.
    names: BTreeMap<String, Vec<String>>,
}

impl Mappings {
    pub fn load(project: &Project) -> Result<Mappings, Fault> {
        let set = MappingSet::load_dir(&project.mappings_folder()).map_err(Fault::usage)?;
        let mut texts = BTreeMap::new();
        for source in set.sources() {
            let value: Value = serde_json::from_str(&source.text).map_err(Fault::usage)?;
            let mappings = match value {
                Value::Array(mappings) => mappings,
                one => vec![one],
            };
            for mapping in mappings {
                if let Some(name) = mapping["name"].as_str() {
                    texts.insert(name.to_owned(), mapping);
                }
            }
        }
        let mut origins = BTreeMap::new();
        for index in set.indexes() {
            let name = set.name(index);
            if let Some(origin) = read_origin(project, name)
                && origin.version == set.version_of(index)
            {
                origins.insert(name.to_owned(), origin);
            }
        }
        let of_file = |source: &Source| (source.name.clone(), names_of_mappings_in(&source.text));
        let names = set.sources().iter().map(of_file).collect();
        Ok(Mappings {
            set: Arc::new(set),
            texts,
            origins,
            names,
        })
    }

    pub fn covers(&self, url: &str) -> bool {
        self.set.find(url).is_some()
    }

    /// How a mapping was learned; `None` if a person wrote or edited it.
    pub fn origin(&self, index: MappingIndex) -> Option<&Origin> {
        self.origins.get(self.set.name(index))
    }

    /// The position of a mapping in the set.
    pub fn position(&self, mapping: MappingIndex) -> u32 {
        let place = self.set.indexes().position(|index| index == mapping);
        place.map_or(u32::MAX, |place| place as u32)
    }

    /// The same mappings, except that each field of a learned mapping yields all its values, even if it normally takes
    /// only the first one.
    pub fn with_all_values(&self) -> Result<MappingSet, Fault> {
        let of_mapping = |(name, mapping): (&String, &Value)| {
            let mut mapping = mapping.clone();
            if self.origins.contains_key(name)
                && let Some(fields) = mapping["fields"].as_array_mut()
            {
                for field in fields {
                    if field["multiple"] == true {
                        // A text such as `more ...` shows that a list is incomplete, so it must be read, too.
                        remove_cut_off_filters(field);
                    }
                    field["multiple"] = true.into();
                }
            }
            Source {
                name: name.clone(),
                text: mapping.to_string(),
            }
        };
        MappingSet::from_sources(self.texts.iter().map(of_mapping).collect()).map_err(Fault::error)
    }

    /// Whether a field of a learned mapping takes the first of several values.
    pub fn takes_first(&self, mapping: &str, field: &str) -> bool {
        let field = self.field(mapping, field);
        self.origins.contains_key(mapping) && field.is_some_and(|field| field["multiple"] != true)
    }

    fn field(&self, mapping: &str, field: &str) -> Option<&Value> {
        let fields = self.texts[mapping]["fields"].as_array()?;
        fields.iter().find(|one| one["name"] == field)
    }

    /// The processors of one of a field's chains. Chain 0 is the first one.
    pub fn chain(&self, mapping: &str, field: &str, chain: usize) -> Value {
        let chain = self
            .field(mapping, field)
            .map(|field| match field.get("alternatives") {
                Some(alternatives) => alternatives[chain].clone(),
                None => field["processors"].clone(),
            });
        chain.unwrap_or_default()
    }

    /// Whether a site has mappings, and all of them were learned.
    pub fn has_only_learned_mappings(&self, site: &str) -> bool {
        let of_site = |origin: &&Origin| origin.site == site;
        let files = self.files_of(site);
        let is_learned = |file: &String| {
            let names = self.names[file].iter();
            names
                .into_iter()
                .all(|name| self.origins.contains_key(name))
        };
        self.origins.values().any(|origin| of_site(&origin)) && files.iter().all(is_learned)
    }

    /// The confidence in a proposed field. `None` if the field was learned from known values, or a person has written
    /// it.
    pub fn proposed_confidence(&self, index: MappingIndex, field: &str) -> Option<f64> {
        self.origin(index)?.fields.get(field)?.proposed
    }

    /// The site, name and confidence of each proposed field.
    pub fn proposed_fields(&self) -> impl Iterator<Item = (&str, &str, f64)> {
        self.origins.values().flat_map(|origin| {
            let fields = origin.fields.iter();
            fields.filter_map(|(name, field)| {
                Some((origin.site.as_str(), name.as_str(), field.proposed?))
            })
        })
    }

    /// The proposed fields of a site.
    pub fn proposed_fields_of(&self, site: &str) -> BTreeSet<&str> {
        let of_site = self.proposed_fields().filter(|(of, ..)| *of == site);
        of_site.map(|(_, name, _)| name).collect()
    }

    /// The fields of a site that were learned from known values.
    pub fn learned_fields_of<'m>(&'m self, site: &'m str) -> impl Iterator<Item = &'m str> {
        let of_site = self
            .origins
            .values()
            .filter(move |origin| origin.site == site);
        let fields = of_site.flat_map(|origin| &origin.fields);
        let learned = fields.filter(|(_, field)| field.proposed.is_none());
        learned.map(|(name, _)| name.as_str())
    }

    /// Whether the mapping of a page was written or edited by a person.
    pub fn is_by_person(&self, url: &str) -> bool {
        let found = self.set.find(url);
        found.is_some_and(|index| self.origin(index).is_none())
    }

    /// The versions of the learned mappings of a site.
    pub fn learned_versions(&self, site: &str) -> String {
        let of_site = self.origins.values().filter(|origin| origin.site == site);
        let versions: BTreeSet<&str> = of_site.map(|origin| origin.version.as_str()).collect();
        versions.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// Whether a learned mapping of a site reads a field.
    pub fn reads_field(&self, site: &str, field: &str) -> bool {
        let mut of_site = self.origins.values().filter(|origin| origin.site == site);
        of_site.any(|origin| origin.fields.contains_key(field))
    }

    /// The pages that the mappings of a site were learned from.
    pub fn pages_of_site(&self, site: &str) -> impl Iterator<Item = String> {
        let of_site = self
            .origins
            .values()
            .filter(move |origin| origin.site == site);
        of_site.flat_map(|origin| origin.pages.iter().cloned())
    }

    /// Removes the learned mappings of a site from their files. Other mappings in these files stay, such as one that a
    /// person has edited.
    pub fn remove(&self, site: &str) -> Result<(), Fault> {
        for file in self.files_of(site) {
            let names = self.names[&file].iter();
            let others = names.filter(|name| !self.is_learned_for(name, site));
            let kept: Vec<Value> = others.map(|name| self.texts[name].clone()).collect();
            if !kept.is_empty() {
                write_atomically(Path::new(&file), output::format_mappings(kept)?.as_bytes())?;
                continue;
            }
            std::fs::remove_file(&file)
                .map_err(|error| Fault::error(format!("cannot remove {file}: {error}")))?;
        }
        Ok(())
    }

    /// The files of learned mappings of a site.
    fn files_of(&self, site: &str) -> Vec<String> {
        let is_its = |(_, names): &(&String, &Vec<String>)| {
            let mut names = names.iter();
            names.any(|name| self.is_learned_for(name, site))
        };
        let files = self.names.iter().filter(is_its);
        files.map(|(file, _)| file.clone()).collect()
    }

    /// Whether a mapping was learned for a site.
    fn is_learned_for(&self, name: &str, site: &str) -> bool {
        let origin = self.origins.get(name);
        origin.is_some_and(|origin| origin.site == site)
    }

    /// Writes the learned mappings of a site and their origins, and removes the site's former learned mappings. A
    /// person's file stays; the new file then gets another name.
    pub fn replace(
        &self,
        project: &Project,
        site: &str,
        learned: Vec<LearnedMapping>,
    ) -> Result<(), Fault> {
        self.replace_proposed(project, site, learned, &BTreeMap::new())
    }

    /// Like [`Mappings::replace`], but the fields of `proposed` were learned from proposed values.
    pub fn replace_proposed(
        &self,
        project: &Project,
        site: &str,
        mut learned: Vec<LearnedMapping>,
        proposed: &BTreeMap<String, f64>,
    ) -> Result<(), Fault> {
        let former = self.files_of(site);
        self.remove(site)?;
        let of_former = former.iter().flat_map(|file| &self.names[file]);
        let freed: BTreeSet<String> = of_former
            .filter(|name| self.is_learned_for(name, site))
            .cloned()
            .collect();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let stem = site.replace(|c| !is_plain(c), "_");
        let mut number = 1;
        for mapping in &mut learned {
            let name = loop {
                let name = numbered_name(&stem, number);
                number += 1;
                if freed.contains(&name) || !self.texts.contains_key(&name) {
                    break name;
                }
            };
            mapping.mapping["name"] = name.into();
        }
        let file = (1..)
            .map(|number| {
                project
                    .mappings_folder()
                    .join(numbered_name(&stem, number) + ".json")
            })
            .find(|file| !file.exists());
        let file: PathBuf = file.ok_or_else(|| Fault::error("all names are taken"))?;
        let text =
            output::format_mappings(learned.iter().map(|one| one.mapping.clone()).collect())?;
        let set = output::load_checked("the mapping", &text)?;
        for mapping in &learned {
            let name = mapping.mapping["name"].as_str().unwrap_or_default();
            let version = set.find_by_name(name).map(|index| set.version_of(index));
            let origin = Origin {
                site: site.to_owned(),
                version: version.unwrap_or_default().to_owned(),
                pages: mapping.pages.clone(),
                fields: mapping
                    .fields
                    .iter()
                    .map(|field| {
                        if let Some(confidence) = proposed.get(&field.field) {
                            let origin = FieldOrigin::from_proposal(field, *confidence);
                            return (field.field.clone(), origin);
                        }
                        let origin = FieldOrigin {
                            proposed: None,
                            anchor: field.anchor.clone().unwrap_or_default(),
                            confidence: field.confidence,
                            why: field.why.clone(),
                            reads: field.agree.len() as u32,
                            misses: field.disagree.len() as u32,
                            agreement: best_other_agreement(field),
                            without_page: field.without_page.iter().cloned().collect(),
                            disputed: field.disputed.iter().cloned().collect(),
                            expected: field.reads,
                            least: field.least,
                        };
                        (field.field.clone(), origin)
                    })
                    .collect(),
            };
            let text = serde_json::to_string_pretty(&origin).map_err(Fault::error)?;
            write_atomically(&origin_file(project, name), text.as_bytes())?;
        }
        // Write the mappings last, because a mapping without its origin would count as a person's.
        write_atomically(&file, text.as_bytes())
    }
}

/// Removes the processors that drop incomplete texts.
fn remove_cut_off_filters(field: &mut Value) {
    let is_kept = |processor: &Value| !webfill_learn::drops_truncated_texts(processor);
    let without = |chain: &mut Value| {
        if let Some(chain) = chain.as_array_mut() {
            chain.retain(is_kept);
        }
    };
    let alternatives = field.get_mut("alternatives").and_then(Value::as_array_mut);
    if let Some(alternatives) = alternatives {
        alternatives.iter_mut().for_each(without);
    } else if let Some(chain) = field.get_mut("processors") {
        without(chain);
    }
}

/// The highest agreement with the first chain among chains that use another kind of anchor and read a known value.
fn best_other_agreement(field: &FieldReport) -> f64 {
    let others = field.candidates.iter().skip(1);
    let reading = others.filter(|other| !other.agree.is_empty());
    reading.map(|other| other.agreement).fold(0.0, f64::max)
}

/// The names of the mappings in a file.
fn names_of_mappings_in(text: &str) -> Vec<String> {
    let mappings = match serde_json::from_str(text) {
        Ok(Value::Array(mappings)) => mappings,
        Ok(one) => vec![one],
        Err(_) => Vec::new(),
    };
    let names = mappings
        .iter()
        .filter_map(|mapping| mapping["name"].as_str());
    names.map(str::to_owned).collect()
}

/// The pages of other layouts that learning has already tried, by site. They are not tried again.
pub fn read_tried_pages(project: &Project) -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(tried_file(project)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

pub fn save_tried_pages(
    project: &Project,
    pages: &BTreeMap<String, BTreeSet<String>>,
) -> Result<(), Fault> {
    let mut tried = read_tried_pages(project);
    tried.extend(pages.clone());
    let text = serde_json::to_string_pretty(&tried).map_err(Fault::error)?;
    write_atomically(&tried_file(project), text.as_bytes())
}

/// For each site and field, the number of rows with known values when the site's mappings were learned.
pub type KnownCounts = BTreeMap<String, BTreeMap<String, usize>>;

pub fn known_counts(project: &Project) -> KnownCounts {
    let text = std::fs::read_to_string(known_counts_file(project)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

pub fn save_known_counts(project: &Project, counts: KnownCounts) -> Result<(), Fault> {
    if counts.is_empty() {
        return Ok(());
    }
    let mut all = known_counts(project);
    all.extend(counts);
    let text = serde_json::to_string_pretty(&all).map_err(Fault::error)?;
    write_atomically(&known_counts_file(project), text.as_bytes())
}

/// The file with the number of known values per site. No site can have the same name as the file.
fn known_counts_file(project: &Project) -> PathBuf {
    project.learned_folder().join("+known-values.json")
}

/// The file of pages that learning has tried. No site can have the same name as the file.
fn tried_file(project: &Project) -> PathBuf {
    project.learned_folder().join("+other-layouts.json")
}

fn numbered_name(stem: &str, number: usize) -> String {
    match number {
        1 => stem.to_owned(),
        number => format!("{stem}{number}"),
    }
}
