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
pub(crate) mod refreshing;
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
            saving: members_that_a_page_lacks_are_null,
            saving: a_later_fetch_replaces_an_earlier_one,
            saving: a_stale_save_never_replaces_a_newer_page,
            saving: of_two_deliveries_the_later_one_wins_whatever_the_clocks_say,
            saving: deliveries_of_a_restored_dispatcher_are_later,
            saving: an_entry_that_cannot_be_kept_fails_alone,
            saving: one_page_in_two_crawls_is_kept_twice,
            saving: one_page_in_crawls_of_one_id_is_kept_for_each_application,
            saving: an_empty_batch_gets_an_empty_answer,
            filling: a_page_fills_missing_fields_and_becomes_their_source,
            filling: a_record_keeps_the_urls_that_it_came_with,
            filling: a_field_that_has_a_value_keeps_it,
            filling: a_record_is_resolved_once_and_keeps_the_time,
            filling: empty_values_fill_nothing,
            filling: fields_that_nobody_wants_stay_out_of_a_record,
            filling: a_record_that_is_not_stored_stays_open,
            filling: putting_a_record_again_keeps_what_was_found,
            filling: a_corrected_value_replaces_one_from_a_page_or_the_user,
            filling: records_of_two_datasets_share_nothing_but_their_ids,
            filling: known_input_fills_a_missing_field_without_a_source,
            filling: wanting_more_opens_a_resolved_record,
            filling: unfit_record_ids_are_refused_alone,
            filling: a_stored_page_is_applied_to_another_record,
            filling: hostile_names_and_ids_come_back_as_they_went_in,
            choosing: of_two_values_the_first_stays_and_the_other_is_a_candidate,
            choosing: the_mapping_that_comes_first_wins_whenever_it_arrives,
            choosing: pages_that_disagree_do_not_replace_each_others_values,
            choosing: values_of_the_user_have_no_candidates,
            choosing: candidates_are_bounded_in_number_and_size,
            content_changes: a_comparison_is_stored_only_directly_after_the_last_one,
            content_changes: changes_are_read_by_crawl_time_and_number,
            content_changes: checked_pages_are_listed_with_their_checks,
            content_changes: documents_that_are_new_in_a_run_are_counted,
            counting: records_are_counted_once_however_often_put,
            counting: fields_are_counted_by_mapping_and_crawl,
            counting: the_crawl_before_is_the_last_of_its_application,
            counting: a_record_counts_in_each_of_its_crawls,
            counting: records_of_an_unknown_crawl_are_refused,
            counting: a_record_that_was_read_at_another_position_is_reported,
            counting: a_crawl_comes_back_and_keeps_its_first_start,
            deciding: a_decision_is_kept_and_counted_and_undone,
            deciding: a_decision_is_written_back_to_the_users_documents,
            claiming: a_crawl_is_claimed_by_one_process_at_a_time,
            claiming: a_lapsed_claim_is_taken_over_and_its_owner_cannot_renew_it,
            claiming: a_successor_in_the_same_folder_takes_the_claim_at_once,
            claiming: of_many_that_claim_at_once_one_succeeds,
            exporting: an_export_passes_every_page_in_order_of_arrival,
            exporting: an_export_has_only_entries_that_match_the_filter,
            exporting: an_export_stops_when_its_callback_fails,
            changing: pages_are_found_by_their_keys,
            changing: many_large_pages_are_found_one_after_another,
            changing: changes_are_read_in_the_order_of_their_saves,
            changing: a_cursor_continues_after_its_page,
            changing: only_changes_that_match_the_filter_are_read,
            changing: a_page_that_was_saved_again_is_read_again,
            changing: a_stale_save_hides_no_page,
            changing: a_cursor_of_another_store_is_refused,
            changing: a_failing_callback_ends_the_reading,
            changing: a_reader_misses_nothing_while_several_save,
            dropping: old_pages_are_dropped_and_everything_else_stays,
            dropping: a_reader_that_is_too_late_gets_an_error_and_others_continue,
            dropping: a_reader_of_pages_dropped_meanwhile_gets_an_error,
            dropping: a_reader_misses_nothing_that_is_kept_while_old_pages_are_dropped,
            health: of_two_states_with_the_same_revision_one_is_stored,
            health: values_of_the_user_are_listed_and_filled_ones_are_not,
            health: pages_of_mappings_are_read_with_the_data_for_judging_them,
            rows: rows_become_records_with_their_place,
            rows: rows_of_a_page_for_several_records_belong_to_none,
            rows: a_row_that_is_seen_again_is_the_same_record,
            rows: two_clients_store_the_same_rows_once,
            row_lists: a_list_that_was_read_to_its_end_shows_which_rows_are_gone,
            row_lists: an_incomplete_list_marks_no_row_as_gone,
            row_lists: a_list_without_its_first_page_marks_no_row_as_gone,
            row_lists: a_row_that_another_list_holds_is_not_gone,
            row_lists: a_row_that_another_crawl_has_seen_since_is_not_gone,
            row_lists: a_list_that_has_lost_most_rows_is_doubted,
            row_lists: a_list_continues_across_a_redirect,
            row_lists: rows_without_a_key_make_a_list_incomplete,
            row_lists: many_rows_are_marked_as_gone_at_once,
            samples: each_sample_id_holds_the_last_page_with_its_text,
            samples: samples_are_dropped_by_age_and_size_and_those_of_alerts_last,
            bodies: the_body_of_the_later_delivery_is_kept,
            bodies: a_body_is_kept_if_its_page_is_unchanged_and_dropped_if_it_fails,
            bodies: beyond_the_limit_the_oldest_bodies_are_dropped,
            browsing: pages_are_listed_by_every_filter,
            browsing: a_listed_page_shows_its_stored_values,
            browsing: a_list_continues_at_its_place_while_pages_are_saved,
            lists: a_list_is_gathered_over_its_pages_in_whatever_order_they_come,
            lists: a_list_that_lacks_a_page_is_no_value_and_the_page_is_named,
            lists: a_refresh_replaces_a_list_as_a_whole,
            lists: lists_of_two_other_people_are_rivals,
            lists: a_list_of_the_user_stays_as_it_is,
            lists: a_list_is_taken_back_with_one_of_its_pages,
            lists: match_decides_however_a_page_comes_to_a_record,
            lists: a_page_of_another_record_fills_nothing_however_it_comes,
            listing: records_are_listed_by_dataset_state_and_id,
            listing: datasets_are_listed_with_counts_up_to_a_limit,
            listing: a_record_is_shown_with_all_that_is_known_of_it,
            listing: whole_records_are_listed_by_condition_and_from_an_id,
            listing: the_results_of_pages_are_found_by_their_keys,
            listing: crawls_are_listed_the_last_first,
            listing: pages_and_records_of_a_crawl_are_counted_up_to_a_limit,
            listing: changes_are_listed_the_last_first,
            browsing: a_body_is_found_only_if_it_belongs_to_the_present_page,
            listing: sites_in_trouble_are_listed_by_name,
            browsing: an_invented_place_in_a_list_gets_an_answer,
            rereading: a_trial_reports_the_changes_that_are_then_made_once,
            rereading: a_trial_takes_its_earlier_changes_into_account,
            rereading: a_page_that_was_fetched_meanwhile_is_not_overwritten,
            rereading: a_page_of_another_mapping_is_fetched_whole_the_next_time,
            rereading: pages_that_were_read_again_are_dropped_when_they_are_old,
            caching: robots_files_are_returned_for_a_day_fresh_or_not,
            caching: robots_fetched_earlier_never_replace_later_ones,
            caching: site_clocks_only_move_forward,
            caching: clocks_of_idle_sites_are_forgotten,
            caching: hostile_names_of_sites_and_origins_are_stored_unchanged,
            reserving: requests_to_a_site_never_overlap_and_keep_their_distance,
            reserving: a_reservation_is_granted_again_only_to_its_holder,
            reserving: a_lapsed_reservation_counts_as_answered_when_it_lapsed,
            reserving: an_unused_reservation_begins_no_delay,
            reserving: a_release_blocks_for_as_long_as_the_site_asked,
            reserving: reservations_and_clocks_that_were_put_respect_each_other,
            users_values: what_the_user_typed_is_never_lost,
            writing_back: values_from_pages_are_unwritten_until_the_write_is_confirmed,
            writing_back: only_fields_that_a_document_lacked_are_written_to_it,
            writing_back: a_better_value_is_written_back_in_place_of_the_former_one,
            writing_back: values_that_the_store_already_has_are_unwritten_at_once,
            writing_back: values_of_the_user_are_never_written_back,
            writing_back: a_record_is_written_back_to_its_own_collection,
            writing_back: two_documents_for_one_record_are_refused,
            refreshing: a_refresh_marks_known_fields_as_missing_once_per_crawl,
            refreshing: the_former_value_of_a_changed_field_is_kept,
            refreshing: a_given_value_that_is_refreshed_does_not_come_back,
            refreshing: a_refresh_that_fails_keeps_the_value_and_is_repeated,
            refreshing: a_value_that_is_to_be_refreshed_replaces_nothing,
            refreshing: a_given_value_without_a_new_one_is_refreshed_only_once,
            refreshing: the_history_is_bounded_and_the_oldest_goes,
            writing_back: an_unconfirmed_write_replaces_only_the_value_it_has_written,
            writing_back: a_value_that_may_be_the_users_stays_unless_it_is_refreshed,
            writing_back: records_that_others_have_changed_are_left_out_of_a_write,
            writing_back: a_former_value_that_is_typed_again_is_the_users,
            writing_back: values_written_to_another_collection_are_not_expected_in_the_input,
            site_states: the_last_state_of_a_site_is_returned,
            site_states: states_are_removed_alone_and_more_than_once,
            site_states: many_states_are_put_and_removed_at_once,
            site_states: hostile_texts_of_a_state_come_back_as_they_went_in,
            retraction: values_of_a_block_page_are_taken_back,
            retraction: a_page_that_was_fetched_since_is_not_taken_back,
            sharing: each_client_sees_what_the_other_has_stored,
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

/// An arbitrary time that the tests count from.
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

/// The dataset of all records in the tests.
pub(crate) fn dataset() -> DatasetName {
    "people".parse().unwrap()
}

/// The key of a record of the dataset `people`.
pub(crate) fn key(id: &str) -> String {
    record_key(&dataset(), id)
}

/// A record with these fields. It wants those that are null.
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

/// Puts the crawl `app/c1`, and adds the records to it.
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
