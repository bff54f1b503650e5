//! The promises of every backend, one test for each.
//!
//! The test file of a backend declares this module. It has a function that returns the [`Clients`] of a fresh database
//! and a guard that keeps the database, and passes the function to `conformance_tests!`. An attribute before the
//! function's name is put before each test.

pub(crate) mod bodies;
pub(crate) mod browsing;
pub(crate) mod caching;
pub(crate) mod changing;
pub(crate) mod choosing;
pub(crate) mod claiming;
pub(crate) mod content_changes;
pub(crate) mod counting;
pub(crate) mod deciding;
pub(crate) mod dropping;
pub(crate) mod exporting;
pub(crate) mod filling;
pub(crate) mod health;
pub(crate) mod listing;
pub(crate) mod lists;
pub(crate) mod rereading;
pub(crate) mod reserving;
pub(crate) mod retraction;
pub(crate) mod row_lists;
pub(crate) mod rows;
pub(crate) mod samples;
pub(crate) mod saving;
pub(crate) mod sharing;
pub(crate) mod site_states;
pub(crate) mod users_values;
pub(crate) mod writing_back;

use serde_json::{Map, Value, json};
use webfill_store::{
    Backends, Crawl, CrawlId, CrawlState, DatasetName, ExportFilter, ExportKind, Page, Record,
    RecordState, Save, Saved, Store, StoreError, record_key,
};
use webfill_wire::Outcome;

/// Two clients of one database, opened as two processes would.
pub(crate) struct Clients {
    pub(crate) first: Backends,
    pub(crate) second: Backends,
}

/// Generates one test for each promise.
macro_rules! conformance_tests {
    ($(#[$needs:meta])? $fresh:path) => {
        $crate::conformance::conformance_tests! { @tests [$(#[$needs])?] $fresh;
            saving: a_page_comes_back_as_it_went_in,
            saving: no_number_loses_digits,
            saving: hostile_text_comes_back_as_it_went_in,
            saving: saving_a_page_again_changes_nothing,
            saving: what_a_page_does_not_keep_is_null,
            saving: a_later_fetch_replaces_an_earlier_one,
            saving: a_stale_save_never_replaces_a_newer_page,
            saving: of_two_deliveries_the_later_one_wins_whatever_the_clocks_say,
            saving: what_a_restored_dispatcher_hands_out_is_later,
            saving: an_entry_that_cannot_be_kept_fails_alone,
            saving: one_page_in_two_crawls_is_kept_twice,
            saving: one_page_in_crawls_of_one_id_is_kept_for_each_application,
            saving: an_empty_batch_is_answered_by_nothing,
            filling: a_page_fills_what_is_missing_and_keeps_the_source,
            filling: a_record_keeps_the_urls_that_it_came_with,
            filling: a_field_that_has_a_value_keeps_it,
            filling: a_record_is_resolved_once_and_keeps_the_time,
            filling: empty_values_fill_nothing,
            filling: fields_that_nobody_wants_stay_out_of_a_record,
            filling: a_record_that_is_not_stored_stays_open,
            filling: putting_a_record_again_keeps_what_was_found,
            filling: a_corrected_value_is_taken_whoever_gave_the_other,
            filling: records_of_two_datasets_share_nothing_but_their_ids,
            filling: known_input_fills_a_missing_field_without_a_source,
            filling: wanting_more_opens_a_resolved_record,
            filling: unfit_record_ids_are_refused_alone,
            filling: a_stored_page_is_applied_to_another_record,
            filling: hostile_names_and_ids_come_back_as_they_went_in,
            choosing: of_two_values_the_first_stays_and_the_other_is_a_candidate,
            choosing: the_mapping_that_comes_first_wins_whenever_it_arrives,
            choosing: pages_that_disagree_do_not_take_turns,
            choosing: what_the_user_gave_has_no_candidates,
            choosing: candidates_are_bounded_in_number_and_size,
            content_changes: a_judgement_is_stored_onto_the_one_before_it,
            content_changes: changes_are_read_by_crawl_time_and_number,
            content_changes: checked_pages_are_listed_with_their_checks,
            content_changes: documents_that_a_run_has_met_first_are_counted,
            counting: records_are_counted_once_however_often_put,
            counting: fields_are_counted_by_mapping_and_crawl,
            counting: the_crawl_before_is_the_last_of_its_application,
            counting: a_record_counts_in_each_of_its_crawls,
            counting: records_of_an_unknown_crawl_are_refused,
            counting: a_record_that_was_read_elsewhere_before_is_reported,
            counting: a_crawl_comes_back_and_keeps_its_first_start,
            deciding: a_decision_is_kept_and_counted_and_undone,
            deciding: a_decision_is_written_back_to_the_users_documents,
            claiming: a_crawl_is_claimed_by_one_process_at_a_time,
            claiming: a_claim_that_lapsed_is_taken_over_and_its_owner_learns_it,
            claiming: a_successor_in_the_same_folder_takes_the_claim_at_once,
            claiming: of_many_that_claim_at_once_one_succeeds,
            exporting: an_export_hands_out_every_page_in_order_of_arrival,
            exporting: an_export_keeps_to_its_filter,
            exporting: an_export_stops_when_its_taker_fails,
            changing: pages_are_found_by_their_keys,
            changing: many_large_pages_are_found_one_after_another,
            changing: changes_come_in_the_order_of_their_saves,
            changing: a_cursor_goes_on_behind_its_page,
            changing: changes_keep_to_their_filter,
            changing: a_page_that_was_saved_anew_comes_anew,
            changing: a_stale_save_hides_no_page,
            changing: a_cursor_of_another_store_is_refused,
            changing: a_taker_that_fails_ends_the_reading,
            changing: a_reader_misses_nothing_while_several_save,
            dropping: what_is_too_old_goes_and_all_else_stays,
            dropping: a_reader_that_comes_too_late_learns_it_and_others_continue,
            dropping: a_reader_that_is_overtaken_learns_it,
            dropping: a_reader_misses_nothing_that_is_kept_while_old_pages_are_dropped,
            health: of_two_that_judge_one_comes_too_late,
            health: values_of_the_user_are_listed_and_filled_ones_are_not,
            health: pages_that_a_mapping_has_read_are_listed_with_what_they_are_judged_by,
            rows: rows_become_records_with_their_place,
            rows: rows_of_a_page_for_several_records_belong_to_none,
            rows: a_row_that_is_seen_again_is_the_same_record,
            rows: two_clients_store_the_same_rows_once,
            row_lists: a_list_that_was_read_to_its_end_says_which_rows_are_gone,
            row_lists: a_list_that_broke_off_says_nothing,
            row_lists: a_list_that_does_not_begin_at_its_first_page_says_nothing,
            row_lists: a_row_that_another_list_holds_is_not_gone,
            row_lists: what_another_crawl_has_seen_since_is_not_gone,
            row_lists: that_most_rows_are_gone_is_not_believed,
            row_lists: a_list_begins_before_its_redirects,
            row_lists: rows_without_a_key_break_a_list_off,
            row_lists: many_rows_go_at_once,
            samples: the_last_page_in_its_place_is_kept_with_its_text,
            samples: samples_go_by_age_and_by_bytes_and_those_of_alerts_last,
            bodies: the_body_of_the_later_delivery_is_kept,
            bodies: a_body_stays_with_an_unchanged_page_and_goes_with_a_failed_one,
            bodies: of_too_many_bodies_the_oldest_go_in_the_end,
            browsing: pages_are_listed_by_what_they_are,
            browsing: a_page_of_a_list_says_what_is_stored_of_it,
            browsing: a_list_goes_on_where_it_was_whatever_is_stored_meanwhile,
            lists: a_list_is_gathered_over_its_pages_in_whatever_order_they_come,
            lists: a_list_with_a_hole_is_none_and_the_page_is_named,
            lists: a_refresh_replaces_a_list_as_a_whole,
            lists: lists_of_two_others_are_rivals,
            lists: a_list_of_the_user_stays_as_it_is,
            lists: a_list_is_taken_back_with_one_of_its_pages,
            lists: match_is_in_force_on_every_way,
            lists: the_page_of_another_fills_nothing_on_every_way,
            listing: records_are_listed_by_dataset_state_and_id,
            listing: datasets_are_listed_with_counts_up_to_a_limit,
            listing: a_record_is_shown_with_all_that_is_known_of_it,
            listing: whole_records_are_listed_by_condition_and_from_an_id,
            listing: the_results_of_pages_are_found_by_their_keys,
            listing: crawls_are_listed_the_last_first,
            listing: what_is_stored_of_a_crawl_is_counted_up_to_a_limit,
            listing: changes_are_listed_the_last_first,
            browsing: a_body_is_reported_if_it_is_that_of_the_page,
            listing: sites_in_trouble_are_listed_by_name,
            browsing: a_place_that_no_list_has_given_ends_in_an_answer,
            rereading: a_trial_reports_what_is_then_done_once,
            rereading: a_trial_knows_what_it_has_done_before,
            rereading: a_page_that_was_fetched_meanwhile_is_not_overwritten,
            rereading: a_page_of_another_mapping_is_fetched_whole_the_next_time,
            rereading: pages_that_were_read_again_are_dropped_when_they_are_old,
            caching: robots_come_back_for_a_day_fresh_or_not,
            caching: robots_fetched_earlier_never_replace_later_ones,
            caching: site_clocks_only_move_forward,
            caching: clocks_of_idle_sites_are_forgotten,
            caching: hostile_names_of_sites_and_origins_are_names,
            reserving: requests_to_a_site_never_overlap_and_keep_their_distance,
            reserving: a_reservation_is_granted_again_only_to_its_holder,
            reserving: a_lapsed_reservation_counts_as_answered_when_it_lapsed,
            reserving: an_unused_reservation_begins_no_delay,
            reserving: a_release_blocks_for_as_long_as_the_site_asked,
            reserving: reservations_and_clocks_that_were_put_respect_each_other,
            users_values: what_the_user_typed_is_never_lost,
            writing_back: what_pages_fill_is_unwritten_until_it_is_confirmed,
            writing_back: only_what_a_document_lacked_is_written_to_it,
            writing_back: a_better_value_is_unwritten_again_beside_the_one_it_replaced,
            writing_back: what_the_store_knew_before_is_unwritten_at_once,
            writing_back: what_the_user_gave_is_never_written_back,
            writing_back: a_record_is_written_back_to_its_own_collection,
            writing_back: two_documents_are_not_one_record,
            writing_back: a_refresh_wants_again_what_is_known_once_for_each_crawl,
            writing_back: what_a_changed_value_was_is_kept,
            writing_back: a_given_value_that_is_refreshed_does_not_come_back,
            writing_back: a_refresh_that_fails_keeps_the_value_and_is_repeated,
            writing_back: a_value_that_is_asked_for_again_replaces_nothing,
            writing_back: a_given_value_that_was_refreshed_in_vain_is_not_asked_for_ever,
            writing_back: the_history_is_bounded_and_the_oldest_goes,
            writing_back: a_write_of_which_nobody_knows_replaces_only_its_own_value,
            writing_back: what_may_be_the_users_stays_unless_a_refresh_asks_for_it,
            writing_back: a_batch_begins_without_records_that_others_change,
            writing_back: a_former_value_that_is_typed_again_is_the_users,
            writing_back: what_is_written_elsewhere_is_not_looked_for_in_the_input,
            site_states: the_state_of_a_site_comes_back_as_it_was_put_last,
            site_states: states_are_removed_alone_and_more_than_once,
            site_states: many_states_are_put_and_removed_at_once,
            site_states: hostile_texts_of_a_state_come_back_as_they_went_in,
            retraction: what_a_block_has_brought_is_taken_back,
            retraction: a_page_that_was_fetched_since_is_not_taken_back,
            sharing: two_clients_see_what_the_other_kept,
            sharing: two_clients_fill_one_record_without_losing_a_field,
            sharing: two_clients_write_at_once_and_lose_nothing,
        }
    };
    (@tests $needs:tt $fresh:path; $($part:ident: $promise:ident,)+) => {
        $($crate::conformance::conformance_tests! { @test $needs $fresh, $part, $promise })+
    };
    (@test [$(#[$needs:meta])?] $fresh:path, $part:ident, $promise:ident) => {
        $(#[$needs])?
        #[tokio::test]
        async fn $promise() {
            let (clients, _kept) = $fresh().await;
            $crate::conformance::$part::$promise(&clients).await;
        }
    };
}
pub(crate) use conformance_tests;

/// Texts that some programs interpret, such as operators and control characters.
pub(crate) const HOSTILE: [&str; 13] = [
    "$where",
    "$$ROOT",
    "$_id",
    "a.b.c",
    ".",
    "nul\0in the middle",
    "\u{2400}0",
    "\u{1F980} beyond the BMP",
    "'; DROP TABLE pages;--",
    "\u{202E}right to left",
    "line\nbreak\r\ttab",
    "\u{9B}31m",
    "\"\\",
];

/// An arbitrary time from which the tests count.
pub(crate) const NOON_MS: i64 = 1_767_268_800_000;
pub(crate) const NOON: &str = "2026-01-01T12:00:00.000Z";

pub(crate) fn crawl_id() -> CrawlId {
    CrawlId::new("app", "c1")
}

pub(crate) fn crawl(id: CrawlId) -> Crawl {
    Crawl {
        id,
        request: json!({"url": "https://example.com/", "maxdepth": 1}),
        state: CrawlState::Running,
        counts: Map::new(),
        started_at_ms: NOON_MS,
        updated_at_ms: NOON_MS,
        finished_at_ms: None,
    }
}

/// A page of the crawl `app/c1`, fetched at noon and without fields.
pub(crate) fn page(url: &str) -> Page {
    Page {
        depth: 1,
        status_code: Some(200),
        content_type: Some(String::from("text/html")),
        bytes: 1234,
        started_at_ms: NOON_MS,
        elapsed_ms: 250,
        worker: String::from("host/0"),
        ..Page::new(&crawl_id(), url, "example.com", Outcome::Ok)
    }
}

pub(crate) fn page_with(url: &str, fields: Value) -> Page {
    Page {
        fields: object(fields),
        mapping: Some(String::from("people")),
        ..page(url)
    }
}

/// The dataset of the tests' records.
pub(crate) fn dataset() -> DatasetName {
    "people".parse().unwrap()
}

/// The key of a record of that dataset.
pub(crate) fn key(id: &str) -> String {
    record_key(&dataset(), id)
}

/// A record that wants each field that is null here.
pub(crate) fn record(id: &str, fields: Value) -> Record {
    let fields = object(fields);
    let nulls = fields.iter().filter(|(_, value)| value.is_null());
    Record {
        dataset: dataset(),
        id: id.to_owned(),
        want: nulls.map(|(name, _)| name.clone()).collect(),
        fields,
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

pub(crate) async fn save(
    store: &dyn Store,
    page: Page,
    records: &[&str],
) -> Result<Saved, StoreError> {
    let records = records.iter().map(|id| key(id)).collect();
    let mut saved = store.save(vec![Save { page, records }]).await;
    assert_eq!(saved.len(), 1);
    saved.remove(0)
}

/// Puts the crawl `app/c1` and records into it.
pub(crate) async fn put(
    store: &dyn Store,
    records: Vec<Record>,
) -> Vec<Result<RecordState, StoreError>> {
    store.put_crawl(crawl(crawl_id())).await.unwrap();
    store.put_records(&crawl_id(), records, NOON_MS).await
}

pub(crate) async fn export_all(store: &dyn Store, kind: ExportKind) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut each = |row| {
        rows.push(row);
        Ok(())
    };
    let filter = ExportFilter::default();
    let count = store.export(kind, &filter, &mut each).await.unwrap();
    assert_eq!(count, rows.len() as u64);
    rows
}

pub(crate) async fn only_page(store: &dyn Store) -> Value {
    let mut pages = export_all(store, ExportKind::Pages).await;
    assert_eq!(pages.len(), 1, "{pages:?}");
    pages.remove(0)
}

pub(crate) async fn stored_record(store: &dyn Store, id: &str) -> Value {
    let records = export_all(store, ExportKind::Records).await;
    let found = records.iter().find(|record| record["_id"] == key(id));
    found
        .cloned()
        .unwrap_or_else(|| panic!("no record {id} in {records:?}"))
}
