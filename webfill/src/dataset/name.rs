//! The name of the dataset that a crawl's records belong to: the name that the user gives, or else that of their
//! source.

use std::path::Path;

use webfill_scheduler::local_crawl::ChosenDataset;
use webfill_service::Fault;
use webfill_store::DatasetName;

use super::DatasetPlan;

/// The name of the dataset of all records that come through a pipe.
const OF_PIPES: &str = "stdin";

/// The name of the dataset for a command whose URLs belong to no records.
const OF_NOTHING: &str = "urls";

/// The name of a crawl's dataset, and where the name comes from.
pub enum NamedDataset {
    /// A flag or a setting gives the name.
    Given(DatasetName),
    /// The dataset has the name of its source.
    OfSource(DatasetName),
    /// Records come through a pipe, which has no name.
    OfPipe(DatasetName),
    /// There is no source of records.
    OfNothing(DatasetName),
}

impl NamedDataset {
    /// Chooses the name of the dataset, before anything is opened.
    pub fn choose(
        given: Option<DatasetName>,
        seeds: Option<&Path>,
        collection: Option<&DatasetPlan>,
    ) -> Result<NamedDataset, Fault> {
        if let Some(name) = given {
            return Ok(NamedDataset::Given(name));
        }
        let named = |name: &str| {
            let name = name.parse::<DatasetName>();
            name.map_err(|refusal| {
                Fault::usage(format!("{refusal}: name the dataset with --dataset NAME"))
            })
        };
        match (collection, seeds) {
            (Some(plan), _) => named(&plan.collection_name()).map(NamedDataset::OfSource),
            (None, Some(path)) if is_pipe(path) => named(OF_PIPES).map(NamedDataset::OfPipe),
            (None, Some(path)) => named(&name_of_file(path)).map(NamedDataset::OfSource),
            (None, None) => named(OF_NOTHING).map(NamedDataset::OfNothing),
        }
    }

    /// Decides which dataset a crawl uses. A crawl that has begun keeps its `known` dataset, unless the user has named
    /// another one.
    pub fn given_or_known_or_default(&self, known: Option<DatasetName>) -> DatasetName {
        match (self, known) {
            (NamedDataset::Given(name), _) => name.clone(),
            (_, Some(known)) => known,
            (
                NamedDataset::OfSource(name)
                | NamedDataset::OfPipe(name)
                | NamedDataset::OfNothing(name),
                None,
            ) => name.clone(),
        }
    }

    /// The dataset as the dispatcher stores it; `None` if the command has no source of records.
    pub fn to_chosen_dataset(&self) -> Option<ChosenDataset> {
        let (name, is_given) = match self {
            NamedDataset::Given(name) => (name, true),
            NamedDataset::OfSource(name) | NamedDataset::OfPipe(name) => (name, false),
            NamedDataset::OfNothing(_) => return None,
        };
        Some(ChosenDataset {
            name: name.to_string(),
            is_given,
        })
    }
}

/// Whether the input is not a regular file: standard input, or for example the pipe that a shell makes for `<(...)`.
fn is_pipe(path: &Path) -> bool {
    path.as_os_str() == "-" || !path.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// The file's name without endings: `people` for `people.csv.gz`.
fn name_of_file(path: &Path) -> String {
    let unpacked = match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("gz") => path.with_extension(""),
        _ => path.to_owned(),
    };
    let name = unpacked.file_stem().unwrap_or(unpacked.as_os_str());
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset_name_of(path: &Path) -> Result<DatasetName, Fault> {
        NamedDataset::choose(None, Some(path), None)
            .map(|named| named.given_or_known_or_default(None))
    }

    #[test]
    fn a_file_gives_its_name_without_endings() {
        let folder = tempfile::tempdir().unwrap();
        for (file, name) in [
            ("people.csv", "people"),
            ("people.csv.gz", "people"),
            ("People.JSONL.GZ", "People"),
            ("people.2026.csv", "people.2026"),
            ("people", "people"),
            (".csv", ".csv"),
        ] {
            let path = folder.path().join(file);
            std::fs::write(&path, "").unwrap();
            assert_eq!(dataset_name_of(&path).unwrap().as_str(), name);
        }
        assert_eq!(dataset_name_of(Path::new("-")).unwrap().as_str(), "stdin");
        assert_eq!(
            dataset_name_of(Path::new("/dev/null")).unwrap().as_str(),
            "stdin"
        );
    }

    #[test]
    fn a_file_name_that_is_no_dataset_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("two\nlines.csv");
        std::fs::write(&path, "").unwrap();
        let refusal = dataset_name_of(&path).unwrap_err();
        assert!(refusal.message.contains("--dataset NAME"), "{refusal}");
        let given = "people".parse().ok();
        assert!(NamedDataset::choose(given, Some(&path), None).is_ok());
    }

    #[test]
    fn a_given_name_precedes_that_of_a_begun_crawl_which_precedes_that_of_the_source() {
        let known = || "unnamed".parse().ok();
        let path = Path::new("-");
        let named = NamedDataset::choose("mine".parse().ok(), Some(path), None).unwrap();
        assert_eq!(named.given_or_known_or_default(known()).as_str(), "mine");
        let named = NamedDataset::choose(None, Some(path), None).unwrap();
        assert_eq!(named.given_or_known_or_default(known()).as_str(), "unnamed");
    }
}
