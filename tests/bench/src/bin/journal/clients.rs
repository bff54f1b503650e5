//! Clients that feed URLs to the dispatcher.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::dispatcher::HOST;

/// The number of clients. Each waits for the answer to its list, which is sent once the list is in the journal. With
/// fewer clients, the dispatcher would be idle in the meantime.
const CLIENTS: u64 = 8;
const LIST: u64 = 1_000;

/// The number of sites. There are so many that no delay of a site slows the clients down.
const SITES: u64 = 20_000;

const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

pub struct Clients(Vec<zmq::Socket>);

impl Clients {
    pub fn connect() -> Result<Clients, Failure> {
        let context = zmq::Context::new();
        let connect = |_| -> Result<zmq::Socket, Failure> {
            let socket = context.socket(zmq::REQ)?;
            socket.set_rcvtimeo(ANSWERED_WITHIN.as_millis() as i32)?;
            socket.set_linger(0)?;
            socket.connect(&format!("tcp://{HOST}:5557"))?;
            Ok(socket)
        };
        Ok(Clients(
            (0..CLIENTS).map(connect).collect::<Result<_, _>>()?,
        ))
    }

    /// Feeds the URLs with numbers in this range. Each client waits for the answer to its list before it sends the next
    /// one.
    pub fn feed(self, from: u64, to: u64) -> Result<(), Failure> {
        let lists: Vec<u64> = (from..to).step_by(LIST as usize).collect();
        std::thread::scope(|scope| {
            let begun = self.0.into_iter().enumerate().map(|(number, socket)| {
                let own: Vec<u64> = lists
                    .iter()
                    .skip(number)
                    .step_by(CLIENTS as usize)
                    .copied()
                    .collect();
                scope.spawn(move || {
                    let feed = |first: &u64| feed_list(&socket, *first, to);
                    own.iter()
                        .try_for_each(feed)
                        .map_err(|failure| failure.to_string())
                })
            });
            let begun: Vec<_> = begun.collect();
            let ended = begun.into_iter().map(|one| {
                one.join()
                    .map_err(|_| "a client has panicked")?
                    .map_err(Failure::from)
            });
            ended.collect()
        })
    }
}

fn feed_list(socket: &zmq::Socket, first: u64, end: u64) -> Result<(), Failure> {
    let list: Vec<Value> = (first..end.min(first + LIST)).map(build_request).collect();
    socket.send(json!(list).to_string().into_bytes(), 0)?;
    let answer: Value = serde_json::from_slice(&socket.recv_bytes(0)?)?;
    match answer["accepted"] == list.len() {
        true => Ok(()),
        false => Err(format!("a list was not accepted: {answer}").into()),
    }
}

fn build_request(number: u64) -> Value {
    let site = number % SITES;
    let url = format!(
        "https://www.shop-{site}.com/section-{}/an-article-about-{number}",
        number % 7
    );
    json!({"url": url, "appid": "bench", "crawlid": "journal"})
}
