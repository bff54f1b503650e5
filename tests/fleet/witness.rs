//! The evidence from the access log of the sites and from the store: whether anything was lost, fetched twice, or
//! fetched too soon.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bson::doc;
use webfill_tests::documents::Documents;
use webfill_tests::site::{Visit, Visits};

use crate::load::site_host;
/// A busy machine may log a request late, so that the next one seems to come too early. It seems so by at most the
/// delay divided by this number.
const BLUR: u32 = 10;

/// After the death of a supervisor, repeated fetches are excused for this time. By then, the tasks have been given to
/// other supervisors, or to the same one again.
const DEATH_MATTERS_FOR: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) fed: usize,
    pub(crate) requests: usize,
    pub(crate) stored: u64,
    pub(crate) fetched_again: usize,
    pub(crate) shortest_gap: Duration,
    pub(crate) broken: Vec<String>,
}

/// The pages that were fed, and the deaths of supervisors meanwhile.
pub(crate) struct Expected {
    pub(crate) sites: usize,
    /// The number of pages fed for each site.
    pub(crate) pages: usize,
    pub(crate) delay: Duration,
    pub(crate) deaths: Vec<Instant>,
}

pub(crate) fn evaluate(visits: &Visits, store: &str, expected: &Expected) -> Judgement {
    let mut judgement = Judgement {
        fed: expected.sites * expected.pages,
        requests: visits.len(),
        shortest_gap: Duration::MAX,
        ..Judgement::default()
    };
    let mut of_hosts: HashMap<&str, Vec<Visit>> = HashMap::new();
    for visit in &visits.0 {
        of_hosts.entry(&visit.host).or_default().push(visit.clone());
    }
    for site in 0..expected.sites {
        let of_host = of_hosts.remove(site_host(site).as_str());
        judgement.evaluate_site(site, &Visits(of_host.unwrap_or_default()), expected);
    }
    judgement.evaluate_store(store);
    judgement
}

impl Judgement {
    fn evaluate_site(&mut self, site: usize, visits: &Visits, expected: &Expected) {
        let blur = expected.delay / BLUR;
        let asked = visits.pages();
        for pair in visits.overlaps() {
            self.broken
                .push(format!("two requests at once at site {site}: {pair}"));
        }
        for (gap, pair) in asked.gaps().into_iter().zip(asked.0.windows(2)) {
            self.shortest_gap = self.shortest_gap.min(gap);
            if gap + blur < expected.delay {
                let (first, second) = (&pair[0].path, &pair[1].path);
                self.broken
                    .push(format!("site {site}: {gap:?} between {first} and {second}"));
            }
        }
        let mut last: HashMap<&str, Instant> = HashMap::new();
        for visit in &asked.0 {
            let Some(first) = last.insert(&visit.path, visit.started_at) else {
                continue;
            };
            self.fetched_again += 1;
            let explains =
                |death: &&Instant| first < **death + blur && **death < first + DEATH_MATTERS_FOR;
            if expected.deaths.iter().find(explains).is_none() {
                self.broken.push(format!(
                    "site {site}: {} was fetched twice, and nobody had died",
                    visit.path
                ));
            }
        }
        if last.len() != expected.pages {
            let (found, pages) = (last.len(), expected.pages);
            self.broken.push(format!(
                "site {site}: {found} pages of {pages} were asked for"
            ));
        }
    }

    fn evaluate_store(&mut self, store: &str) {
        let documents = Documents::open(store);
        self.stored = documents.count("pages");
        if self.stored != self.fed as u64 {
            let (stored, fed) = (self.stored, self.fed);
            self.broken.push(format!("{stored} pages stored of {fed}"));
        }
        let ends = documents.aggregate(
            "pages",
            vec![doc! {"$group": {"_id": "$outcome", "pages": {"$sum": 1}}}],
        );
        if ends.iter().any(|end| end["_id"] != "ok") {
            self.broken.push(format!("not all pages are ok: {ends:?}"));
        }
    }
}
