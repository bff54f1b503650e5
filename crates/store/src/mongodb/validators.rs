//! Finds pages that can be requested conditionally.

use mongodb::Collection;
use mongodb::bson::{RawDocument, RawDocumentBuf, doc};
use serde_json::Value;

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::value;
use crate::validators::KnownPage;

/// The pages with these keys that have validators.
pub(super) async fn known_pages(db: &Db, ids: &[String]) -> Result<Vec<KnownPage>, Fault> {
    let pages: Collection<RawDocumentBuf> = db.database.collection("pages");
    let find = async {
        let wanted = doc! {"_id": {"$in": ids}, "validators": {"$type": "object"}};
        let members = doc! {"mapping": 1, "mapping_version": 1, "validators": 1};
        let mut cursor = pages.find(wanted).projection(members).await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.extend(known_page_from(cursor.current()));
        }
        Ok(found)
    };
    with_timeout(find).await
}

fn known_page_from(stored: &RawDocument) -> Option<KnownPage> {
    let mut members = value::object(stored);
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let (id, mapping) = (text("_id")?, text("mapping"));
    let mapping_version = text("mapping_version");
    Some(KnownPage {
        id,
        mapping,
        mapping_version,
        validators: serde_json::from_value(members.remove("validators")?).ok()?,
    })
}
