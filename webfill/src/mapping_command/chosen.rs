//! Chooses the mapping to try on a page, and its fields.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webfill_mapping::{MappingIndex, MappingSet, nearest_first};
use webfill_service::Fault;
use webfill_urls::Url;

use crate::cli::MappingTestOptions;
use crate::mapping_files::load_files;

/// The most names that an error lists.
const NAMES_SHOWN: usize = 10;

/// The mappings named on the command line, with only the requested fields.
pub struct ChosenMappings {
    pub set: Arc<MappingSet>,
    /// The mapping that `--mapping` names.
    named: Option<MappingIndex>,
    /// The fields that `--field` names.
    fields: Vec<String>,
    file: PathBuf,
}

impl ChosenMappings {
    pub fn load(options: &MappingTestOptions) -> Result<ChosenMappings, Fault> {
        let mut set = load_files(&options.file)?;
        let named = options.mapping.as_deref();
        let named = named
            .map(|name| find_by_name(&set, name, &options.file))
            .transpose()?;
        if !options.fields.is_empty() {
            for field in &options.fields {
                check_field(&set, named, field, &options.file)?;
            }
            set.retain_fields(&options.fields);
        }
        Ok(ChosenMappings {
            set: Arc::new(set),
            named,
            fields: options.fields.clone(),
            file: options.file.clone(),
        })
    }

    /// The mapping to try: the one named on the command line, or else the one that a crawl would use for the URL.
    /// Without a URL, it is the only mapping of the file.
    pub fn mapping_for_page(&self, url: Option<&Url>) -> Result<Option<MappingIndex>, Fault> {
        let file = self.file.display();
        if self.named.is_some() {
            return Ok(self.named);
        }
        if let Some(url) = url {
            return Ok(self.set.find(url.as_str()));
        }
        let mut indexes = self.set.indexes();
        match (indexes.next(), indexes.next()) {
            (Some(only), None) => Ok(Some(only)),
            (None, _) => Err(Fault::usage(format!("{file}: no mapping in it"))),
            _ => Err(Fault::usage(format!(
                "{file}: several mappings: choose one with --url or --mapping"
            ))),
        }
    }

    pub fn has_rows(&self) -> bool {
        let mut indexes = self.set.indexes();
        indexes.any(|index| !self.set.rows_of(index).is_empty())
    }

    /// The mapping to try if there is only one page. An error if no mapping applies to it, or if the mapping has none
    /// of the requested fields.
    pub fn mapping_for_only_page(&self, url: Option<&Url>) -> Result<MappingIndex, Fault> {
        let file = self.file.display();
        let Some(index) = self.mapping_for_page(url)? else {
            let url = url.map_or("", Url::as_str);
            return Err(Fault::usage(format!(
                "{file}: no url_pattern matches {url}; to try it anyway, leave out --url or name the mapping with --mapping"
            )));
        };
        let has_none = self.set.fields_of(index).is_empty() && self.set.rows_of(index).is_empty();
        if !self.fields.is_empty() && has_none {
            let (name, fields) = (self.set.name(index), self.fields.join(", "));
            return Err(Fault::usage(format!(
                "{file}: mapping {name} matches this page, but has no field {fields}"
            )));
        }
        Ok(index)
    }
}

fn find_by_name(set: &MappingSet, name: &str, file: &Path) -> Result<MappingIndex, Fault> {
    set.find_by_name(name).ok_or_else(|| {
        Fault::usage(format!(
            "{}: no mapping `{name}`; there {}",
            file.display(),
            list_names(name, set.names())
        ))
    })
}

/// Refuses a field that the named mapping does not have. If no mapping is named, some mapping must have it.
fn check_field(
    set: &MappingSet,
    named: Option<MappingIndex>,
    field: &str,
    file: &Path,
) -> Result<(), Fault> {
    let mut known: Vec<&str> = match named {
        Some(named) => set.fields_of(named),
        None => set.field_names().into_iter().collect(),
    };
    let of_rows = set
        .indexes()
        .filter(|index| named.is_none_or(|named| named == *index));
    known.extend(of_rows.flat_map(|index| {
        let rows = set.rows_of(index).into_iter();
        rows.flat_map(|(_, fields)| fields)
    }));
    let mut seen = HashSet::new();
    known.retain(|name| seen.insert(*name));
    if known.contains(&field) {
        return Ok(());
    }
    Err(Fault::usage(format!(
        "{}: no field `{field}`; there {}",
        file.display(),
        list_names(field, known)
    )))
}

/// Lists names with a verb: `is people`, or `are people, places and 3 more`.
fn list_names<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let names = nearest_first(typed, names);
    let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
    match names.len() {
        0 => "is none".to_owned(),
        1 => format!("is {shown}"),
        count if count > NAMES_SHOWN => format!("are {shown} and {} more", count - NAMES_SHOWN),
        _ => format!("are {shown}"),
    }
}
