//! Metrics of a process's loop and of the traffic on its sockets.

use std::time::Instant;

use webfill_wire::socket::Traffic;

use crate::metrics::exposition::Exposition;

/// Adds how long ago the loop published the page's metrics.
pub fn add_loop_age(page: &mut Exposition, published: Instant) {
    page.gauge(
        "webfill_loop_age_seconds",
        "Time since the loop published the values of this page; a few seconds at most, unless it is stuck.",
    )
    .value(published.elapsed().as_secs_f64());
}

/// Adds the numbers of frames, by the name of the socket.
pub fn add_messages(
    page: &mut Exposition,
    sockets: impl IntoIterator<Item = (&'static str, Traffic)>,
) {
    let mut messages = page.counter("webfill_messages_total", "Frames, by socket.");
    for (socket, traffic) in sockets {
        messages.add_series(&[("socket", socket), ("direction", "in")], traffic.received);
        messages.add_series(&[("socket", socket), ("direction", "out")], traffic.sent);
    }
}
