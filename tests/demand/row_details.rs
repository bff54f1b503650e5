//! Tests that detail pages complete the records of rows in a fleet, too.

use serde_json::json;
use webfill_tests::shelves::{self, SHELVES, shelf_url};

use crate::fleet::{Fleet, request_with};

#[test]
fn supervisors_complete_the_records_of_rows_from_the_pages_to_which_they_lead() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    for (name, mapping) in shelves::mappings() {
        let file = format!("mappings/{name}.json");
        fleet.work.write_json(&file, &mapping);
    }
    shelves::serve(&fleet.web);
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    fleet.add_supervisor("two");
    let shelf = |number| request_with(&shelf_url(number), "shelves", json!({"maxdepth": 1}));
    let requests: Vec<_> = (0..SHELVES).map(shelf).collect();
    fleet.feed(&requests);
    fleet.wait_until_done("shelves");
    assert_eq!(
        shelves::stored_records(&fleet.store_uri()),
        shelves::expected_values()
    );
    // All linked pages are requested, because crawls that requests have opened follow all links, not only those of
    // mappings.
    assert_eq!(
        shelves::requested_pages(&fleet.web),
        shelves::linked_pages()
    );
}
