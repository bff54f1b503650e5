//! Tests a large job: all ratings of a site's users are collected, and the site refuses requests from time to time. The
//! input is the list of users with their counts of ratings. `WEBFILL_RATING_USERS=2000` runs the job at full size.

use super::*;

/// The time limit of one command in a job of full size.
const TIME_LIMIT: Duration = Duration::from_secs(3_600);

/// Of every [`OF`] requests from an address, the site refuses the last [`REFUSED`].
const OF: usize = 200;
const REFUSED: usize = 2;

/// The most times that failed pages are retried by another command, which may be refused, too.
const MOST_RETRIES: usize = 12;

fn user_count() -> usize {
    let users = std::env::var("WEBFILL_RATING_USERS").ok();
    users.map_or(50, |users| users.parse().expect("a number of users"))
}

fn all_ratings_are_collected(
    store: &str,
    progress: impl Fn() -> BTreeMap<String, (i64, i64)>,
    work: &Workplace,
) {
    let ratings = Ratings::large_site(user_count());
    let web = Web::start();
    let refusals = ratings.serve_refusing(&web, OF, REFUSED);
    let truth = ratings.expected_records();
    let done = complete_progress(ratings);
    let crawl = || crawl_command(work, &web, store).time_limit(TIME_LIMIT);
    crawl().finish().expect_code(0);
    let mut retries = 0;
    while progress() != done && retries < MOST_RETRIES {
        retries += 1;
        let again = ["--retry", "http_error,blocked,redirected"];
        crawl().args(again).finish().expect_code(0);
    }
    assert!(
        refusals.refused_count() > ratings.total_page_count() / OF,
        "{}",
        refusals.refused_count()
    );
    assert_eq!(refusals.client_count(), 1);
    assert_eq!(progress(), done, "after {retries} retries");
    let found = stored_rows(store);
    assert_eq!(found.len(), truth.len());
    for (id, row) in &truth {
        assert_eq!(found.get(id), Some(row), "{id}");
    }
}

#[test]
fn all_ratings_of_all_users_are_collected_from_a_site_that_refuses_at_times() {
    let ratings = Ratings::large_site(user_count());
    let work = create_workplace(ratings);
    let store = sqlite_uri(&work);
    all_ratings_are_collected(&store, || progress_of_lists(&store), &work);
}

#[needs(mongod)]
#[test]
fn all_ratings_of_all_users_are_collected_into_mongodb_as_well() {
    let database = fresh_database();
    let work = create_workplace(Ratings::large_site(user_count()));
    let uri = database.uri();
    all_ratings_are_collected(uri, || progress_in_mongodb(uri), &work);
}
