//! Fuzzes requests on the control socket and by HTTP, as any client may send them.

use webfill_api::MAX_REQUESTS;
use webfill_scheduler::control::{ControlRequest, parse_request};
use webfill_scheduler::local_crawl::LocalRequest;
use webfill_scheduler::scope::Scope;
use webfill_urls::canonical_url;

/// The present time in all runs. It is fixed, because the expiry times of crawls are compared with it.
const NOW_MS: i64 = 1_700_000_000_000;

pub(crate) fn run(input: &[u8]) {
    match parse_request(input, NOW_MS) {
        Ok(ControlRequest::Local(request)) => assert_local_round_trip(request),
        Ok(ControlRequest::Feed { batch, .. }) => assert!(batch.len() <= MAX_REQUESTS),
        Ok(ControlRequest::Act(action)) => drop(format!("{action:?}")),
        Ok(ControlRequest::UnreadFeed) => unreachable!("what is read is not unread"),
        Err(refusal) => {
            assert!(refusal.path.starts_with('$'), "a refusal says where");
            assert!(!refusal.message.is_empty(), "a refusal says why");
            refusal.to_answer().to_string();
        }
    }
}

fn assert_local_round_trip(request: LocalRequest) {
    let text = serde_json::to_vec(&request).expect("a request is plain JSON");
    let Ok(ControlRequest::Local(again)) = parse_request(&text, NOW_MS) else {
        panic!("what a client of ours writes is read");
    };
    let again = serde_json::to_vec(&again).expect("a request is plain JSON");
    assert_eq!(text, again);
    match request {
        LocalRequest::OpenCrawl { spec, .. } => {
            if let Ok(scope) = Scope::compile(&spec) {
                exercise_scope(&scope);
            }
        }
        LocalRequest::FeedSeeds { seeds, .. } => {
            for seed in seeds {
                let _ = canonical_url(&seed.url, None).map_err(|refusal| refusal.to_string());
            }
        }
        _ => {}
    }
}

fn exercise_scope(scope: &Scope) {
    for url in [
        "https://www.example.com/people/ada?page=2",
        "http://[::1]:8080/a.tar.gz",
    ] {
        let url = canonical_url(url, None).expect("it is one");
        // Whether the page is accepted does not matter, but the check must return.
        let _ = scope.check_page(&url);
    }
    scope.allows_depth(1);
}
