//! Requests on the control socket, as any client may send them.

use webfill_dispatcher::control::{Request, read};
use webfill_dispatcher::scope::Scope;
use webfill_urls::canonical;

pub(crate) fn run(input: &[u8]) {
    let request = match read(input) {
        Ok(request) => request,
        Err(refusal) => {
            assert!(!refusal.message.is_empty(), "a refusal says why");
            refusal.answer().to_string();
            return;
        }
    };
    let text = serde_json::to_vec(&request).expect("a request is plain JSON");
    let again = read(&text).expect("what a client of ours writes is read");
    let again = serde_json::to_vec(&again).expect("a request is plain JSON");
    assert_eq!(text, again);
    match request {
        Request::OpenCrawl { spec } => {
            if let Ok(scope) = Scope::compile(&spec) {
                judge(&scope);
            }
        }
        Request::FeedSeeds { seeds, .. } => {
            for seed in seeds {
                let _ = canonical(&seed.url, None).map_err(|refusal| refusal.to_string());
            }
        }
        _ => {}
    }
}

fn judge(scope: &Scope) {
    for url in [
        "https://www.example.com/people/ada?page=2",
        "http://[::1]:8080/a.tar.gz",
    ] {
        let url = canonical(url, None).expect("it is one");
        // Either answer is right; there must be one.
        let _ = scope.judge(&url);
    }
    scope.reaches(1);
}
