//! Metrics of a process's main loop, its store, and the traffic on its sockets.

use std::time::Instant;

use webfill_wire::counts::Histogram;
use webfill_wire::socket::Traffic;

use crate::metrics::exposition::Exposition;

/// Adds how long ago the loop published the page's metrics.
pub fn add_loop_age(page: &mut Exposition, published: Instant) {
    page.add_gauge(
        "webfill_loop_age_seconds",
        "Time since the loop published these values: about a second, unless it is stuck.",
    )
    .set_value(published.elapsed().as_secs_f64());
}

/// Adds whether the store accepts writes, and how long they take.
pub fn add_store(page: &mut Exposition, is_away: bool, writes: &Histogram) {
    page.add_gauge(
        "webfill_store_up",
        "1: the store accepts writes. A dispatcher that has nothing to write reads something every 10 seconds; a supervisor reports the result of its workers' last write.",
    )
    .set_value(u8::from(!is_away));
    page.add_histogram(
        "webfill_store_write_duration_seconds",
        "Writes to the store, including failed ones; for the dispatcher, also its checks of the store.",
        writes,
    );
}

/// Adds the number of messages on each socket, by the name of the socket.
pub fn add_messages(
    page: &mut Exposition,
    sockets: impl IntoIterator<Item = (&'static str, Traffic)>,
) {
    let mut messages = page.add_counter("webfill_messages_total", "ZeroMQ frames; `in` or `out` from the view of the process. `out` are frames that were queued for sending.");
    for (socket, traffic) in sockets {
        messages.add_series(&[("socket", socket), ("direction", "in")], traffic.received);
        messages.add_series(&[("socket", socket), ("direction", "out")], traffic.sent);
    }
}
