//! The rows of an export, as they come from the store.

use std::collections::HashMap;
use std::io;

use serde_json::Value;
use webfill_store::{ChangeFilter, ExportError, ExportKind, Store};

use super::Wanted;
use super::columns::{Field, Kind};
use crate::cli::ExportWhat;

/// Changes that are read at once.
const AT_ONCE: u32 = 500;

/// Passes every row to `each`; returns their number.
pub async fn each(
    store: &dyn Store,
    wanted: &Wanted,
    each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
) -> Result<u64, ExportError> {
    let kind = match wanted.what {
        ExportWhat::Pages => ExportKind::Pages,
        ExportWhat::Records => ExportKind::Records,
        ExportWhat::Changes => return each_change(store, wanted, each).await,
    };
    store.export(kind, &wanted.filter, each).await
}

async fn each_change(
    store: &dyn Store,
    wanted: &Wanted,
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
            each(change.told())?;
            rows += 1;
        }
    }
}

/// The fields that records have or miss, in order of appearance, each with the kind of its values.
pub async fn fields(store: &dyn Store, wanted: &Wanted) -> Result<Vec<Field>, ExportError> {
    let mut fields: Vec<Field> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut note = |name: &str, kind: Option<Kind>| match known.get(name) {
        Some(index) => {
            let field = &mut fields[*index];
            field.kind = match (field.kind, kind) {
                (Some(one), Some(other)) => Some(one.with(other)),
                (one, other) => one.or(other),
            };
        }
        None => {
            known.insert(name.to_owned(), fields.len());
            fields.push(Field {
                name: name.to_owned(),
                kind,
            });
        }
    };
    let mut note_record = |record: Value| {
        for (name, value) in record["fields"].as_object().into_iter().flatten() {
            note(name, Kind::of(value));
        }
        let missing = record["missing"].as_array().into_iter().flatten();
        for name in missing.filter_map(Value::as_str) {
            note(name, None);
        }
        Ok(())
    };
    each(store, wanted, &mut note_record).await?;
    Ok(fields)
}
