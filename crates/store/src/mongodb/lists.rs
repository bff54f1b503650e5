//! Lists that continue from page to page: their pages, and the rows that they hold. Which lists hold a row is stored
//! with its record.

use std::collections::HashMap;

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::{Document, RawDocument, RawDocumentBuf, doc};
use serde_json::Value;

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::members::{GONE, date};
use super::value;
use super::{Mongo, records};
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::list::{ListedPage, ListedRows, MarkedGone, PageOfList};
use crate::page::page_id;
use crate::store::{Save, StoredLists};

/// How many rows one call of [`mark_gone`] checks at most.
const STEP: i64 = 500;

/// How many redirects in a row are followed between a page of a list and the page that links to it.
const MOST_REDIRECTS: usize = 10;

/// The data of pages about their lists, with the URL of each list's first page filled in. That is the first page of the
/// parent page's list, or the page itself if no page of the list links to it.
pub(super) async fn load_lists_of_pages(
    db: &Db,
    saves: &[Save],
) -> Result<Vec<Option<PageOfList>>, Fault> {
    let of_page = |save: &Save| {
        let list = save.page.list.clone()?;
        let first = save.page.url.clone();
        Some(PageOfList { first, ..list })
    };
    let mut lists: Vec<Option<PageOfList>> = saves.iter().map(of_page).collect();
    let parent_of = |index: usize| {
        let page = &saves[index].page;
        let parent = page.parent.as_deref().filter(|_| page.list.is_some())?;
        Some((index, page_id(&page.app_id, &page.crawl_id, parent)))
    };
    let mut pending: Vec<(usize, String)> = (0..saves.len()).filter_map(parent_of).collect();
    for _ in 0..MOST_REDIRECTS {
        if pending.is_empty() {
            break;
        }
        let ids: Vec<&str> = pending.iter().map(|(_, id)| id.as_str()).collect();
        let wanted = doc! {"_id": {"$in": ids}};
        let members = doc! {"outcome": 1, "parent": 1, "mapping": 1, "list.first": 1};
        let found = find_pages(db, wanted, members, None).await?;
        let found: HashMap<String, ParentPage> = found.iter().filter_map(parent_page).collect();
        let mut further = Vec::new();
        for (index, id) in pending {
            let Some(parent) = found.get(&id) else {
                continue;
            };
            let page = &saves[index].page;
            if parent.outcome == "redirected" {
                let id = |url: &String| page_id(&page.app_id, &page.crawl_id, url);
                further.extend(parent.parent.as_ref().map(|url| (index, id(url))));
            } else if parent.mapping == page.mapping
                && let (Some(first), Some(list)) = (&parent.first, &mut lists[index])
            {
                list.first.clone_from(first);
            }
        }
        pending = further;
    }
    Ok(lists)
}

/// A page that links or redirects to another one.
struct ParentPage {
    outcome: String,
    parent: Option<String>,
    mapping: Option<String>,
    first: Option<String>,
}

fn parent_page(stored: &RawDocumentBuf) -> Option<(String, ParentPage)> {
    let members = value::object(stored);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let parent = ParentPage {
        outcome: text(members.get("outcome"))?,
        parent: text(members.get("parent")),
        mapping: text(members.get("mapping")),
        first: text(members.get("list").and_then(|list| list.get("first"))),
    };
    Some((text(members.get("_id"))?, parent))
}

async fn find_pages(
    db: &Db,
    wanted: Document,
    members: Document,
    first_of: Option<i64>,
) -> Result<Vec<RawDocumentBuf>, Fault> {
    let pages: Collection<RawDocumentBuf> = db.database.collection("pages");
    let find = async {
        let mut find = pages.find(wanted).projection(members);
        if let Some(limit) = first_of {
            find = find.sort(doc! {"_id": 1}).limit(limit);
        }
        let mut cursor = find.await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    };
    with_timeout(find).await
}

fn page_projection() -> Document {
    doc! {
        "url": 1, "parent": 1, "final_url": 1, "outcome": 1, "mapping": 1, "records": 1,
        "started_at": 1, "rows": 1, "list": 1,
    }
}

pub(super) async fn first_pages(
    db: &Db,
    crawl: &CrawlId,
    after: &str,
    limit: u32,
) -> Result<Vec<ListedPage>, Fault> {
    // The keys of a crawl's pages begin with the crawl's id and a slash, and `0` is the character after the slash in
    // ASCII.
    let after = match after {
        "" => format!("{crawl}/"),
        after => after.to_owned(),
    };
    let wanted = doc! {
        "_id": {"$gt": after, "$lt": format!("{crawl}0")},
        "$expr": {"$eq": ["$list.first", "$url"]},
    };
    let found = find_pages(db, wanted, page_projection(), Some(i64::from(limit))).await?;
    found
        .iter()
        .map(|stored| listed_page_from(stored))
        .collect()
}

pub(super) async fn listed_pages(db: &Db, ids: &[String]) -> Result<Vec<ListedPage>, Fault> {
    let wanted = doc! {"_id": {"$in": ids}};
    let found = find_pages(db, wanted, page_projection(), None).await?;
    found
        .iter()
        .map(|stored| listed_page_from(stored))
        .collect()
}

fn listed_page_from(stored: &RawDocument) -> Result<ListedPage, Fault> {
    let mut members = value::object(stored);
    let started_at = stored.get_datetime("started_at");
    let list = members.remove("list").filter(|list| !list.is_null());
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let records = members.get("records").and_then(Value::as_array);
    let records = records.into_iter().flatten().filter_map(Value::as_str);
    let url = text("url").unwrap_or_default();
    let wrong = |what: &str| Fault::InvalidEntry(format!("page {url} {what}"));
    Ok(ListedPage {
        id: text("_id").unwrap_or_default(),
        parent: text("parent"),
        final_url: text("final_url"),
        outcome: text("outcome").unwrap_or_default(),
        mapping: text("mapping"),
        records: records.map(str::to_owned).collect(),
        started_at_ms: started_at
            .map_err(|_| wrong("started at no time"))?
            .timestamp_millis(),
        rows: members.get("rows").and_then(Value::as_u64).unwrap_or(0),
        list: list
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| {
                wrong(&format!(
                    "has a `list` that webfill has not written: {error}"
                ))
            })?,
        url,
    })
}

pub(super) async fn listed_rows(
    db: &Db,
    list: &str,
    dataset: &str,
    began_ms: i64,
) -> Result<ListedRows, Fault> {
    let began = date(began_ms);
    let holds = |times: Document| {
        let mut holder = doc! {"url": list};
        holder.extend(times);
        doc! {"dataset": dataset, "row.lists": {"$elemMatch": holder}}
    };
    let is_gone = doc! {"dataset": dataset, (GONE): list};
    let mut is_newly_gone = is_gone.clone();
    is_newly_gone.insert("row.gone.at", began);
    Ok(ListedRows {
        held: count(db, holds(doc! {"since": {"$lt": began}})).await?,
        unseen: count(db, holds(doc! {"at": {"$lt": began}})).await?,
        seen: count(db, holds(doc! {"at": {"$gte": began}})).await?,
        gone: count(db, is_gone).await?,
        newly_gone: count(db, is_newly_gone).await?,
    })
}

async fn count(db: &Db, wanted: Document) -> Result<u64, Fault> {
    let records: Collection<RawDocumentBuf> = db.database.collection("records");
    with_timeout(async { records.count_documents(wanted).await }).await
}

pub(super) async fn mark_gone(
    db: &Db,
    list: &str,
    dataset: &str,
    began_ms: i64,
    after: &str,
) -> Result<MarkedGone, Fault> {
    let wanted = doc! {
        "_id": {"$gt": after},
        "dataset": dataset,
        "row.lists": {"$elemMatch": {"url": list, "at": {"$lt": date(began_ms)}}},
    };
    let records: Collection<RawDocumentBuf> = db.database.collection("records");
    let find = async {
        let find = records.find(wanted).projection(doc! {"_id": 1});
        let mut cursor = find.sort(doc! {"_id": 1}).limit(STEP).await?;
        let mut keys = Vec::new();
        while cursor.advance().await? {
            keys.extend(cursor.current().get_str("_id").map(str::to_owned));
        }
        Ok(keys)
    };
    let keys: Vec<String> = with_timeout(find).await?;
    let gone = records::note_rows_missing_from_list(db, &keys, list, began_ms).await?;
    Ok(MarkedGone {
        gone,
        after: (keys.len() as i64 == STEP).then(|| keys[keys.len() - 1].clone()),
    })
}

#[async_trait]
impl StoredLists for Mongo {
    async fn first_pages(
        &self,
        crawl: &CrawlId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ListedPage>, StoreError> {
        let (crawl, after) = (crawl.clone(), after.to_owned());
        self.call(async move |db: Db| first_pages(&db, &crawl, &after, limit).await)
            .await
    }

    async fn listed_pages(&self, ids: Vec<String>) -> Result<Vec<ListedPage>, StoreError> {
        self.call(async move |db: Db| listed_pages(&db, &ids).await)
            .await
    }

    async fn listed_rows(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
    ) -> Result<ListedRows, StoreError> {
        let (list, dataset) = (list.to_owned(), dataset.to_owned());
        self.call(async move |db: Db| listed_rows(&db, &list, &dataset, began_ms).await)
            .await
    }

    async fn mark_gone(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
        after: &str,
    ) -> Result<MarkedGone, StoreError> {
        let (list, dataset, after) = (list.to_owned(), dataset.to_owned(), after.to_owned());
        self.call(async move |db: Db| mark_gone(&db, &list, &dataset, began_ms, &after).await)
            .await
    }
}
