//! Reports each turn of the loop to `/healthz` and to the service manager, which restarts a process whose loop is
//! stuck. Also publishes the loop's values as metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use webfill_wire::socket::Traffic;

use super::Process;
use super::sockets::socket_metric_name;

impl Process {
    pub(super) fn note_turn(&mut self, now_ms: i64) {
        let away = || {
            let journalled = self.journalled.as_ref()?;
            journalled.away_reason().map(str::to_owned)
        };
        let holds = self.core.hold_reason(now_ms).or_else(away);
        self.health.note_turn(holds.as_deref());
        let supervisors = self.core.supervisor_count();
        let refused = self.refused_reload.as_deref();
        self.service_manager
            .notify_alive(|| format_status(supervisors, holds.as_deref(), refused));
    }

    /// Publishes the metrics if they are served and due. `took` is the duration of the last turn.
    pub(super) fn publish_metrics(&mut self, took: Duration, now_ms: i64) {
        let standbys = self.standbys();
        let Some(metrics) = &mut self.metrics else {
            return;
        };
        metrics.note_turn(took);
        if metrics.is_due() {
            let traffic = self.outbox.traffic().into_iter();
            let traffic: BTreeMap<&str, Traffic> = traffic
                .map(|(socket, traffic)| (socket_metric_name(socket), traffic))
                .collect();
            metrics.publish(self.core.metrics(now_ms), traffic, standbys);
        }
    }
}

fn format_status(supervisors: usize, holds: Option<&str>, refused_reload: Option<&str>) -> String {
    let does = match holds {
        Some(why) => format!("holds: {why}"),
        None => format!("supervisors: {supervisors}"),
    };
    match refused_reload {
        Some(why) => format!("{does}; last reload refused: {why}"),
        None => does,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_holds_it_and_why_a_reload_was_refused() {
        assert_eq!(format_status(2, None, None), "supervisors: 2");
        let reported = format_status(2, Some("it drains"), Some("shop.json: a fault"));
        let expected = "holds: it drains; last reload refused: shop.json: a fault";
        assert_eq!(reported, expected);
    }
}
