//! The collection `pages`: saves pages, and fills records from pages that are saved or applied.

mod stored_form;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use mongodb::bson::RawDocumentBuf;

use self::stored_form::{StoredPage, not_earlier_condition, page_document};
use super::command::Db;
use super::conditions::replace_if_statement;
use super::fault::Fault;
use super::page_log;
use super::records::{self, PutRowsResult};
use super::samples;
use super::{Mongo, call_interval, lists, retraction, validators};
use crate::error::StoreError;
use crate::list::{PageLack, PageOfList};
use crate::page::{MAX_ENTRY_BYTES, Page};
use crate::record::{FillRules, Leads, MappingRules, RecordState};
use crate::row_page::RowPage;
use crate::sample::Sample;
use crate::store::{Applied, ApplyPage, Pages, Save, SavePace, Saved};
use crate::validators::KnownPage;

pub(super) use self::stored_form::{alternatives_bson, row_counts_bson};

/// Saves pages with one command. Then fills their records with two more, and adds the pages to the log at the same
/// time.
pub(super) async fn save(
    db: &Db,
    saves: &[Save],
    rules: &FillRules,
) -> Result<Vec<Result<Saved, StoreError>>, Fault> {
    // Rows are stored before their pages, so all rows of a stored page are there.
    let mut lists = lists::load_lists_of_pages(db, saves).await?;
    let mut with_rows: Vec<RowPage<'_>> = saves.iter().map(RowPage::from).collect();
    for (page, list) in with_rows.iter_mut().zip(&lists) {
        page.list = list.as_ref().map(|list| list.first.clone());
    }
    let PutRowsResult {
        refused,
        leads: of_rows,
        without_key,
    } = records::put_rows(db, &with_rows, rules).await?;
    for entry in without_key {
        if let Some(list) = &mut lists[entry] {
            list.lacks.get_or_insert(PageLack::RowsWithoutKey);
        }
    }
    let mut kept = upsert_pages(db, saves, &lists).await?;
    for (entry, lead) in of_rows {
        if let Ok(saved) = &mut kept[entry] {
            saved.leads.push(lead);
        }
    }
    for (entry, reason) in refused {
        kept[entry] = Err(entry_error(&saves[entry], reason));
    }
    let leads: Vec<Leads> = saves
        .iter()
        .map(|Save { page, records }| match records.is_empty() {
            true => Leads::default(),
            false => rules.find_leads(&page.url, page.mapping.as_deref(), &page.links),
        })
        .collect();
    let mut requests = collect_fill_requests(saves, &leads, &kept);
    records::mark_own_pages(db, &mut requests).await?;
    put_samples(db, saves).await?;
    let ids = saves.iter().zip(&kept).filter(|(_, kept)| kept.is_ok());
    let ids = ids.map(|(save, _)| save.page.id()).collect();
    let (filled, ()) = tokio::try_join!(
        records::fill(db, &requests, rules),
        page_log::append(db, ids)
    )?;
    for (request, state) in filled {
        let saved = &mut kept[request.entry];
        match (saved.as_mut(), state) {
            (Ok(saved), Ok(RecordState::Resolved)) => saved.resolved.push(request.record.clone()),
            (Ok(saved), Ok(RecordState::Open)) => saved.open.push(request.record.clone()),
            (Ok(_), Err(reason)) => *saved = Err(entry_error(&saves[request.entry], reason)),
            (Err(_), _) => {}
        }
    }
    Ok(kept)
}

/// The records that are to be filled from the pages that were stored.
fn collect_fill_requests<'s>(
    saves: &'s [Save],
    leads: &'s [Leads],
    kept: &[Result<Saved, StoreError>],
) -> Vec<records::FillRequest<'s>> {
    let stored = saves.iter().zip(leads).zip(kept).enumerate();
    let stored = stored.filter(|(_, (_, kept))| kept.is_ok());
    stored
        .flat_map(|(entry, ((save, leads), _))| {
            let of_page = move |record: &String| records::FillRequest {
                record: record.clone(),
                values: save.page.values(leads),
                entry,
            };
            save.records.iter().map(of_page)
        })
        .collect()
}

async fn put_samples(db: &Db, saves: &[Save]) -> Result<(), Fault> {
    let samples = saves
        .iter()
        .filter_map(|save| Sample::from_page(&save.page));
    let samples: Vec<Sample> = samples.collect();
    match samples::put(db, &samples).await {
        // Only the samples, which are texts of pages, could not be stored. The pages count as saved.
        Err(Fault::InvalidEntry(reason)) => {
            tracing::warn!(
                event = "samples_not_kept",
                reason,
                "the store refuses texts of pages"
            );
            Ok(())
        }
        put => put,
    }
}

fn entry_error(save: &Save, reason: String) -> StoreError {
    StoreError::Entry {
        entry: format!("page {}", save.page.url),
        reason,
    }
}

/// Stores each page, unless a later version of it is already stored.
async fn upsert_pages(
    db: &Db,
    saves: &[Save],
    lists: &[Option<PageOfList>],
) -> Result<Vec<Result<Saved, StoreError>>, Fault> {
    let mut kept = Vec::with_capacity(saves.len());
    let mut statements = Vec::with_capacity(saves.len());
    let mut sent = Vec::with_capacity(saves.len());
    for (index, save) in saves.iter().enumerate() {
        match page_statement(&save.page, save.first_records(), lists[index].as_ref()) {
            Ok(statement) => {
                statements.push(statement);
                sent.push(index);
                kept.push(Ok(Saved::default()));
            }
            Err(Fault::InvalidEntry(reason)) => kept.push(Err(entry_error(save, reason))),
            Err(fault) => return Err(fault),
        }
    }
    for (statement, code, message) in db.upsert("pages", &statements).await?.failed {
        match Fault::from_statement_error(code, &message) {
            Fault::InvalidEntry(reason) => {
                kept[sent[statement]] = Err(entry_error(&saves[sent[statement]], reason))
            }
            fault => return Err(fault),
        }
    }
    Ok(kept)
}

/// The statement that stores a page, unless a later version of it is stored.
fn page_statement(
    page: &Page,
    records: &[String],
    list: Option<&PageOfList>,
) -> Result<RawDocumentBuf, Fault> {
    let stored = page_document(page, records, list)?;
    let bytes = stored.as_bytes().len();
    if bytes > MAX_ENTRY_BYTES {
        return Err(Fault::InvalidEntry(format!(
            "the page takes {bytes} bytes, more than the limit of {MAX_ENTRY_BYTES}"
        )));
    }
    Ok(replace_if_statement(
        &page.id(),
        not_earlier_condition(page),
        stored,
    ))
}

/// Fills records from stored pages that were fetched for other records.
pub(super) async fn apply(
    db: &Db,
    applies: &[ApplyPage],
    rules: &FillRules,
) -> Result<Vec<Option<Applied>>, Fault> {
    let mut ids: Vec<&str> = applies.iter().map(|apply| apply.page_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut pages = HashMap::with_capacity(ids.len());
    for stored in db.find_by_ids("pages", &ids).await? {
        if let Ok(id) = stored.get_str("_id") {
            pages.insert(id.to_owned(), StoredPage::from_stored(&stored, rules)?);
        }
    }
    let of_pages = pages.values().flat_map(|page| &page.records);
    let urls = records::urls_of(db, of_pages.map(String::as_str)).await?;
    for page in pages.values_mut() {
        let mut records = page.records.iter().filter_map(|record| urls.get(record));
        page.is_own = records.any(|urls| urls.contains(&page.url));
    }
    let request = |(entry, apply): (usize, &ApplyPage)| {
        let page = pages.get(&apply.page_id)?;
        Some(records::FillRequest {
            record: apply.record.clone(),
            values: page.values(),
            entry,
        })
    };
    let requests: Vec<records::FillRequest<'_>> =
        applies.iter().enumerate().filter_map(request).collect();
    let mut applied: Vec<Option<Applied>> = applies.iter().map(|_| None).collect();
    for (request, state) in records::fill(db, &requests, rules).await? {
        applied[request.entry] = Some(Applied {
            state: state.map_err(Fault::InvalidEntry)?,
            links: pages[&applies[request.entry].page_id].links.clone(),
        });
    }
    Ok(applied)
}

#[async_trait]
impl Pages for Mongo {
    /// A call of `save` takes three round trips, whatever the number of pages. Rows, lists and samples take further
    /// ones.
    fn save_pace(&self, processes: u16) -> SavePace {
        SavePace {
            max_entries: 512,
            max_age: call_interval(processes),
        }
    }

    fn set_mapping_rules(&self, mappings: Arc<dyn MappingRules>) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::new(FillRules::from_mappings(mappings));
    }

    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let count = saves.len();
        let rules = self.rules();
        let save = async move |db: Db| save(&db, &saves, &rules).await;
        self.call_for_each(count, save).await
    }

    async fn take_back(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let count = saves.len();
        let rules = self.rules();
        let take_back = async move |db: Db| retraction::take_back(&db, &saves, &rules).await;
        self.call_for_each(count, take_back).await
    }

    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError> {
        let rules = self.rules();
        self.call(async move |db: Db| apply(&db, &applies, &rules).await)
            .await
    }

    async fn known_pages(&self, ids: Vec<String>) -> Result<Vec<KnownPage>, StoreError> {
        self.call(async move |db: Db| validators::known_pages(&db, &ids).await)
            .await
    }
}
