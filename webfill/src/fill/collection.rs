//! Completes a MongoDB collection like a table: its documents are copied into the project folder as a table of JSON
//! lines, this table is completed, and the values found are written back.
//!
//! Before each write, the value that it replaces is durably stored. A later run copies the replaced value instead of
//! the written one. So it fills the same gaps with the same evidence, and does not take its own values for known ones.
//! The server compares before it writes: a value that the user has entered meanwhile stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Lines, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use webfill_service::Fault;
use webfill_store::{Dataset, FilledField, UnwrittenRecord, WriteBack};

use super::options::CollectionOptions;
use super::project::{Project, write_file_atomically};
use crate::dataset::DatasetOptions;
use crate::feeding::store_fault;
use crate::mapping_command::learn::runtime;

/// The most documents that are written together.
const BATCH: usize = 500;

/// For each member of a document, the most written values that are remembered: the last one, and those that killed runs
/// may have written.
const VALUES: usize = 4;

/// The most refused writes that are listed.
const MOST_REFUSALS_SHOWN: usize = 20;

/// A collection that is completed like a table.
pub struct Collection {
    /// The names of the database and the collection, as `database.collection`.
    pub name: String,
    collection: String,
    dataset: Arc<Dataset>,
    runtime: Runtime,
}

/// A write to a member of a document.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct WrittenValue {
    document: String,
    member: String,
    /// The value that the first write has replaced.
    old: Value,
    /// The written values, with the newest last.
    values: Vec<Value>,
}

/// The written values, by document and member.
type WrittenValues = BTreeMap<String, BTreeMap<String, WrittenValue>>;

impl CollectionOptions {
    /// The name of the file that the collection would be if it were a table.
    pub fn table_file_name(&self) -> Result<PathBuf, Fault> {
        let name = self.records_collection.as_deref();
        let name = name.ok_or_else(|| Fault::usage("--records needs --records-collection NAME"))?;
        let is_plain = |c: char| c.is_alphanumeric() || c == '-' || c == '.';
        let name: String = name
            .chars()
            .map(|c| if is_plain(c) { c } else { '_' })
            .collect();
        Ok(PathBuf::from(format!("{}.jsonl", name.trim_matches('.'))))
    }

    /// Connects, and checks that documents can be read and, if `writes` is set, written.
    pub fn open(&self, writes: bool) -> Result<Collection, Fault> {
        let collection = self.records_collection.clone().unwrap_or_default();
        let options = DatasetOptions {
            records: self.records.clone(),
            records_collection: self.records_collection.clone(),
            records_query: self.records_query.clone(),
            write_back: writes.then(|| collection.clone()),
            ..DatasetOptions::default()
        };
        let plan = options.validate()?;
        let plan = plan.ok_or_else(|| Fault::usage("no TABLE is given"))?;
        let runtime = runtime()?;
        let dataset = runtime.block_on(plan.open()).map_err(store_fault)?;
        Ok(Collection {
            name: plan.collection_name(),
            collection,
            dataset,
            runtime,
        })
    }
}

impl Collection {
    /// Copies the documents, in the order of their ids.
    pub fn copy_documents(&self, project: &Project, to: &Path) -> Result<(), Fault> {
        let written = read_written_values(project)?;
        let mut fault = None;
        let copied = write_file_atomically(to, |lines| {
            let mut lines = BufWriter::new(lines);
            let mut ids = BufWriter::new(File::create(ids_file(to))?);
            for documents in self.dataset.read(None).map_err(std::io::Error::other)? {
                let documents = match documents {
                    Ok(documents) => documents,
                    Err(error) => {
                        fault = Some(store_fault(error));
                        break;
                    }
                };
                for document in documents {
                    let mut members = Map::new();
                    members.insert(String::from("_id"), document.record.into());
                    members.extend(document.members);
                    for (name, one) in written.get(&document.id).into_iter().flatten() {
                        let is_ours = |value: &Value| one.values.contains(value);
                        if members.get(name).is_some_and(is_ours) {
                            members.insert(name.clone(), one.old.clone());
                        }
                    }
                    writeln!(lines, "{}", Value::Object(members))?;
                    writeln!(ids, "{}", document.id)?;
                }
            }
            ids.flush()?;
            lines.flush()
        });
        match fault {
            Some(fault) => Err(fault),
            None => copied,
        }
    }

    /// Writes back the values that the completion has added or changed in the copy. Returns their number.
    pub fn write_back(&self, project: &Project) -> Result<usize, Fault> {
        let mut written = read_written_values(project)?;
        let (mut count, mut unwritable) = (0, BTreeSet::new());
        for change in self.read_changes(project)? {
            let change = change?;
            let of_document = written.entry(change.document.clone()).or_default();
            for (member, old, value) in change.members {
                if !is_writable(&member) {
                    unwritable.insert(member);
                    continue;
                }
                let one = of_document.entry(member.clone()).or_insert(WrittenValue {
                    document: change.document.clone(),
                    member,
                    old,
                    values: Vec::new(),
                });
                one.values.retain(|former| *former != value);
                one.values.push(value);
                let surplus = one.values.len().saturating_sub(VALUES);
                one.values.drain(..surplus);
                count += 1;
            }
        }
        for member in unwritable {
            webfill_service::say!(
                "webfill: {member:?}: not written: a dot or a dollar sign in its name would be read as a path"
            );
        }
        if count == 0 {
            return Ok(0);
        }
        save_written_values(project, &written)?;
        let mut refusals = Vec::new();
        let mut batch = Vec::new();
        for change in self.read_changes(project)? {
            let Change { document, members } = change?;
            let of_document = &written[&document];
            let members = members.into_iter().filter(|(name, ..)| is_writable(name));
            let fields = members.map(|(name, old, value)| {
                let mut others = of_document[&name].values.clone();
                others.push(old);
                FilledField {
                    name,
                    value,
                    is_asked_again: false,
                    others,
                }
            });
            batch.push(UnwrittenRecord::for_document(document, fields.collect()));
            if batch.len() == BATCH {
                refusals.extend(self.write_batch(&std::mem::take(&mut batch))?);
            }
        }
        refusals.extend(self.write_batch(&batch)?);
        for (document, reason) in refusals.iter().take(MOST_REFUSALS_SHOWN) {
            webfill_service::say!("webfill: document {document:.200}: not written: {reason}");
        }
        if refusals.len() > MOST_REFUSALS_SHOWN {
            let more = refusals.len() - MOST_REFUSALS_SHOWN;
            webfill_service::say!("webfill: {more} more documents are not written");
        }
        Ok(count)
    }

    fn write_batch(&self, batch: &[UnwrittenRecord]) -> Result<Vec<(String, String)>, Fault> {
        let to = WriteBack::new(&self.collection).map_err(Fault::usage)?;
        let written = self.dataset.write_back(&to, batch);
        self.runtime.block_on(written).map_err(|error| {
            let mut fault = store_fault(error);
            fault.message += "; the same command writes the rest";
            fault
        })
    }

    fn read_changes(&self, project: &Project) -> Result<Changes, Fault> {
        let lines = |path: PathBuf| match File::open(&path) {
            Ok(file) => Ok(BufReader::new(file).lines()),
            Err(error) => Err(Fault::error(format!(
                "cannot read {}: {error}",
                path.display()
            ))),
        };
        let copy = project.copy_file();
        Ok(Changes {
            ids: lines(ids_file(&copy))?,
            before: lines(copy)?,
            after: lines(project.filled_table_file())?,
        })
    }
}

/// Whether a member with this name can be written. The server would take a dot for a path, and a dollar sign for an
/// operator.
fn is_writable(name: &str) -> bool {
    !name.contains(['.', '$'])
}

/// The file that has the `_id` of the document for each line of a copy, with its BSON type.
fn ids_file(copy: &Path) -> PathBuf {
    copy.with_extension("ids")
}

/// Reads the differences between the copy and the completed copy. Both have the same lines.
struct Changes {
    ids: Lines<BufReader<File>>,
    before: Lines<BufReader<File>>,
    after: Lines<BufReader<File>>,
}

/// A member of a document whose value differs between the copy and the completed copy.
struct Change {
    document: String,
    members: Vec<(String, Value, Value)>,
}

impl Changes {
    fn next_line(&mut self) -> std::io::Result<Option<[String; 3]>> {
        let lines = [&mut self.ids, &mut self.before, &mut self.after];
        let lines = lines.map(|lines| lines.next().transpose());
        let [id, before, after] = lines;
        Ok(match (id?, before?, after?) {
            (Some(id), Some(before), Some(after)) => Some([id, before, after]),
            _ => None,
        })
    }

    fn next_change(&mut self) -> std::io::Result<Option<Change>> {
        while let Some([document, before, after]) = self.next_line()? {
            if before == after {
                continue;
            }
            let [before, after] = [before, after].map(|line| serde_json::from_str(&line));
            let (before, after): (Map<String, Value>, Map<String, Value>) = (before?, after?);
            let old = |name: &String| before.get(name).cloned().unwrap_or_default();
            let changed = after.into_iter().map(|(name, value)| {
                let old = old(&name);
                (name, old, value)
            });
            return Ok(Some(Change {
                document,
                members: changed.filter(|(_, old, value)| old != value).collect(),
            }));
        }
        Ok(None)
    }
}

impl Iterator for Changes {
    type Item = Result<Change, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let unread = |error| Fault::error(format!("cannot read the completed copy: {error}"));
        self.next_change().map_err(unread).transpose()
    }
}

/// Reads the log of written values. A missing file counts as empty. A file that cannot be read is an error: without it,
/// values that an earlier run has written would count as known.
fn read_written_values(project: &Project) -> Result<WrittenValues, Fault> {
    let file = project.written_values_file();
    let unread = |error: String| Fault::error(format!("cannot read {}: {error}", file.display()));
    let mut written = WrittenValues::new();
    let opened = match File::open(&file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(written),
        Err(error) => return Err(unread(error.to_string())),
    };
    for line in BufReader::new(opened).lines() {
        let line = line.map_err(|error| unread(error.to_string()))?;
        let one: WrittenValue =
            serde_json::from_str(&line).map_err(|error| unread(error.to_string()))?;
        let of_document = written.entry(one.document.clone()).or_default();
        of_document.insert(one.member.clone(), one);
    }
    Ok(written)
}

fn save_written_values(project: &Project, written: &WrittenValues) -> Result<(), Fault> {
    write_file_atomically(&project.written_values_file(), |file| {
        let mut out = BufWriter::new(file);
        for one in written.values().flat_map(BTreeMap::values) {
            writeln!(out, "{}", serde_json::to_string(one)?)?;
        }
        out.flush()
    })
}
