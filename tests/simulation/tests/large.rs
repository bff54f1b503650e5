//! Tests fleets of many machines whose dispatcher is restarted. The measurements are in `tests/fleet/README.md`.

use std::time::Instant;

use webfill_simulation::{LargeFleet, large_fleet};

fn run(supervisors: usize) -> LargeFleet {
    let began = Instant::now();
    let seen = large_fleet(supervisors, 126).unwrap_or_else(|faults| {
        panic!(
            "{} faults: {:#?}",
            faults.len(),
            &faults[..faults.len().min(5)]
        )
    });
    let took = began.elapsed().as_secs_f64();
    println!("{supervisors} supervisors, in {took:.0} s: {seen:#?}");
    assert!(seen.welcome_again_ms > 0, "they were not welcome again");
    assert!(seen.welcome_again_ms <= 30_000, "{seen:?}");
    assert!(seen.even_again_ms > 0, "the sites were not shared evenly");
    // Six messages, because tasks and outcomes come in batches of two, and there are heartbeats.
    assert!(seen.messages_per_task <= 6.0, "{seen:?}");
    seen
}

#[test]
fn a_hundred_and_twenty_six_machines_go_on_after_a_restart_of_their_dispatcher() {
    run(126);
}

#[test]
fn a_thousand_machines_go_on_after_a_restart_of_their_dispatcher() {
    run(1_000);
}
