//! Tests two dispatchers with one journal on separate machines. Under load, the serving one is lost again and again, in
//! different ways. The primary of the three MongoDB servers of the store is lost, too. The other dispatcher must serve
//! soon, nothing may be lost or fetched twice, and no site may be requested too soon (`make failover`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_test_mongod::ReplicaSet;
use webfill_tests::Signal;
use webfill_tests::isolation::{Bridge, Network};
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

use crate::machines::{Client, make_keys, wait_for};

const TASKS: u16 = 5555;
const CONTROL: u16 = 5557;
const SITES: usize = 24;
const DELAY: Duration = Duration::from_millis(200);
const SUPERVISORS: [&str; 2] = ["vm-a", "vm-b"];
const APP: &str = "failover";
const CRAWL: &str = "pages";

/// The number of pages that are fed at a time. They last until the next dispatcher serves.
const FED: usize = SITES * 60;

/// The longest time until the next dispatcher must serve.
const SERVES_WITHIN: Duration = Duration::from_secs(60);

/// The longest time that the last pages may take at the end.
const DONE_WITHIN: Duration = Duration::from_secs(600);

/// How the serving dispatcher is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    /// The dispatcher's process is killed.
    Killed,
    /// The dispatcher's machine disappears, together with its network.
    PowerLost,
    /// The dispatcher's machine is cut off from all other machines, and comes back when another dispatcher serves.
    Unplugged,
    /// The dispatcher's process is suspended, and continues when another dispatcher serves.
    Suspended,
    /// The dispatcher's process is killed, together with the primary MongoDB server of the store.
    KilledWithPrimary,
    /// The dispatcher is asked to hand over to the other one.
    HandedOver,
}

const LOSSES: [Loss; 6] = [
    Loss::Killed,
    Loss::Suspended,
    Loss::Unplugged,
    Loss::HandedOver,
    Loss::PowerLost,
    Loss::KilledWithPrimary,
];

/// How long a loss of the dispatcher was felt.
struct Pause {
    until_served: Duration,
    without_page: Duration,
}

struct Pair {
    // Rust drops the fields in this order: first the processes, then the networks, the servers and the folder.
    dispatchers: [Option<Running>; 2],
    _supervisors: Vec<Running>,
    networks: [Network; 2],
    web: Web,
    servers: ReplicaSet,
    work: Workplace,
    _bridge: Bridge,
    /// The number of the serving dispatcher.
    serving: usize,
    fed: usize,
}

impl Pair {
    fn start() -> Pair {
        let bridge = Bridge::build();
        let address = bridge.address();
        let work = Workplace::new();
        make_keys(&work, &SUPERVISORS.map(str::to_owned));
        let mut pair = Pair {
            dispatchers: [None, None],
            _supervisors: Vec::new(),
            networks: [0, 1].map(|number| bridge.add_machine(number)),
            web: Web::start_on(address.parse().expect("an address")),
            servers: ReplicaSet::start_at(address, 3),
            work,
            _bridge: bridge,
            serving: 0,
            fed: 0,
        };
        for site in 0..SITES {
            let site = pair.web.site(&site_host(site));
            site.serve_otherwise(|_| page("P").into());
        }
        let mut first = pair.dispatcher_command(0, &[]).start();
        first.wait_for_stderr("ready");
        pair.dispatchers[0] = Some(first);
        pair._supervisors = SUPERVISORS
            .map(|name| pair.supervisor_command(name).start())
            .into();
        pair.start_standby(1);
        pair
    }

    fn dispatcher_command(&self, number: usize, more: &[&str]) -> Run {
        self.command_of_role("dispatcher", &format!("dispatcher-{number}"), "keys")
            .args([
                "--listen",
                &machine_address(number),
                "--http",
                "off",
                "--mappings",
            ])
            .arg(self.work.path("mappings"))
            .args(more)
            .in_network(&self.networks[number])
    }

    fn supervisor_command(&self, name: &str) -> Run {
        let resolve = self.web.resolve_args().remove(1);
        let both = [0, 1].map(|number| format!("tcp://{}:{TASKS}", machine_address(number)));
        self.command_of_role("supervisor", name, &format!("keys-{name}"))
            .args(["--dispatcher", &both.join(","), "--id", name])
            .args(["--workers", "1"])
            .env("WEBFILL_FETCH_RESOLVE", resolve)
    }

    fn command_of_role(&self, role: &str, name: &str, keys: &str) -> Run {
        Run::new([role, "--store", &self.store_uri(), "--state"])
            .arg(self.work.path(&format!("state/{name}")))
            .arg("--keys")
            .arg(self.work.path(keys))
            .env("WEBFILL_POLITENESS_DELAY", DELAY.as_secs_f64().to_string())
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .env("WEBFILL_DISPATCHER_JOURNAL", "true")
            .time_limit(Duration::from_secs(20_000))
    }

    fn store_uri(&self) -> String {
        self.servers.uri("failover")
    }

    /// Starts a dispatcher that stands by, and waits until it has applied the whole journal (the record of all
    /// changes).
    fn start_standby(&mut self, number: usize) {
        let mut running = self.dispatcher_command(number, &["--standby"]).start();
        running.wait_for_stderr("of the journal is applied");
        self.dispatchers[number] = Some(running);
        let client = self.client(self.serving);
        let name = format!("{}:{TASKS}", machine_address(number));
        wait_for("the other one is close behind", SERVES_WITHIN, || {
            let status = client.status()?;
            let standbys = status["journal"]["standbys"].as_array()?.clone();
            let own = standbys.iter().find(|one| one["name"] == name.as_str())?;
            let is_close = own["seen_ago_s"].as_f64()? < 5.0 && own["behind_s"].as_f64()? < 5.0;
            (is_close && own["record"].as_u64()? > 0).then_some(())
        });
    }

    fn client(&self, number: usize) -> Client {
        Client::new(
            &self.work,
            format!("tcp://{}:{CONTROL}", machine_address(number)),
        )
    }

    /// Feeds the next pages. All of them must be accepted.
    fn feed(&mut self) {
        let client = self.client(self.serving);
        let pages: Vec<Value> = (self.fed..self.fed + FED)
            .map(|page| {
                let url = format!("http://{}/{page}", site_host(page % SITES));
                json!({"url": url, "appid": APP, "crawlid": CRAWL})
            })
            .collect();
        let answer = client.request(&json!(pages)).expect("an answer");
        assert_eq!(answer["accepted"], FED, "{answer}");
        self.fed += FED;
    }

    /// Makes the serving dispatcher fail in this way, and waits until the other one serves. Returns how long that took.
    fn fail_over(&mut self, loss: Loss) -> Pause {
        let (lost, next) = (self.serving, 1 - self.serving);
        let began = Instant::now();
        let running = self.dispatchers[lost].take().expect("it runs");
        let primary = (loss == Loss::KilledWithPrimary).then(|| self.servers.primary());
        match loss {
            Loss::Killed => running.signal(Signal::KILL),
            Loss::PowerLost => {
                self.networks[lost].unplug();
                running.signal(Signal::KILL);
            }
            Loss::Unplugged => self.networks[lost].unplug(),
            Loss::Suspended => running.signal(Signal::STOP),
            Loss::KilledWithPrimary => {
                running.signal(Signal::KILL);
                self.servers.members[primary.expect("it is known")].kill();
            }
            Loss::HandedOver => {
                let store = self.store_uri();
                let asked = Run::new(["dispatcher", "--hand-over", "--store", &store]).finish();
                asked.expect_code(0);
            }
        }
        let client = self.client(next);
        wait_for("the other one serves", SERVES_WITHIN, || client.status());
        let until_served = began.elapsed();
        self.serving = next;
        match loss {
            Loss::Unplugged | Loss::PowerLost => self.networks[lost].plug_in(),
            Loss::Suspended => running.signal(Signal::CONT),
            _ => {}
        }
        if let Some(primary) = primary {
            self.servers.members[primary].restart();
        }
        let ended = running.finish();
        match loss {
            Loss::Unplugged | Loss::Suspended => {
                let ended = ended.expect_code(1);
                assert!(ended.stderr.contains("taken over"), "{}", ended.stderr);
            }
            Loss::HandedOver => drop(ended.expect_code(1)),
            _ => {}
        }
        Pause {
            until_served,
            without_page: self.longest_time_without_page(began),
        }
    }

    /// The longest time between the starts of two requests for pages, of any sites, since `began` until now.
    fn longest_time_without_page(&self, began: Instant) -> Duration {
        let visits = self.web.visits().pages();
        let mut starts: Vec<Instant> = visits.0.iter().map(|visit| visit.started_at).collect();
        starts.sort();
        starts.push(Instant::now());
        let first = starts.partition_point(|start| *start < began).max(1) - 1;
        let gaps = starts[first..].windows(2).map(|pair| pair[1] - pair[0]);
        gaps.max().unwrap_or_default()
    }

    /// Waits for the end of the crawl, and checks the access log.
    fn check_results(&self) {
        let client = self.client(self.serving);
        let info = json!({"action": "info", "appid": APP, "crawlid": CRAWL, "uuid": "end"});
        wait_for("all pages are done", DONE_WITHIN, || {
            let info = client.request(&info)?;
            (info["state"] == "finished").then_some(())
        });
        let visits = self.web.visits().pages();
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for visit in &visits.0 {
            let url = (visit.host.clone(), visit.path.clone());
            *counts.entry(url).or_default() += 1;
        }
        let count = |page: usize| counts.get(&(site_host(page % SITES), format!("/{page}")));
        let lost = (0..self.fed).filter(|page| count(*page).is_none()).count();
        let twice = (0..self.fed).filter(|page| count(*page) > Some(&1)).count();
        assert_eq!(
            (lost, twice),
            (0, 0),
            "lost, and fetched twice, of {}",
            self.fed
        );
        for site in 0..SITES {
            visits.for_host(&site_host(site)).assert_polite(DELAY);
        }
    }
}

fn site_host(site: usize) -> String {
    format!("s{site}.test")
}

/// The address of a machine that is connected to the bridge.
fn machine_address(number: usize) -> String {
    format!("10.78.0.{}", number + 1)
}

/// Makes the serving dispatcher fail this many times. Prints for each time how long it took until the other one served,
/// and the longest time without a page.
pub(crate) fn run_failovers(losses: usize) {
    let mut pair = Pair::start();
    let mut pauses: BTreeMap<Loss, Vec<Pause>> = BTreeMap::new();
    for number in 0..losses {
        let before = pair.web.visits().len();
        // New pages are fed only if few are left. So there is always something to fetch, and the time at the end does
        // not depend on the number of losses.
        if pair.fed < before + FED {
            pair.feed();
        }
        wait_for("pages are fetched", SERVES_WITHIN, || {
            (pair.web.visits().len() > before + SITES).then_some(())
        });
        let loss = LOSSES[number % LOSSES.len()];
        let lost = pair.serving;
        let pause = pair.fail_over(loss);
        println!(
            "{number}: {loss:?}: the other one serves after {:.1} s, {:.1} s without a page",
            pause.until_served.as_secs_f64(),
            pause.without_page.as_secs_f64()
        );
        pauses.entry(loss).or_default().push(pause);
        pair.start_standby(lost);
    }
    pair.check_results();
    println!(
        "{} pages, each fetched once, at most one each {DELAY:?} from a site",
        pair.fed
    );
    println!(
        "| loss | times | until served: median, worst, s | without a page: median, worst, s |\n|---|---|---|---|"
    );
    for (loss, pauses) in &pauses {
        print_row(&format!("{loss:?}"), pauses.iter());
    }
    let unasked = pauses.iter().filter(|(loss, _)| **loss != Loss::HandedOver);
    print_row("all but HandedOver", unasked.flat_map(|(_, pauses)| pauses));
}

fn print_row<'p>(name: &str, pauses: impl Iterator<Item = &'p Pause> + Clone) {
    let served = median_and_worst(pauses.clone().map(|pause| pause.until_served));
    let page = median_and_worst(pauses.clone().map(|pause| pause.without_page));
    println!("| {name} | {} | {served} | {page} |", pauses.count());
}

fn median_and_worst(times: impl Iterator<Item = Duration>) -> String {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let worst = times.last().copied().unwrap_or_default();
    format!("{:.1}, {:.1}", median.as_secs_f64(), worst.as_secs_f64())
}
