//! Lists the pages of the database, the latest fetched first.

use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};

use crate::browse::{
    ListOrder, ListPage, MAX_FIELDS_OF_ROW, PageFilter, PageResult, PageRow, Place,
};
use crate::mongodb::command::{Db, with_timeout};
use crate::mongodb::fault::Fault;
use crate::mongodb::indexes::{PAGES_BY_MAPPING, PAGES_BY_OUTCOME, PAGES_BY_SITE};
use crate::mongodb::list_query::{ListQuery, broken_entry_fault, condition_before, key, place_at};
use crate::mongodb::members::{integer, short_object_expression};
use crate::mongodb::value;

pub(super) async fn list(
    db: &Db,
    filter: &PageFilter,
    from: Option<Place>,
    wanted: usize,
) -> Result<ListPage<PageRow>, Fault> {
    let began_by_key = from
        .as_ref()
        .is_some_and(|place| place.order() == ListOrder::Key);
    if let (false, Some((index, which))) = (began_by_key, index_for(filter)) {
        let newest = newest_first_query(index, which, from.as_ref(), wanted);
        let listed = newest.read_list_page(db, |stored| {
            place_and_row(stored, filter, ListOrder::Newest)
        });
        if let Some(list_page) = listed.await? {
            return Ok(list_page);
        }
    }
    let by_key = by_key_query(filter, from.as_ref(), wanted);
    let listed = by_key.read_list_page(db, |stored| place_and_row(stored, filter, ListOrder::Key));
    Ok(listed.await?.unwrap_or_else(ListPage::end))
}

/// The index to use for the filter, and the part of the filter that it covers.
fn index_for(filter: &PageFilter) -> Option<(&'static str, Document)> {
    if let Some(site) = &filter.site {
        return Some((PAGES_BY_SITE, doc! {"site": site}));
    }
    let crawl = filter.crawl.as_ref()?;
    let outcomes = filter.wanted_outcomes().into_iter();
    let outcomes: Vec<&str> = outcomes.map(|outcome| outcome.as_str()).collect();
    // The index is sorted by time within each outcome, so the server only has to merge its entries.
    let mut which = doc! {
        "app_id": &crawl.app_id,
        "crawl_id": &crawl.crawl_id,
        "outcome": {"$in": outcomes},
    };
    Some(match &filter.mapping {
        Some(mapping) => {
            which.insert("mapping", mapping);
            (PAGES_BY_MAPPING, which)
        }
        None => (PAGES_BY_OUTCOME, which),
    })
}

fn newest_first_query(
    index: &'static str,
    mut which: Document,
    from: Option<&Place>,
    wanted: usize,
) -> ListQuery<'static> {
    if let Some(place) = from {
        which.extend(condition_before("started_at", place));
    }
    ListQuery {
        collection: "pages",
        which,
        order: doc! {"started_at": -1, "_id": -1},
        index,
        members: projection(),
        wanted,
    }
}

/// The query for pages in the order of their keys. The keys of a crawl's pages begin with the crawl's id and a slash,
/// and `0` is the character after the slash in ASCII.
fn by_key_query(filter: &PageFilter, from: Option<&Place>, wanted: usize) -> ListQuery<'static> {
    let first = filter.crawl.as_ref().map(|crawl| format!("{crawl}/"));
    let first = first.unwrap_or_default();
    let after = from.map_or_else(|| first.clone(), |place| place.part(0).to_owned());
    let mut keys = doc! {"$gt": after.max(first)};
    if let Some(crawl) = &filter.crawl {
        keys.insert("$lt", format!("{crawl}0"));
    }
    ListQuery {
        collection: "pages",
        which: doc! {"_id": keys},
        order: doc! {"_id": 1},
        index: "_id_",
        members: projection(),
        wanted,
    }
}

fn projection() -> Document {
    let members = [
        "app_id",
        "crawl_id",
        "url",
        "final_url",
        "site",
        "depth",
        "parent",
        "outcome",
        "status_code",
        "mapping",
        "content_type",
        "bytes",
        "started_at",
        "elapsed_ms",
        "attempts",
    ];
    members
        .into_iter()
        .map(|name| (name.to_owned(), Bson::Int32(1)))
        .collect()
}

/// The outcomes and values of the pages with these keys.
pub(super) async fn results(db: &Db, ids: &[String]) -> Result<Vec<PageResult>, Fault> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let pages: Collection<RawDocumentBuf> = db.database.collection("pages");
    let members = doc! {"url": 1, "outcome": 1, "fields": short_object_expression("fields", MAX_FIELDS_OF_ROW)};
    let find = async {
        let found = pages
            .find(doc! {"_id": {"$in": ids}})
            .projection(members)
            .batch_size(ids.len().clamp(1, 1_000) as u32);
        let mut cursor = found.await?;
        let mut read = Vec::with_capacity(ids.len());
        while cursor.advance().await? {
            read.push(page_result_from(cursor.current()));
        }
        Ok(read)
    };
    with_timeout(find).await?.into_iter().collect()
}

fn page_result_from(stored: &RawDocument) -> Result<PageResult, Fault> {
    let text = |name: &str| {
        stored
            .get_str(name)
            .map_err(|_| broken_entry_fault("page", stored))
    };
    Ok(PageResult {
        id: key(stored).to_owned(),
        url: text("url")?.to_owned(),
        outcome: text("outcome")?.parse().map_err(Fault::InvalidEntry)?,
        fields: stored.get_document("fields").ok().map(value::object),
    })
}

/// The place of a stored page in the list, and its row if the filter accepts the page.
fn place_and_row(
    stored: &RawDocument,
    filter: &PageFilter,
    order: ListOrder,
) -> Result<(Place, Option<PageRow>), Fault> {
    let page = page_row_from(stored)?;
    let started_at = stored.get_datetime("started_at");
    let place = match order {
        ListOrder::Newest => place_at(
            started_at.map_err(|_| broken_entry_fault("page", stored))?,
            &page.id,
        ),
        ListOrder::Key => Place::by_key(&page.id),
    };
    Ok((place, filter.matches(&page).then_some(page)))
}

fn page_row_from(stored: &RawDocument) -> Result<PageRow, Fault> {
    let optional = |name: &str| stored.get_str(name).ok().map(str::to_owned);
    let text = |name: &str| optional(name).ok_or_else(|| broken_entry_fault("page", stored));
    let number = |name: &str| {
        integer(stored, name)
            .map(i64::unsigned_abs)
            .unwrap_or_default()
    };
    let started_at = stored.get_datetime("started_at");
    Ok(PageRow {
        id: key(stored).to_owned(),
        app_id: text("app_id")?,
        crawl_id: text("crawl_id")?,
        url: text("url")?,
        final_url: optional("final_url"),
        site: text("site")?,
        depth: u32::try_from(number("depth")).unwrap_or(u32::MAX),
        parent: optional("parent"),
        outcome: text("outcome")?.parse().map_err(Fault::InvalidEntry)?,
        status_code: integer(stored, "status_code").and_then(|code| u16::try_from(code).ok()),
        mapping: optional("mapping"),
        content_type: optional("content_type"),
        bytes: number("bytes"),
        started_at_ms: started_at
            .map_err(|_| broken_entry_fault("page", stored))?
            .timestamp_millis(),
        elapsed_ms: number("elapsed_ms"),
        attempts: u32::try_from(number("attempts")).unwrap_or(u32::MAX),
    })
}
