//! Tests `deploy/scale`: machines are started while many sites are due, and drained when few are. Nothing is lost or
//! fetched twice.

use std::process::Child;
use std::time::Duration;

use crate::load::Load;
use crate::machines::{Machines, SITES_EACH, wait_for};
use crate::witness::{Expected, evaluate};

/// For how long fewer machines must have sufficed before some are drained.
const SETTLE: Duration = Duration::from_secs(3);

const WITHIN: Duration = Duration::from_secs(90);

/// Ends the script when the test ends, however it ends.
struct Scale(Child);

impl Drop for Scale {
    fn drop(&mut self) {
        // Killing and waiting fail only if the script has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run_scaled(count: u16) {
    let delay = Duration::from_secs(2);
    let machines = Machines::new(count, delay);
    let client = machines.client();
    machines.units.start("dispatcher");
    let mut command = machines.scale_command(SITES_EACH / 2, SETTLE);
    let _scale = Scale(command.spawn().expect("python3 runs it"));
    let wait_for_machines = |what: &str, wanted: usize| {
        wait_for(what, WITHIN, || {
            (client.sites_by_supervisor().len() == wanted).then_some(())
        });
    };
    wait_for_machines("one machine runs", 1);
    let load = Load::spawn(&machines);
    wait_for_machines("all machines run", usize::from(count));
    let sites = load.sites;
    let pages = load.stop_and_wait();
    wait_for_machines("one machine is left", 1);
    let expected = Expected {
        sites,
        pages,
        delay,
        deaths: Vec::new(),
    };
    let found = evaluate(&machines.web.visits(), &machines.store_uri(), &expected);
    println!("{found:?}");
    assert!(found.broken.is_empty(), "{:?}", found.broken);
    assert_eq!(found.fetched_again, 0);
}
