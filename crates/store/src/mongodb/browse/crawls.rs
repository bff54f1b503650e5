//! Lists the crawls of the database, and counts the stored data of a crawl.

use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf, doc, rawdoc};
use webfill_wire::Outcome;

use crate::browse::{Count, CrawlCounts, CrawlFilter, ListPage, MOST_EXAMINED, Place};
use crate::crawl::{Crawl, CrawlId};
use crate::mongodb::command::{Db, number, with_timeout};
use crate::mongodb::crawls;
use crate::mongodb::fault::Fault;
use crate::mongodb::indexes::{CRAWLS_BY_START, OF_RECORDS, PAGES_BY_OUTCOME};
use crate::mongodb::list_query::{
    ListQuery, broken_entry_fault, condition_before, is_without_index, key, place_at,
    read_list_page,
};

pub(super) async fn list(
    db: &Db,
    filter: &CrawlFilter,
    from: Option<Place>,
    wanted: usize,
) -> Result<ListPage<Crawl>, Fault> {
    let which = from.map_or_else(Document::new, |place| {
        condition_before("started_at", &place)
    });
    let order = doc! {"started_at": -1, "_id": -1};
    let placed = |stored: &RawDocument| {
        let started_at = stored.get_datetime("started_at");
        let at = started_at.map_err(|_| broken_entry_fault("crawl", stored))?;
        let crawl = crawls::read(stored)?;
        Ok((
            place_at(at, key(stored)),
            filter.matches(&crawl).then_some(crawl),
        ))
    };
    let listing = ListQuery {
        collection: "crawls",
        which: which.clone(),
        order: order.clone(),
        index: CRAWLS_BY_START,
        members: Document::new(),
        wanted,
    };
    if let Some(page) = listing.read_list_page(db, placed).await? {
        return Ok(page);
    }
    // Without the index, the server sorts all crawls, and returns the first ones.
    let crawls: Collection<RawDocumentBuf> = db.database.collection("crawls");
    let sorting = async {
        let most = MOST_EXAMINED as i64 + 1;
        let find = crawls.find(which).sort(order).limit(most);
        read_list_page(find.await?, wanted, placed).await
    };
    with_timeout(sorting).await?
}

pub(super) async fn crawl_counts(
    db: &Db,
    crawl: &CrawlId,
    count_to: u64,
) -> Result<CrawlCounts, Fault> {
    let (app_id, crawl_id) = (crawl.app_id.as_str(), crawl.crawl_id.as_str());
    let mut outcomes = Vec::new();
    for outcome in Outcome::ALL {
        let which = doc! {"app_id": app_id, "crawl_id": crawl_id, "outcome": outcome.as_str()};
        let counted = count(db, "pages", which, PAGES_BY_OUTCOME, count_to).await?;
        // Without the index, no outcome can be counted.
        let Some(count) = counted else { break };
        if count.counted > 0 {
            outcomes.push((*outcome, count));
        }
    }
    let all = doc! {"crawls": {"app_id": app_id, "crawl_id": crawl_id}};
    let mut resolved = all.clone();
    // This matches every date, but neither null nor a missing value.
    resolved.insert("resolved_at", doc! {"$gte": Bson::DateTime(DateTime::MIN)});
    let (records, resolved) = tokio::try_join!(
        count(db, "records", all, OF_RECORDS, count_to),
        count(db, "records", resolved, OF_RECORDS, count_to)
    )?;
    Ok(CrawlCounts {
        outcomes,
        records: records.unwrap_or_else(Count::unknown),
        resolved: resolved.unwrap_or_else(Count::unknown),
    })
}

/// Counts entries of an index up to a limit; `None` if there is no such index.
pub(super) async fn count(
    db: &Db,
    collection: &str,
    which: Document,
    index: &str,
    count_to: u64,
) -> Result<Option<Count>, Fault> {
    let query = RawDocumentBuf::try_from(&which).expect("a query without NUL in its names");
    let mut command = rawdoc! {
        "count": collection,
        "query": query,
        "limit": Count::count_limit(count_to),
        "hint": index,
    };
    command.append(cstr!("readConcern"), rawdoc! {"level": "majority"});
    let counting = async {
        match db.database.run_raw_command(command).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if is_without_index(&error) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let answer = with_timeout(counting).await?;
    Ok(answer.map(|answer| Count::from_found(number(&answer, "n").unsigned_abs(), count_to)))
}
