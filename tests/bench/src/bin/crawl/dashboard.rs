//! (l) The cost of open dashboards: the CPU time of a dispatcher whose fleet crawls 200 pages a second. Turns without
//! visitors alternate with turns where three real browsers show the overview. The browsers' own CPU time is not
//! counted, but they use the same cores.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_bench::{Limit, Size, Verdict};
use webfill_test_browser::Browser;

use crate::demand::{Fleet, HOST};
use crate::failure::Failure;
use crate::pace::{Sites, site_host};
use crate::web::Web;

const BROWSERS: usize = 3;

/// The number of crawls, each with a sentence in the overview.
const CRAWLS: usize = 20;

/// The delay of each site, in seconds, as its robots.txt demands.
const DELAY_S: u64 = 1;

/// The most CPU time that the browsers may add, in percent of a core.
const MOST: f64 = 2.0;

/// The least rate of requests, as a share of the highest rate that the delays allow.
const RATE: f64 = 0.95;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The number of requests fed in one list.
const AT_ONCE: usize = 1_000;

const WAIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);

/// The time at the beginning of a turn that is not measured, because pages are being loaded or connections closed.
const SETTLES: Duration = Duration::from_secs(3);

struct Plan {
    sites: usize,
    turns: usize,
    turn: Duration,
    warm_up: Duration,
}

impl Plan {
    fn from_size(size: Size) -> Plan {
        Plan {
            sites: size.pick(200, 40),
            turns: size.pick(6, 2),
            turn: Duration::from_secs(size.pick(20, 10)),
            warm_up: Duration::from_secs(size.pick(20, 5)),
        }
    }

    /// The number of pages on each site. There are so many that the crawl does not end before the last turn.
    fn pages_of_site(&self) -> usize {
        let turns = 2 * self.turns as u32 * (self.turn + 3 * SETTLES);
        ((self.warm_up + turns + 2 * WAIT).as_secs() / DELAY_S) as usize
    }
}

/// The results of one turn: the CPU time of the dispatcher as a share of a core, and the rate of requested pages.
#[derive(Debug, Clone, Copy)]
struct Turn {
    share: f64,
    rate: f64,
}

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let plan = Plan::from_size(size);
    println!(
        "(l) {BROWSERS} browsers at the dashboard of a fleet that crawls {} pages/s; {} turns of {} s without them and with them",
        plan.sites as u64 / DELAY_S,
        plan.turns,
        plan.turn.as_secs()
    );
    let web = Web::serve(Sites::build(plan.pages_of_site()), 1)?;
    let folder = tempfile::tempdir()?;
    let tokens = folder.path().join("tokens");
    write_token_file(&tokens)?;
    let dashboard = format!("{HOST}:8080");
    let fleet = Fleet::start_with_supervisor(web.port, |command: &mut Command| {
        command
            .env("WEBFILL_DISPATCHER_HTTP", &dashboard)
            .env("WEBFILL_DISPATCHER_HTTP_TOKENS", &tokens);
    })?;
    send_requests(&fleet, &plan)?;
    let browsers: Vec<Browser> = (0..BROWSERS).map(|_| Browser::start()).collect();
    for browser in &browsers {
        log_in(browser, &dashboard)?;
    }
    std::thread::sleep(plan.warm_up);
    let (mut alone, mut open) = (Vec::new(), Vec::new());
    for _ in 0..plan.turns {
        for browser in &browsers {
            browser.open("about:blank");
        }
        alone.push(measure_turn(&fleet, &web, plan.turn)?);
        for browser in &browsers {
            browser.open(&format!("http://{dashboard}/dashboard/"));
        }
        let before: Vec<String> = browsers.iter().map(pages_shown).collect();
        open.push(measure_turn(&fleet, &web, plan.turn)?);
        if browsers
            .iter()
            .map(pages_shown)
            .zip(&before)
            .any(|(now, before)| now == *before)
        {
            return Err("a browser shows the same figures as 20 s ago: it is not live".into());
        }
    }
    Ok(print_and_judge_turns(&plan, &alone, &open))
}

fn print_and_judge_turns(plan: &Plan, alone: &[Turn], open: &[Turn]) -> Vec<Verdict> {
    for (name, turns) in [("no browser", alone), ("three browsers", open)] {
        let shares: Vec<String> = turns
            .iter()
            .map(|turn| format!("{:.2}", 100.0 * turn.share))
            .collect();
        println!(
            "  {name:<15} the dispatcher takes {} % of a core",
            shares.join(", ")
        );
    }
    let differences = alone
        .iter()
        .zip(open)
        .map(|(alone, open)| 100.0 * (open.share - alone.share));
    let slowest = open
        .iter()
        .map(|turn| turn.rate)
        .fold(f64::INFINITY, f64::min);
    vec![
        Verdict {
            what: "(l) % of a core for the dashboard open in three browsers, median".into(),
            figure: median(differences.collect()),
            limit: Limit::AtMost(MOST),
        },
        Verdict {
            what: "(l) pages/s beside them in the slowest turn, of what the delay allows".into(),
            figure: slowest * DELAY_S as f64 / plan.sites as f64,
            limit: Limit::AtLeast(RATE),
        },
    ]
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() % 2 {
        0 => (figures[middle - 1] + figures[middle]) / 2.0,
        _ => figures[middle],
    }
}

fn write_token_file(path: &PathBuf) -> Result<(), Failure> {
    let text = format!("# webfill: tokens for HTTP, one `NAME TOKEN` per line\nchief {TOKEN}\n");
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o400))?;
    Ok(())
}

fn send_requests(fleet: &Fleet, plan: &Plan) -> Result<(), Failure> {
    let request = |number: usize| {
        let (site, page) = (number % plan.sites, number / plan.sites);
        json!({
            "url": format!("http://{}/item/{page}", site_host(site)),
            "appid": "bench",
            "crawlid": format!("dashboard-{}", site % CRAWLS),
        })
    };
    let all: Vec<Value> = (0..plan.sites * plan.pages_of_site())
        .map(request)
        .collect();
    for list in all.chunks(AT_ONCE) {
        let answer = fleet.ask(&json!(list))?;
        if answer["accepted"] != list.len() {
            return Err(format!("the requests were not accepted: {answer}").into());
        }
    }
    Ok(())
}

fn log_in(browser: &Browser, dashboard: &str) -> Result<(), Failure> {
    let began = Instant::now();
    browser.open(&format!("http://{dashboard}/dashboard/login"));
    let field = browser.wait_for("input[name=token]");
    browser.fill(&field, TOKEN);
    browser.press(&[webfill_test_browser::ENTER]);
    while pages_shown(browser).is_empty() {
        if began.elapsed() > WAIT {
            return Err(
                format!("the login has led to no overview: {}", browser.page_text()).into(),
            );
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// The number of crawled pages that the overview in a browser shows; empty if it shows none.
fn pages_shown(browser: &Browser) -> String {
    let script = "return document.getElementById('pages')?.textContent ?? ''";
    let shown = browser.run_script(script, json!([]));
    shown.as_str().unwrap_or_default().to_owned()
}

fn measure_turn(fleet: &Fleet, web: &Web, length: Duration) -> Result<Turn, Failure> {
    std::thread::sleep(SETTLES);
    web.take_arrivals();
    let (cpu, began) = (fleet.dispatcher_cpu(), Instant::now());
    std::thread::sleep(length);
    let elapsed = began.elapsed().as_secs_f64();
    let share = fleet.dispatcher_cpu().saturating_sub(cpu).as_secs_f64() / elapsed;
    let arrivals = web.take_arrivals();
    let pages = arrivals
        .iter()
        .filter(|arrival| arrival.path != "/robots.txt")
        .count();
    Ok(Turn {
        share,
        rate: pages as f64 / elapsed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
