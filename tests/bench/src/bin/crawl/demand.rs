//! (g) A fleet that waits for work: the time from the feed of a request to its fetch, and the cost of waiting.
//!
//! Each request is for another site, which is new to the fleet. The time includes the fetch of the site's robots.txt.
//! It ends when the server has read the request for the page.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_bench::program::binary;
use webfill_bench::{Limit, Size, Verdict};
use webfill_wire::socket::{Pattern, SocketSpec, Sockets};

use crate::failure::Failure;
use crate::processes::cpu_of_tree;
use crate::web::{Answer, Pages, Web, page_answer};

/// The number of requests in the full and in the small size, and the number of earlier requests that are not measured.
const REQUESTS: [usize; 2] = [500, 50];
const WARM_UP: usize = 50;

/// The pause between two requests, so that each finds an idle fleet.
const PAUSE: Duration = Duration::from_millis(15);

/// How long the idle fleet is measured in the full and in the small size, in seconds.
const IDLE_S: [u64; 2] = [20, 6];

/// The address of the measured fleet. It is not the default, so that a fleet on this machine is not disturbed.
pub(crate) const HOST: &str = "127.7.7.7";

const WAIT: Duration = Duration::from_secs(20);
const CONTROL: u32 = 1;

struct Greeting(Answer);

impl Pages for Greeting {
    fn answer(&self, _host: &str, path: &str) -> Option<Answer> {
        (path == "/").then(|| self.0.clone())
    }
}

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let [full, small] = REQUESTS;
    let requests = size.pick(full, small);
    println!("(g) a fleet at rest; {requests} requests, each for a site that was never met");
    let body = b"<!DOCTYPE html><title>here</title><p>here</p>";
    let web = Web::serve(Greeting(page_answer("text/html; charset=utf-8", body)), 1)?;
    let fleet = Fleet::start_with_supervisor(web.port, |_| {})?;
    let mut waits = Vec::new();
    for number in 0..WARM_UP + requests {
        let wait = fleet.time_request(number, &web)?;
        if number >= WARM_UP {
            waits.push(wait);
        }
        std::thread::sleep(PAUSE);
    }
    waits.sort();
    let ms = |wait: Duration| wait.as_secs_f64() * 1_000.0;
    let (median, late) = (waits[requests / 2], waits[requests * 99 / 100]);
    println!(
        "  {:.1} ms at best, {:.1} at worst",
        ms(waits[0]),
        ms(waits[requests - 1])
    );
    let [full, small] = IDLE_S;
    let idle = fleet.measure_idle_share(Duration::from_secs(size.pick(full, small)))?;
    let verdict = |what: &str, figure: f64, most: f64| Verdict {
        what: format!("(g) {what}"),
        figure,
        limit: Limit::AtMost(most),
    };
    Ok(vec![
        verdict(
            "ms from feed to fetch on a free site, median",
            ms(median),
            50.0,
        ),
        verdict(
            "ms from feed to fetch on a free site, 99th percentile",
            ms(late),
            50.0,
        ),
        verdict(
            "% of a core with nothing to do, all processes",
            100.0 * idle,
            1.0,
        ),
    ])
}

/// A dispatcher and, if requested, a supervisor with a worker for each core. Their files are in a separate folder.
pub(crate) struct Fleet {
    processes: Vec<Child>,
    sockets: Sockets,
    answers: mpsc::Receiver<Vec<u8>>,
    /// The folder of the fleet, which is removed when the fleet is dropped.
    _folder: tempfile::TempDir,
}

const DISPATCHER: &[&str] = &["dispatcher", "--listen", HOST, "--state", "dispatcher"];

impl Fleet {
    /// Starts a dispatcher and a supervisor. The supervisor's requests go to the web at this port. `change` adds
    /// settings to each command.
    pub(crate) fn start_with_supervisor(
        web_port: u16,
        change: impl Fn(&mut Command),
    ) -> Result<Fleet, Failure> {
        let tasks = format!("tcp://{HOST}:5555");
        let supervisor = [
            "supervisor",
            "--dispatcher",
            &tasks,
            "--id",
            "bench",
            "--state",
            "supervisor",
        ];
        Fleet::start(&[DISPATCHER, &supervisor], |command| {
            command
                .env("WEBFILL_POLITENESS_DELAY", "1")
                .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
                .env(
                    "WEBFILL_FETCH_RESOLVE",
                    format!("*:80:127.0.0.1:{web_port}"),
                );
            change(command);
        })
    }

    /// Starts a dispatcher without supervisors.
    pub(crate) fn start_dispatcher_only(change: impl Fn(&mut Command)) -> Result<Fleet, Failure> {
        Fleet::start(&[DISPATCHER], change)
    }

    fn start(roles: &[&[&str]], change: impl Fn(&mut Command)) -> Result<Fleet, Failure> {
        let folder = tempfile::tempdir()?;
        let start = |args: &&[&str]| -> Result<Child, Failure> {
            let mut command = Command::new(binary()?);
            command
                .args(*args)
                .args(["--store", "sqlite:webfill.db"])
                .env("WEBFILL_DISPATCHER_HTTP", "off")
                .current_dir(folder.path())
                .stderr(Stdio::null());
            change(&mut command);
            Ok(command.spawn()?)
        };
        let processes = roles.iter().map(start).collect::<Result<_, _>>()?;
        let (answered, answers) = mpsc::channel();
        let control = SocketSpec::connect(CONTROL, Pattern::Client, format!("tcp://{HOST}:5557"));
        let sockets = Sockets::start(vec![control], move |arrived| {
            let _ = answered.send(arrived.frame);
        })?;
        Ok(Fleet {
            processes,
            sockets,
            answers,
            _folder: folder,
        })
    }

    /// Measures the time from sending a request for a page until the web's server has received the fetch of this page.
    fn time_request(&self, number: usize, web: &Web) -> Result<Duration, Failure> {
        let host = format!("site-{number}.example");
        let request =
            json!({"url": format!("http://{host}/"), "appid": "bench", "crawlid": "demand"});
        let fed = Instant::now();
        let answer = self.ask(&request)?;
        if answer["accepted"] != 1 {
            return Err(format!("the request was not accepted: {answer}").into());
        }
        while fed.elapsed() < WAIT {
            for arrival in web.take_arrivals() {
                if arrival.host == host && arrival.path == "/" {
                    return Ok(arrival.at - fed);
                }
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Err(format!("{host} was not asked within {} s", WAIT.as_secs()).into())
    }

    pub(crate) fn ask(&self, request: &Value) -> Result<Value, Failure> {
        self.sockets
            .outbox()
            .send(CONTROL, request.to_string().into_bytes());
        Ok(serde_json::from_slice(&self.answers.recv_timeout(WAIT)?)?)
    }

    /// The CPU time of the dispatcher so far.
    pub(crate) fn dispatcher_cpu(&self) -> Duration {
        cpu_of_tree(&self.processes[0])
    }

    /// The share of a core used by all processes while there is nothing to do.
    fn measure_idle_share(&self, measured: Duration) -> Result<f64, Failure> {
        // Wait until the last pages are processed.
        std::thread::sleep(Duration::from_secs(3));
        let cpu = || self.processes.iter().map(cpu_of_tree).sum::<Duration>();
        let (before, started) = (cpu(), Instant::now());
        std::thread::sleep(measured);
        let share = (cpu() - before).as_secs_f64() / started.elapsed().as_secs_f64();
        Ok(share)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            // Workers end with their supervisor. An error means that the process has ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
