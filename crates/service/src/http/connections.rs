//! Limits the open connections. One limit is for the connections of one address, another for connections of
//! *strangers*: clients that have not shown a token yet. So strangers cannot take the places of known clients.
//!
//! If there are too many strangers, a new one replaces the oldest connection of the address that has the most. So a few
//! addresses with idle connections cannot block the others.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::Request;
use tokio::sync::Notify;

use crate::http::wrong_tokens::network;

/// How many connections one address may have. For IPv6, a 64-bit network counts as one address.
const MOST_OF_ONE: usize = 16;

/// How many connections there may be from clients that have not shown a token.
const MOST_STRANGERS: usize = 24;

/// The open connections, the oldest first.
#[derive(Debug)]
pub(crate) struct ConnectionPermits {
    most_known: usize,
    held: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    last_number: u64,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    network: IpAddr,
    /// Whether the connection's client has shown a token.
    is_known: bool,
    /// Notified when the connection loses its place and must be closed.
    leave: Arc<Notify>,
}

/// The permission for a connection to stay open. It is freed on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    places: Arc<ConnectionPermits>,
    number: u64,
    leave: Arc<Notify>,
}

impl ConnectionPermits {
    /// Creates the limits, with at most `most_known` connections for clients that have shown a token.
    pub(crate) fn new(most_known: usize) -> ConnectionPermits {
        ConnectionPermits {
            most_known,
            held: Mutex::default(),
        }
    }

    /// Returns a place for a connection, which a stranger may lose for it. `None` if known clients hold all places of
    /// its address.
    pub(crate) fn try_take(
        self: &Arc<ConnectionPermits>,
        from: IpAddr,
    ) -> Option<Arc<ConnectionPermit>> {
        let network = network(from);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.count(|other| other.network == network) >= MOST_OF_ONE && !held.evict(network) {
            return None;
        }
        if held.count(|other| !other.is_known) >= MOST_STRANGERS
            && let Some(network) = held.network_with_most_strangers()
        {
            held.evict(network);
        }
        held.last_number += 1;
        let (number, leave) = (held.last_number, Arc::new(Notify::new()));
        held.connections.push(Connection {
            number,
            network,
            is_known: false,
            leave: Arc::clone(&leave),
        });
        Some(Arc::new(ConnectionPermit {
            places: Arc::clone(self),
            number,
            leave,
        }))
    }
}

impl OpenConnections {
    fn count(&self, is_counted: impl Fn(&Connection) -> bool) -> usize {
        let connections = self.connections.iter();
        connections.filter(|other| is_counted(other)).count()
    }

    fn network_with_most_strangers(&self) -> Option<IpAddr> {
        let strangers = self.connections.iter().filter(|other| !other.is_known);
        let networks = strangers.map(|stranger| stranger.network);
        // If several networks have the most, this returns the one with the oldest connection.
        networks
            .rev()
            .max_by_key(|network| self.count(|other| !other.is_known && other.network == *network))
    }

    /// Takes the place of the network's oldest connection without a token. Returns false if the network has none.
    fn evict(&mut self, network: IpAddr) -> bool {
        let is_stranger = |other: &Connection| !other.is_known && other.network == network;
        let Some(index) = self.connections.iter().position(is_stranger) else {
            return false;
        };
        self.connections.remove(index).leave.notify_one();
        true
    }
}

impl ConnectionPermit {
    /// Notes that the client has shown a token. If there are too many known clients, the connection still counts as a
    /// stranger's.
    fn note_known(&self) {
        let mut held = self
            .places
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = held.count(|other| other.is_known);
        let mut connections = held.connections.iter_mut();
        if let Some(own) = connections.find(|other| other.number == self.number)
            && known < self.places.most_known
        {
            own.is_known = true;
        }
    }

    /// Waits until the connection loses its place and must be closed.
    pub(crate) async fn wait_until_revoked(&self) {
        self.leave.notified().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let held = self.places.held.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        held.connections.retain(|other| other.number != self.number);
    }
}

/// Notes that the client of a request has shown a valid token. Its connection then keeps its place.
pub fn note_known_client<B>(request: &Request<B>) {
    if let Some(place) = request.extensions().get::<Arc<ConnectionPermit>>() {
        place.note_known();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback_address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    fn is_held(place: &ConnectionPermit) -> bool {
        let held = place.places.held.lock().unwrap();
        held.count(|other| other.number == place.number) == 1
    }

    #[test]
    fn one_address_holds_few_places_and_others_still_find_theirs() {
        let places = Arc::new(ConnectionPermits::new(64));
        let take = |last: u8| {
            let place = places.try_take(loopback_address(last))?;
            place.note_known();
            Some(place)
        };
        let mut held: Vec<Arc<ConnectionPermit>> = (0..64).filter_map(|_| take(2)).collect();
        assert_eq!(held.len(), MOST_OF_ONE);
        assert!(take(3).is_some());
        held.pop();
        assert!(take(2).is_some(), "a place is free again");
        held.clear();
        assert!(
            places.held.lock().unwrap().connections.is_empty(),
            "nothing is kept"
        );
    }

    #[test]
    fn strangers_make_room_for_each_other_and_known_clients_stay() {
        let places = Arc::new(ConnectionPermits::new(2));
        let known = places.try_take(loopback_address(1)).unwrap();
        known.note_known();
        let idle: Vec<Arc<ConnectionPermit>> = (0..60)
            .filter_map(|number| places.try_take(loopback_address(2 + number % 6)))
            .collect();
        let held = || idle.iter().filter(|place| is_held(place)).count();
        assert_eq!(held(), MOST_STRANGERS);
        let late = places.try_take(loopback_address(9)).unwrap();
        for _ in 0..200 {
            places.try_take(loopback_address(2)).unwrap();
        }
        assert!(is_held(&known) && is_held(&late));
        late.note_known();
        let third = places.try_take(loopback_address(10)).unwrap();
        third.note_known();
        let held = places.held.lock().unwrap();
        assert_eq!(held.count(|other| other.is_known), 2, "no more than these");
    }

    #[test]
    fn a_connection_that_loses_its_place_is_notified() {
        let places = Arc::new(ConnectionPermits::new(64));
        let first = places.try_take(loopback_address(2)).unwrap();
        let _others: Vec<_> = (0..MOST_OF_ONE)
            .map(|_| places.try_take(loopback_address(2)))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(first.wait_until_revoked());
        assert!(!is_held(&first));
    }
}
