//! `webfill dump`: prints the firehose (the dispatcher's stream of results and notifications), one JSON object per
//! line.
//!
//! If the output is read more slowly than messages arrive, this command stops receiving, and the dispatcher drops
//! messages. So neither side needs unbounded memory.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault, terminal};
use webfill_wire::socket::{Pattern, SocketSpec, Sockets};

use super::ConnectionOptions;

/// The most messages that wait to be printed.
const WAITING: usize = 100;

/// How often to check for signals.
const POLL_EVERY: Duration = Duration::from_millis(50);

const FIREHOSE: u32 = 1;

#[derive(Debug, Args)]
pub struct DumpOptions {
    /// Only results and notifications of this application
    #[arg(long, value_name = "ID")]
    pub app: Option<String>,
    /// Print JSON; this is the only format
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Runs `webfill dump` until it is interrupted or its output is closed.
pub fn dump(options: DumpOptions) -> Result<ExitStatus, Fault> {
    let (endpoints, keys) = options.connection.resolve()?;
    signals::install_handlers();
    let topics = subscribed_topics(options.app.as_deref());
    // Subscribe to all dispatchers. Only the one that serves publishes messages.
    let specs = (FIREHOSE..).zip(&endpoints).map(|(socket, endpoints)| {
        SocketSpec::connect(socket, Pattern::Subscribe, &endpoints.firehose)
            .call(keys.as_ref())
            .with_topics(topics.clone())
    });
    let specs = specs.collect();
    let (arrivals, arrived) = mpsc::sync_channel(WAITING);
    let sockets = Sockets::start(specs, move |message| {
        // A subscription matches all topics with this prefix, and the id of another application may begin with this id.
        let is_ours = |topic: &Vec<u8>| topics.iter().any(|ours| ours.as_bytes() == topic);
        if topics == [""] || message.topic.as_ref().is_some_and(is_ours) {
            // `send` blocks while the queue is full, and fails when printing has ended.
            let _ = arrivals.send(message.frame);
        }
    })
    .map_err(Fault::error)?;
    let printed = print_messages(&arrived, terminal::printable_stdout());
    // Drop the queue first. If it is full, it blocks the socket's thread.
    drop(arrived);
    drop(sockets);
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Fault::error(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(ExitStatus::Done),
    }
}

/// The topics to subscribe to, for one application or all.
fn subscribed_topics(app: Option<&str>) -> Vec<String> {
    match app {
        Some(app) => vec![format!("crawled.{app}"), format!("outbound.{app}")],
        None => vec![String::new()],
    }
}

fn print_messages(arrived: &mpsc::Receiver<Vec<u8>>, out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    while signals::received_request() == SignalRequest::Nothing {
        let message = match arrived.try_recv() {
            Ok(message) => message,
            Err(_) => {
                // Flush before the wait, so that printed messages become visible.
                out.flush()?;
                match arrived.recv_timeout(POLL_EVERY) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
        };
        out.write_all(&message)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_subscribes_to_its_pages_and_crawls() {
        assert_eq!(subscribed_topics(Some("a")), ["crawled.a", "outbound.a"]);
        assert_eq!(subscribed_topics(None), [""]);
    }

    #[test]
    fn each_message_is_printed_as_a_line() {
        let (arrivals, arrived) = mpsc::sync_channel(2);
        for message in [&b"{\"a\":1}"[..], b"{}"] {
            arrivals.send(message.to_vec()).unwrap();
        }
        drop(arrivals);
        let mut out = Vec::new();
        print_messages(&arrived, &mut out).unwrap();
        assert_eq!(out, b"{\"a\":1}\n{}\n");
    }
}
