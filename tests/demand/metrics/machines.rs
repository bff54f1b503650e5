//! Tests metrics of processes and of their machine: start time, number of starts, used resources, free space, and the
//! time of the last backup.

use webfill_tests::Signal;

use super::{DISPATCHER, SUPERVISOR, fleet_with_metrics, scrape};
use crate::fleet::{epoch_seconds, wait_for};

#[test]
fn each_process_reports_its_start_time_and_resources() {
    let fleet = fleet_with_metrics();
    let now_s = epoch_seconds() as f64;
    for (port, labels) in [
        (DISPATCHER, "process=\"dispatcher\""),
        (SUPERVISOR, "process=\"supervisor\",worker=\"\""),
        (SUPERVISOR, "process=\"worker\",worker=\"0\""),
    ] {
        let metrics = wait_for("the process is reported", || {
            let metrics = scrape(&fleet, port);
            metrics.get(&format!("process_start_time_seconds{{{labels}}}"))?;
            Some(metrics)
        });
        let of = |name: &str| metrics.value_of(&format!("{name}{{{labels}}}"));
        let began_s = of("process_start_time_seconds");
        assert!(
            (now_s - 600.0..now_s + 5.0).contains(&began_s),
            "{labels}: {began_s}"
        );
        assert!(of("process_cpu_seconds_total") >= 0.0);
        assert!(of("process_open_fds") > 5.0);
        assert!(of("process_max_fds") >= of("process_open_fds"));
        assert!(of("webfill_process_resident_memory_bytes") > 1e6);
        assert_eq!(metrics.value_of("webfill_starts_total"), 1.0);
        assert!(metrics.sum("webfill_disk_size_bytes{") > metrics.sum("webfill_disk_free_bytes{"));
        assert!(metrics.sum("webfill_disk_free_bytes{") > 0.0);
    }
}

#[test]
fn starts_are_counted_though_nothing_has_scraped_between_them() {
    let mut fleet = fleet_with_metrics();
    let began = |metrics: &super::Scraped| {
        metrics.value_of("process_start_time_seconds{process=\"dispatcher\"}")
    };
    let before = scrape(&fleet, DISPATCHER);
    for _ in 0..3 {
        fleet.kill_dispatcher();
        fleet.start_dispatcher();
    }
    let after = scrape(&fleet, DISPATCHER);
    assert_eq!(after.value_of("webfill_starts_total"), 4.0);
    assert!(began(&after) > began(&before));
    // The death of a worker is counted separately, and not as a restart of its supervisor.
    let worker = fleet.supervisor().processes_of_role("worker").remove(0);
    worker.signal(Signal::KILL);
    wait_for("the death is reported", || {
        let metrics = scrape(&fleet, SUPERVISOR);
        (metrics.get("webfill_worker_deaths_total") == Some(1.0)).then_some(())
    });
    assert_eq!(
        scrape(&fleet, SUPERVISOR).value_of("webfill_starts_total"),
        1.0
    );
}

#[test]
fn the_time_of_the_last_backup_is_reported_and_outlives_the_dispatcher() {
    let mut fleet = fleet_with_metrics();
    let metrics =
        |fleet: &_| scrape(fleet, DISPATCHER).value_of("webfill_last_backup_timestamp_seconds");
    assert_eq!(metrics(&fleet), 0.0, "none was made");
    let before_s = epoch_seconds() as f64;
    fleet.back_up();
    let made_s = metrics(&fleet);
    assert!(
        (before_s - 1.0..before_s + 60.0).contains(&made_s),
        "{made_s}"
    );
    fleet.kill_dispatcher();
    fleet.start_dispatcher();
    assert_eq!(metrics(&fleet), made_s);
}
