//! The flags that name a MongoDB dataset as a crawl's input: checks them, and opens the dataset.

mod name;

use std::sync::Arc;

use clap::Args;
use webfill_service::Fault;
use webfill_store::{Dataset, DatasetSource, StoreError, StoreUri, WriteBack};

pub use name::NamedDataset;

/// The flags of `webfill crawl` about records that are documents.
#[derive(Debug, Clone, Default, Args)]
pub struct DatasetOptions {
    /// MongoDB database to read records from
    #[arg(
        long,
        value_name = "URI",
        env = "WEBFILL_RECORDS",
        hide_env_values = true,
        conflicts_with = "seeds",
        requires = "records_collection"
    )]
    pub records: Option<String>,
    /// Collection of the records
    #[arg(long, value_name = "NAME", requires = "records")]
    pub records_collection: Option<String>,
    /// Only documents that match this query, in extended JSON [default: {}]
    #[arg(long, value_name = "JSON", requires = "records")]
    pub records_query: Option<String>,
    /// Part of each document to read; expressions are allowed [default: all of it]
    #[arg(long, value_name = "JSON", requires = "records")]
    pub records_projection: Option<String>,
    /// Write found values to this collection of the same database; existing values stay [default: nowhere]
    #[arg(long, value_name = "COLLECTION", requires = "records")]
    pub write_back: Option<String>,
    /// Overwrite values, keeping the old ones in `history`
    ///
    /// In a new crawl, for fields that a mapping extracts or a record's `want` lists. A value stays until a page gives
    /// another. Your own corrections are never overwritten.
    #[arg(long, requires = "of_records")]
    pub refresh: bool,
}

/// A dataset in MongoDB whose flags have been checked.
pub struct DatasetPlan {
    source: DatasetSource,
    pub write_back: Option<WriteBack>,
}

impl DatasetOptions {
    /// Checks the flags without connecting to the database. `None` if they name no dataset.
    pub fn validate(&self) -> Result<Option<DatasetPlan>, Fault> {
        let Some(uri) = &self.records else {
            return Ok(None);
        };
        let collection = self.records_collection.as_deref().unwrap_or_default();
        let source = DatasetSource::new(mongodb_uri(uri)?, collection);
        let mut source = source.map_err(usage_fault_for("--records-collection"))?;
        if let Some(query) = &self.records_query {
            source = source
                .with_query(query)
                .map_err(usage_fault_for("--records-query"))?;
        }
        if let Some(projection) = &self.records_projection {
            source = source
                .with_projection(projection)
                .map_err(usage_fault_for("--records-projection"))?;
        }
        let write_back = self.write_back.as_deref();
        let write_back = write_back.map(WriteBack::new);
        Ok(Some(DatasetPlan {
            source,
            write_back: write_back
                .transpose()
                .map_err(usage_fault_for("--write-back"))?,
        }))
    }
}

fn mongodb_uri(text: &str) -> Result<webfill_store::MongoUri, Fault> {
    match text.parse() {
        Ok(StoreUri::MongoDb(uri)) => Ok(uri),
        Ok(StoreUri::Sqlite(_)) => Err(Fault::usage(
            "--records: expected mongodb://HOST/DATABASE; for records in a file, use --seeds FILE",
        )),
        // The given address may contain a password, so the error does not repeat it.
        Err(_) if !text.starts_with("mongodb") => Err(Fault::usage(
            "--records: not an address of MongoDB: expected mongodb://HOST/DATABASE",
        )),
        Err(refusal) => Err(Fault::usage(format!("--records: {refusal}"))),
    }
}

fn usage_fault_for(flag: &'static str) -> impl Fn(String) -> Fault {
    move |refusal| Fault::usage(format!("{flag}: {refusal}"))
}

impl DatasetPlan {
    /// The database and the collection, with a dot between them.
    pub fn collection_name(&self) -> String {
        self.source.name()
    }

    /// Whether values are written back to the documents that are read.
    pub fn writes_to_source(&self) -> bool {
        let to = self.write_back.as_ref();
        to.is_some_and(|to| to.collection == self.source.collection())
    }

    /// A text that identifies the dataset, so that a resumed crawl notices a different one.
    pub fn identity(&self) -> String {
        self.source.identity()
    }

    /// Connects, and checks that the dataset can be read, and written if values are to be written
    /// back.
    pub async fn open(&self) -> Result<Arc<Dataset>, StoreError> {
        let dataset = Dataset::open(self.source.clone()).await?;
        if let Some(write_back) = &self.write_back {
            dataset.check_writable(write_back).await?;
        }
        Ok(Arc::new(dataset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(options: DatasetOptions) -> String {
        match options.validate() {
            Err(fault) => fault.message,
            Ok(_) => panic!("it was accepted"),
        }
    }

    fn mongodb_options() -> DatasetOptions {
        DatasetOptions {
            records: Some("mongodb://me:secret@db/people".into()),
            records_collection: Some("members".into()),
            ..DatasetOptions::default()
        }
    }

    #[test]
    fn a_refusal_names_the_wrong_flag() {
        let wrong = || Some(String::from("{"));
        let query = DatasetOptions {
            records_query: wrong(),
            ..mongodb_options()
        };
        assert!(refusal(query).starts_with("--records-query: it is no JSON"));
        let projection = DatasetOptions {
            records_projection: wrong(),
            ..mongodb_options()
        };
        assert!(refusal(projection).starts_with("--records-projection: it is no JSON"));
        let write_back = DatasetOptions {
            write_back: Some("$x".into()),
            ..mongodb_options()
        };
        assert!(refusal(write_back).starts_with("--write-back: `$x` is no name"));
        assert!(mongodb_options().validate().is_ok());
    }

    #[test]
    fn an_address_of_another_store_is_refused_without_repeating_it() {
        for uri in [
            "sqlite:people.db",
            "postgres://me:secret@db",
            "mongodb://me:sec@ret@db",
        ] {
            let other = DatasetOptions {
                records: Some(uri.into()),
                ..mongodb_options()
            };
            let refusal = refusal(other);
            assert!(refusal.starts_with("--records: "), "{refusal}");
            assert!(refusal.contains("mongodb://"), "{refusal}");
            assert!(!refusal.contains("sec"), "{refusal}");
        }
    }
}
