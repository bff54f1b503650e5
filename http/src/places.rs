//! How many connections one address may hold, so that no stranger takes the places of all others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::wrong_tokens::network;

/// At most this many connections of one address, of IPv6 one network of 64 bits.
const MOST_OF_ONE: usize = 16;

/// The connections that are open, by address.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<HashMap<IpAddr, usize>>);

/// A connection's place, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    network: IpAddr,
}

impl Places {
    /// A place for a connection; `None` if its address holds as many as it may.
    pub(crate) fn take(self: &Arc<Places>, from: IpAddr) -> Option<Place> {
        let network = network(from);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(network).or_default();
        if *count >= MOST_OF_ONE {
            return None;
        }
        *count += 1;
        let places = Arc::clone(self);
        Some(Place { places, network })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_holds_few_places_and_others_still_find_theirs() {
        let places = Arc::new(Places::default());
        let [one, other]: [IpAddr; 2] = ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap());
        let mut held: Vec<Place> = (0..64).filter_map(|_| places.take(one)).collect();
        assert_eq!(held.len(), MOST_OF_ONE);
        assert!(places.take(other).is_some());
        held.pop();
        assert!(places.take(one).is_some(), "a place is free again");
        held.clear();
        assert!(places.0.lock().unwrap().is_empty(), "nothing is kept");
    }
}
