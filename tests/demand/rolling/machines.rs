//! A working fleet whose program `deploy/roll` replaces. Its units (processes) run on loopback addresses in place of
//! machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::run::Build;
use webfill_tests::site::page;
use webfill_tests::units::Units;

use crate::fleet::{Fleet, request, wait_for};

pub(crate) const ROLL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/roll");
pub(crate) const SUPERVISORS: usize = 6;
pub(crate) const SITES: usize = 60;
pub(crate) const DELAY: Duration = Duration::from_millis(500);

/// The dispatcher and the supervisors that a roll replaces, and the programs of both versions.
pub(crate) struct Machines {
    // Rust drops this field first. Its processes write into the folder of the fleet, which must exist until then.
    pub(crate) units: Units,
    pub(crate) fleet: Fleet,
    pub(crate) former: PathBuf,
    pub(crate) new: PathBuf,
    pub(crate) fed: usize,
}

impl Machines {
    pub(crate) fn start(former: Build) -> Machines {
        let fleet = Fleet::unstarted_fleet(&[("POLITENESS_DELAY", "0.5")]);
        let units = Units::in_folder(fleet.work.path("units"));
        let mut machines = Machines {
            former: link_program(&fleet, "former", &former.binary()),
            new: link_program(&fleet, "new", &Build::Today.binary()),
            units,
            fleet,
            fed: 0,
        };
        let (units, fleet) = (&machines.units, &machines.fleet);
        units.add("dispatcher", &fleet.dispatcher_role(), &machines.former);
        units.start("dispatcher");
        for name in supervisor_names() {
            let role = fleet.supervisor_role(&name, &[]);
            units.add(&name, &role, &machines.former);
            units.start(&name);
        }
        wait_for("all are welcome", || {
            (machines.sites_per_supervisor().len() == SUPERVISORS).then_some(())
        });
        machines.feed(90);
        machines.wait_for_pages(SITES * 2);
        machines
    }

    /// Feeds this many further pages of each site.
    pub(crate) fn feed(&mut self, pages: usize) {
        let mut requests = Vec::new();
        for number in 0..SITES {
            let site = self.fleet.web.site(&format!("r{number}.example"));
            site.serve_otherwise(|request| page(&request.path).into());
            let numbers = self.fed..self.fed + pages;
            requests.extend(numbers.map(|n| request(&site.url(&format!("/{n}")), "c")));
        }
        requests.chunks(500).for_each(|some| self.fleet.feed(some));
        self.fed += pages;
    }

    pub(crate) fn wait_for_pages(&self, more: usize) {
        let asked = || self.fleet.web.visits().pages().len();
        let enough = asked() + more;
        wait_for("pages flow", || (asked() >= enough).then_some(()));
    }

    /// Runs `deploy/roll` from the former program to `new`.
    pub(crate) fn roll(&self, new: &Path, more: &[&str]) -> Output {
        let hosts = self
            .fleet
            .work
            .write("hosts", supervisor_names().join("\n") + "\n");
        let status = format!(
            "{} status --json --dispatcher {}",
            Build::Today.binary().display(),
            self.fleet.endpoint()
        );
        let mut roll = Command::new(ROLL);
        roll.arg("--hosts").arg(hosts).arg("--package").arg(new);
        roll.arg("--former")
            .arg(&self.former)
            .args(["--status", &status]);
        let commands = [
            ("--stop", "stop {name}"),
            ("--start", "start {name}"),
            ("--replace", "replace {name} {package}"),
            ("--restore", "replace {name} {former}"),
        ];
        for (flag, words) in commands {
            roll.arg(flag).arg(self.units.command(words));
        }
        let stop = self.units.command("stop {name}");
        let start = self.units.command("start {name}");
        roll.arg("--restart").arg(format!("{stop} && {start}"));
        roll.args(more);
        roll.output().expect("python3 runs it")
    }

    pub(crate) fn status(&self) -> Value {
        self.fleet.client().ask(&json!({"action": "status"}))
    }

    pub(crate) fn sites_per_supervisor(&self) -> Vec<u64> {
        let status = self.status();
        let supervisors = status["supervisors"].as_array().into_iter().flatten();
        let sites = supervisors.filter_map(|one| one["sites"].as_u64());
        sites.collect()
    }

    pub(crate) fn wait_until_even(&self) {
        wait_for("the load is even", || {
            is_even(&self.sites_per_supervisor()).then_some(())
        });
    }

    /// For each unit, the program that its process runs.
    pub(crate) fn programs(&self) -> BTreeMap<String, PathBuf> {
        let all = supervisor_names()
            .into_iter()
            .chain(["dispatcher".to_owned()]);
        all.filter_map(|name| Some((name.clone(), self.units.program(&name)?)))
            .collect()
    }

    pub(crate) fn assert_all_run(&self, program: &Path) {
        let programs = self.programs();
        assert_eq!(programs.len(), SUPERVISORS + 1);
        let others = programs.iter().filter(|(_, found)| *found != program);
        assert_eq!(others.count(), 0, "{programs:?}");
    }

    /// Checks that all pages are stored, that each page was requested once, and that the delay of every site was kept.
    pub(crate) fn assert_nothing_lost_twice_or_too_soon(&self) {
        self.fleet.wait_until_done("c");
        let visits = self.fleet.web.visits();
        let mut counts = visits.pages().counts();
        assert_eq!(counts.len(), SITES * self.fed);
        counts.retain(|_, count| *count > 1);
        assert_eq!(counts, BTreeMap::new());
        visits.assert_polite(DELAY);
        let stored = self.fleet.work.stored();
        let pages = stored.pages();
        assert_eq!(pages.len(), SITES * self.fed);
        assert!(pages.values().all(|page| page.outcome == "ok"));
        assert_eq!(stored.integrity(), "ok");
    }
}

fn supervisor_names() -> Vec<String> {
    (0..SUPERVISORS)
        .map(|number| format!("vm-{number}"))
        .collect()
}

/// A copy of a program under another name, so that a test can recognise the processes that run it.
fn link_program(fleet: &Fleet, name: &str, of: &Path) -> PathBuf {
    let path = fleet.work.path(name);
    if fs::hard_link(of, &path).is_err() {
        fs::copy(of, &path).expect("a copy");
    }
    path.canonicalize().expect("it was just made")
}

/// Whether every supervisor has sites, and their numbers are within a fifth of the mean.
fn is_even(shares: &[u64]) -> bool {
    let mean = shares.iter().sum::<u64>() as f64 / shares.len() as f64;
    let off = |share: &u64| (*share as f64 - mean).abs();
    shares.len() == SUPERVISORS && mean > 0.0 && shares.iter().all(|share| off(share) <= mean / 5.0)
}
