//! Measures the store reads that the views of the dashboard depend on.

use std::time::{Duration, Instant};

use webfill_store::{
    Browse, BrowseHandles, ChangeListFilter, CrawlFilter, CrawlId, ListPage, PageFilter, Place,
    RecordFilter, RecordState, StoreError, StoreUri, open_to_browse,
};
use webfill_wire::Outcome;

use crate::Failure;
use crate::made::{Made, PAGES_OF_SITE, SMALL_CRAWLS};

/// The number of rows on a page of a list.
const ROWS: u32 = 50;
/// The number of pages of a list that are read one after another.
const PAGES_READ: usize = 20;
/// The number of reads at other positions in the store, for each kind of read.
const CHECKS: u64 = 20;
/// The dashboard counts rows only up to this number.
const COUNT_TO: u64 = 10_000;

/// Measures all kinds of reads. Returns the longest wait for each kind.
pub async fn measure(
    uri: &StoreUri,
    made: &Made,
) -> Result<Vec<(&'static str, Duration)>, Failure> {
    let mut waits = vec![(
        "the overview, from the opening of the store",
        time_overview(uri, made).await?,
    )];
    let BrowseHandles { browse, .. } = open_to_browse(uri).await?;
    let browse = &*browse;
    waits.push((
        "a list of pages, 20 pages",
        time_page_lists(browse, made).await?,
    ));
    waits.push((
        "figures and a list of a small crawl",
        time_small_crawls(browse).await?,
    ));
    waits.push((
        "pages of a site, and one page",
        time_sites(browse, made).await?,
    ));
    waits.push((
        "a list of records, 20 pages",
        time_record_lists(browse).await?,
    ));
    waits.push((
        "records by their ids, and one record",
        time_ids(browse).await?,
    ));
    waits.push((
        "a list of changes, 20 pages",
        time_change_lists(browse, made).await?,
    ));
    waits.push((
        "a list of crawls, 20 pages",
        time_crawl_lists(browse).await?,
    ));
    Ok(waits)
}

/// Measures the reads for the overview on a new connection: crawls, the counts of the first ten, datasets, and sites in
/// trouble.
async fn time_overview(uri: &StoreUri, made: &Made) -> Result<Duration, Failure> {
    let began = Instant::now();
    let BrowseHandles { browse, store, .. } = open_to_browse(uri).await?;
    let crawls = browse.crawls(&CrawlFilter::default(), None, ROWS).await?;
    for crawl in crawls.rows.iter().take(10) {
        browse.crawl_counts(&crawl.id, COUNT_TO).await?;
    }
    let datasets = browse.datasets(COUNT_TO, None, ROWS).await?;
    browse.site_states(None, ROWS).await?;
    store.health().await?;
    let waited = began.elapsed();
    ensure(crawls.rows.len() == ROWS as usize, "crawls")?;
    ensure(crawls.rows[0].id == made.large_crawl(), "the large crawl")?;
    ensure(datasets.rows.len() == 1, "a dataset")?;
    Ok(waited)
}

fn ensure(is_so: bool, what: &str) -> Result<(), Failure> {
    match is_so {
        true => Ok(()),
        false => Err(format!("the store has not shown {what}").into()),
    }
}

/// Reads pages of a list one after another. Returns the longest wait.
async fn time_list_pages<T>(
    list: impl AsyncFn(Option<Place>) -> Result<ListPage<T>, StoreError>,
) -> Result<Duration, Failure> {
    let (mut longest, mut from, mut rows) = (Duration::ZERO, None, 0);
    for _ in 0..PAGES_READ {
        let began = Instant::now();
        let page = list(from).await?;
        longest = longest.max(began.elapsed());
        rows += page.rows.len();
        let Some(next) = page.next else { break };
        from = Some(next);
    }
    ensure(rows > 0, "rows")?;
    Ok(longest)
}

async fn time_page_lists(browse: &dyn Browse, made: &Made) -> Result<Duration, Failure> {
    let of_crawl = PageFilter {
        crawl: Some(made.large_crawl()),
        ..PageFilter::default()
    };
    let mut waited = Duration::ZERO;
    for filter in [
        PageFilter::default(),
        PageFilter {
            outcomes: vec![Outcome::Blocked],
            ..of_crawl.clone()
        },
        PageFilter {
            outcomes: vec![Outcome::HttpError, Outcome::Timeout, Outcome::Blocked],
            ..of_crawl.clone()
        },
        PageFilter {
            mapping: Some("mapping-5".into()),
            outcomes: vec![Outcome::Timeout],
            ..of_crawl.clone()
        },
        of_crawl,
    ] {
        let list = async |from: Option<Place>| browse.pages(&filter, from.as_ref(), ROWS).await;
        waited = waited.max(time_list_pages(list).await?);
    }
    Ok(waited)
}

async fn time_small_crawls(browse: &dyn Browse) -> Result<Duration, Failure> {
    let mut waited = Duration::ZERO;
    for check in 0..CHECKS {
        let crawl = CrawlId::new("app", format!("c{}", 1 + check * 37 % SMALL_CRAWLS));
        let began = Instant::now();
        browse.crawl_counts(&crawl, COUNT_TO).await?;
        let filter = PageFilter {
            crawl: Some(crawl),
            ..PageFilter::default()
        };
        let listed = browse.pages(&filter, None, ROWS).await?;
        waited = waited.max(began.elapsed());
        ensure(!listed.rows.is_empty(), "pages of a small crawl")?;
    }
    Ok(waited)
}

async fn time_sites(browse: &dyn Browse, made: &Made) -> Result<Duration, Failure> {
    let mut waited = Duration::ZERO;
    let sites = made.pages / PAGES_OF_SITE;
    for check in 0..CHECKS {
        let filter = PageFilter {
            site: Some(format!("s{}.example", check * 999_983 % sites)),
            ..PageFilter::default()
        };
        let began = Instant::now();
        let listed = browse.pages(&filter, None, ROWS).await?;
        ensure(listed.rows.len() as u64 == PAGES_OF_SITE, "pages of a site")?;
        let page = browse.page(&listed.rows[0].id).await?;
        waited = waited.max(began.elapsed());
        ensure(page.is_some(), "a page")?;
    }
    Ok(waited)
}

async fn time_record_lists(browse: &dyn Browse) -> Result<Duration, Failure> {
    let mut waited = Duration::ZERO;
    for state in [None, Some(RecordState::Open), Some(RecordState::Resolved)] {
        let filter = RecordFilter {
            dataset: Some("people".into()),
            state,
            ..RecordFilter::default()
        };
        let list = async |from: Option<Place>| browse.records(&filter, from.as_ref(), ROWS).await;
        waited = waited.max(time_list_pages(list).await?);
    }
    Ok(waited)
}

async fn time_ids(browse: &dyn Browse) -> Result<Duration, Failure> {
    let mut waited = Duration::ZERO;
    for check in 0..CHECKS {
        let filter = RecordFilter {
            dataset: Some("people".into()),
            id_prefix: Some(format!("{:03}", check * 47 % 900)),
            state: (check % 2 == 0).then_some(RecordState::Open),
            ..RecordFilter::default()
        };
        let began = Instant::now();
        let listed = browse.records(&filter, None, ROWS).await?;
        if let Some(record) = listed.rows.first() {
            browse.record(&record.key).await?;
        }
        waited = waited.max(began.elapsed());
    }
    Ok(waited)
}

async fn time_change_lists(browse: &dyn Browse, made: &Made) -> Result<Duration, Failure> {
    let mut waited = Duration::ZERO;
    for crawl in [
        None,
        Some(made.large_crawl()),
        Some(CrawlId::new("app", "c11")),
    ] {
        let filter = ChangeListFilter {
            crawl,
            ..ChangeListFilter::default()
        };
        let list = async |from: Option<Place>| browse.changes(&filter, from.as_ref(), ROWS).await;
        waited = waited.max(time_list_pages(list).await?);
    }
    Ok(waited)
}

async fn time_crawl_lists(browse: &dyn Browse) -> Result<Duration, Failure> {
    let all = CrawlFilter::default();
    time_list_pages(async |from: Option<Place>| browse.crawls(&all, from.as_ref(), ROWS).await)
        .await
}
