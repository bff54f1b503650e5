//! Reads the rows of an export from the store.

use std::collections::HashMap;
use std::io;

use serde_json::Value;
use webfill_store::{ChangeFilter, ExportError, ExportKind, Store};

use super::columns::Field;
use super::numbers::NumberKinds;
use super::{ExportCounts, ExportSelection};
use crate::cli::ExportWhat;

/// How many changes are read at a time.
const AT_ONCE: u32 = 500;

/// Passes every row to `each`. Rows that are gone from their lists are only counted, unless they were requested.
pub async fn for_each_row(
    store: &dyn Store,
    wanted: &ExportSelection,
    each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
) -> Result<ExportCounts, ExportError> {
    let kind = match wanted.what {
        ExportWhat::Pages => ExportKind::Pages,
        ExportWhat::Records => ExportKind::Records,
        ExportWhat::Changes => {
            let rows = for_each_change(store, wanted, each).await?;
            return Ok(ExportCounts { rows, left_out: 0 });
        }
    };
    let mut left_out = 0;
    let mut each_there = |row: Value| match wanted.gone || row["row"]["gone"].is_null() {
        true => each(row),
        false => {
            left_out += 1;
            Ok(())
        }
    };
    let rows = store.export(kind, &wanted.filter, &mut each_there).await?;
    Ok(ExportCounts {
        rows: rows - left_out,
        left_out,
    })
}

async fn for_each_change(
    store: &dyn Store,
    wanted: &ExportSelection,
    each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
) -> Result<u64, ExportError> {
    let filter = ChangeFilter {
        app_id: wanted.filter.app_id.clone(),
        crawl_id: wanted.filter.crawl_id.clone(),
        since_ms: None,
    };
    let (mut rows, mut after) = (0, 0);
    loop {
        let changes = store.content_changes(&filter, after, AT_ONCE).await?;
        let Some(last) = changes.last() else {
            return Ok(rows);
        };
        after = last.number;
        for change in &changes {
            each(change.json())?;
            rows += 1;
        }
    }
}

/// The requested fields of parent records, in the requested order, each with the kind of its values. `None` if parents
/// are not exported.
pub async fn load_parent_fields(
    store: &dyn Store,
    wanted: &ExportSelection,
) -> Result<Option<Vec<Field>>, ExportError> {
    let Some(names) = &wanted.parent else {
        return Ok(None);
    };
    let mut values: Vec<NumberKinds> = names.iter().map(|_| NumberKinds::default()).collect();
    let mut note = |row: Value| {
        for (name, values) in names.iter().zip(&mut values) {
            values.note(&row["parent_fields"][name]);
        }
        Ok(())
    };
    if !names.is_empty() {
        for_each_row(store, wanted, &mut note).await?;
    }
    let fields = names.iter().zip(values).map(|(name, values)| Field {
        name: name.clone(),
        kind: values.kind(),
        has_lists: false,
        decimals: None,
    });
    Ok(Some(fields.collect()))
}

/// The fields that occur in any record, as a value or as missing, in order of appearance, each with the kind of its
/// values.
pub async fn load_fields(
    store: &dyn Store,
    wanted: &ExportSelection,
) -> Result<Vec<Field>, ExportError> {
    let mut fields: Vec<(Field, NumberKinds)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut note = |name: &str, value: &Value, has_lists: bool| {
        let index = *known.entry(name.to_owned()).or_insert_with(|| {
            let field = Field {
                name: name.to_owned(),
                kind: None,
                has_lists: false,
                decimals: None,
            };
            fields.push((field, NumberKinds::default()));
            fields.len() - 1
        });
        let (field, values) = &mut fields[index];
        field.has_lists |= has_lists;
        values.note(value);
    };
    let mut note_record = |record: Value| {
        for (name, value) in record["fields"].as_object().into_iter().flatten() {
            let is_by_page = !record["sources"][name].is_null();
            note(name, value, is_by_page && value.is_array());
        }
        let missing = record["missing"].as_array().into_iter().flatten();
        for name in missing.filter_map(Value::as_str) {
            note(name, &Value::Null, false);
        }
        Ok(())
    };
    for_each_row(store, wanted, &mut note_record).await?;
    let fields = fields.into_iter().map(|(field, values)| Field {
        kind: values.kind(),
        decimals: values.decimals(),
        ..field
    });
    Ok(fields.collect())
}
