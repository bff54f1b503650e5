//! The report that a supervisor sends to the dispatcher every few seconds, for people: its version, memory, load and
//! workers. No decision depends on it.

use std::time::{Duration, Instant};

use webfill_wire::SupervisorReport;

/// How often a report is sent.
const EVERY: Duration = Duration::from_secs(5);

/// How many bytes of a file in `/proc` are read at most.
const MOST_BYTES: usize = 8 << 10;

/// Decides when the next report is due.
#[derive(Debug, Default)]
pub(crate) struct OwnReports {
    /// The session of the last report, and the time of the report.
    last: Option<(u64, Instant)>,
}

/// The facts that other parts of the supervisor contribute to the report.
#[derive(Debug)]
pub(crate) struct ReportFacts {
    pub(crate) session: u64,
    pub(crate) workers_ready: usize,
    pub(crate) held: usize,
    pub(crate) waiting: usize,
    pub(crate) worker_deaths: u64,
    pub(crate) holds: Option<String>,
}

impl OwnReports {
    /// Returns the next report if it is due. In a new session it is due immediately.
    pub(crate) fn next(
        &mut self,
        known: impl FnOnce() -> ReportFacts,
        workers: impl Iterator<Item = u32>,
        session: u64,
        now: Instant,
    ) -> Option<SupervisorReport> {
        let is_due = self
            .last
            .is_none_or(|(last, at)| last != session || now.duration_since(at) >= EVERY);
        if !is_due {
            return None;
        }
        self.last = Some((session, now));
        let known = known();
        Some(SupervisorReport {
            session: known.session,
            webfill: env!("CARGO_PKG_VERSION").into(),
            workers_ready: u16::try_from(known.workers_ready).unwrap_or(u16::MAX),
            worker_deaths: u32::try_from(known.worker_deaths).unwrap_or(u32::MAX),
            memory_bytes: resident_bytes("self").unwrap_or(0),
            workers_memory_bytes: workers
                .filter_map(|pid| resident_bytes(&pid.to_string()))
                .sum(),
            load_hundredths: load_hundredths().unwrap_or(0),
            cores: std::thread::available_parallelism()
                .map_or(0, |cores| u16::try_from(cores.get()).unwrap_or(u16::MAX)),
            held: u32::try_from(known.held).unwrap_or(u32::MAX),
            waiting: u32::try_from(known.waiting).unwrap_or(u32::MAX),
            holds: known.holds,
        })
    }
}

/// The resident memory of a process; `None` if it has just ended.
fn resident_bytes(process: &str) -> Option<u64> {
    let status = read_beginning(&format!("/proc/{process}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

fn load_hundredths() -> Option<u32> {
    let averages = read_beginning("/proc/loadavg")?;
    let last_minute: f64 = averages.split_whitespace().next()?.parse().ok()?;
    Some((last_minute * 100.0).round() as u32)
}

fn read_beginning(path: &str) -> Option<String> {
    use std::io::Read;

    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MOST_BYTES as u64)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_facts(session: u64) -> ReportFacts {
        ReportFacts {
            session,
            workers_ready: 2,
            held: 7,
            waiting: 1,
            worker_deaths: 3,
            holds: None,
        }
    }

    #[test]
    fn a_session_gets_a_report_immediately_and_then_every_few_seconds() {
        let mut reports = OwnReports::default();
        let start = Instant::now();
        let mut at = |session, now| {
            let own = [std::process::id()].into_iter();
            reports.next(|| known_facts(session), own, session, now)
        };
        let first = at(1, start).expect("the first is due");
        assert!(first.memory_bytes > 1 << 20, "{first:?}");
        assert!(first.workers_memory_bytes > 1 << 20, "{first:?}");
        assert!(first.cores > 0);
        assert_eq!((first.session, first.held, first.waiting), (1, 7, 1));
        assert_eq!(at(1, start + EVERY / 2), None);
        assert!(at(2, start + EVERY / 2).is_some(), "a new session");
        assert_eq!(at(2, start + EVERY), None);
        assert!(at(2, start + EVERY * 2).is_some());
    }

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        assert_eq!(resident_bytes("0"), None);
    }
}
