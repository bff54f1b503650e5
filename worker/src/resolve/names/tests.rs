use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;

/// Lookups of names by a simulated system resolver. Names that begin with `dead` get no answer until the bench is
/// dropped.
struct Bench {
    names: Names,
    asked: Arc<AtomicUsize>,
    _end: mpsc::Sender<()>,
}

fn bench(limit: Duration) -> Bench {
    let (end, ended) = mpsc::channel();
    let (ended, asked) = (Mutex::new(ended), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&asked);
    let system = move |name: &str| {
        counter.fetch_add(1, Ordering::SeqCst);
        match name.split('.').next() {
            Some("dead") => {
                let _ = ended.lock().unwrap().recv();
                Err(LookupError::Failed(std::io::Error::other(
                    "the system gave up",
                )))
            }
            Some("slow") => {
                // The lookup takes so long that all requests of the test arrive before its end.
                std::thread::sleep(Duration::from_millis(300));
                Ok(vec!["192.0.2.2:0".parse().unwrap()])
            }
            Some("missing") => Err(LookupError::NotFound),
            _ => Ok(vec!["192.0.2.1:0".parse().unwrap()]),
        }
    };
    Bench {
        names: Names::new(limit, Box::new(system)),
        asked,
        _end: end,
    }
}

impl Bench {
    fn count_lookups(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

const LONG: Duration = Duration::from_secs(20);

/// A time limit that even a busy machine keeps if the resolver answers immediately.
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn concurrent_requests_for_a_name_share_one_lookup() {
    let bench = bench(LONG);
    let asks = || bench.names.addresses("slow.example");
    let (first, second, third) = tokio::join!(asks(), asks(), asks());
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert_eq!(bench.count_lookups(), 1);
}

#[tokio::test]
async fn addresses_are_kept_while_they_are_held_and_asked_for_again_afterwards() {
    let bench = bench(LONG);
    {
        let held = bench.names.hold("a.example");
        held.look_up().await;
        held.look_up().await;
        let _second = bench.names.hold("a.example");
        drop(held);
        bench.names.addresses("a.example").await.unwrap();
        assert_eq!(bench.count_lookups(), 1);
    }
    bench.names.addresses("a.example").await.unwrap();
    assert_eq!(bench.count_lookups(), 2);
}

#[tokio::test]
async fn a_missing_name_is_not_asked_for_again_until_it_is_forgotten() {
    let bench = bench(LONG);
    for _ in 0..3 {
        let missing = bench.names.addresses("missing.example").await.unwrap_err();
        assert!(matches!(*missing, LookupError::NotFound), "{missing}");
    }
    assert_eq!(bench.count_lookups(), 1);
    bench.names.forget_site("missing.example");
    bench.names.addresses("missing.example").await.unwrap_err();
    assert_eq!(bench.count_lookups(), 2);
}

#[tokio::test]
async fn a_lookup_without_an_answer_ends_at_its_limit_and_is_not_repeated() {
    let bench = bench(SHORT);
    for _ in 0..3 {
        let dead = bench.names.addresses("dead.example").await.unwrap_err();
        assert!(matches!(*dead, LookupError::Unanswered(_)), "{dead}");
        // The thread of the old lookup is still taken, so a new lookup joins the old one.
        bench.names.forget_site("dead.example");
    }
    assert_eq!(bench.count_lookups(), 1);
    bench.names.addresses("alive.example").await.unwrap();
}

#[tokio::test]
async fn names_without_an_answer_delay_no_other() {
    let bench = bench(SHORT);
    let dead: Vec<_> = (0..100)
        .map(|number| {
            let names = bench.names.clone();
            tokio::spawn(async move { names.addresses(&format!("dead.{number}.example")).await })
        })
        .collect();
    for dead in dead {
        assert!(dead.await.unwrap().is_err());
    }
    assert_eq!(bench.count_lookups(), 100);
    bench.names.addresses("alive.example").await.unwrap();
}

#[tokio::test]
async fn a_lookup_that_nobody_waits_for_is_not_started() {
    let bench = bench(LONG);
    // Begin more lookups than there are places for new names.
    let waiting: Vec<_> = (0..500)
        .map(|number| {
            let names = bench.names.clone();
            tokio::spawn(async move { names.addresses(&format!("dead.{number}.example")).await })
        })
        .collect();
    let begun = async {
        while bench.count_lookups() < 448 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(3 * LONG, begun)
        .await
        .expect("all places are taken");
    for waiting in waiting {
        waiting.abort();
        assert!(waiting.await.is_err());
    }
    let Bench { names, asked, _end } = bench;
    drop(_end);
    names.addresses("alive.example").await.unwrap();
    assert!(asked.load(Ordering::SeqCst) <= 450);
}
