//! Limits how often an address may try wrong tokens, so that nobody can guess a token.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many wrong tokens one address may try within [`PERIOD`]. Each further one is answered with the status 429.
pub const MOST_WRONG: u32 = 10;

/// How long wrong tokens count, from the first one on.
pub const PERIOD: Duration = Duration::from_secs(60);

/// For how many addresses wrong tokens are counted. Those of further addresses are not counted, because counting does
/// not stop an attacker with so many addresses.
const MOST_ADDRESSES: usize = 10_000;

/// The wrong tokens of the last minute, by address.
#[derive(Debug, Default)]
pub struct WrongTokens(Mutex<AddressCounts>);

#[derive(Debug, Default)]
struct AddressCounts {
    by_network: HashMap<IpAddr, (u32, Instant)>,
    /// When expired entries were last removed.
    cleared: Option<Instant>,
}

impl WrongTokens {
    /// Counts a wrong token of an address. Returns whether the address has tried too many.
    pub fn count_wrong_token(&self, from: IpAddr, now: Instant) -> bool {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = network(from);
        if !counted.by_network.contains_key(&from) && !counted.try_make_room(now) {
            return false;
        }
        let (wrong, since) = counted.by_network.entry(from).or_insert((0, now));
        if now.duration_since(*since) >= PERIOD {
            (*wrong, *since) = (0, now);
        }
        *wrong = wrong.saturating_add(1);
        *wrong > MOST_WRONG
    }

    /// Whether an address has already tried as many wrong tokens as are allowed.
    pub fn has_too_many(&self, from: IpAddr, now: Instant) -> bool {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = counted.by_network.get(&network(from));
        found.is_some_and(|(wrong, since)| {
            *wrong >= MOST_WRONG && now.duration_since(*since) < PERIOD
        })
    }
}

impl AddressCounts {
    /// Whether a further address can be counted. Expired entries are removed from a full table, but at most once in a
    /// [`PERIOD`].
    fn try_make_room(&mut self, now: Instant) -> bool {
        let is_full = self.by_network.len() >= MOST_ADDRESSES;
        let is_cleared = |cleared| now.duration_since(cleared) < PERIOD;
        if is_full && !self.cleared.is_some_and(is_cleared) {
            self.cleared = Some(now);
            self.by_network
                .retain(|_, (_, since)| now.duration_since(*since) < PERIOD);
        }
        self.by_network.len() < MOST_ADDRESSES
    }
}

/// The network that counts as one client: an IPv4 address, or a 64-bit IPv6 network.
pub(crate) fn network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shut_out_for_a_while_and_others_are_not() {
        let wrong = WrongTokens::default();
        let began = Instant::now();
        let [one, other]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        for _ in 0..MOST_WRONG {
            assert!(!wrong.count_wrong_token(one, began));
        }
        assert!(wrong.has_too_many(one, began) && !wrong.has_too_many(other, began));
        assert!(wrong.count_wrong_token(one, began));
        assert!(!wrong.has_too_many(one, began + PERIOD));
        assert!(wrong.count_wrong_token("::ffff:192.0.2.1".parse().unwrap(), began));
        assert!(!wrong.count_wrong_token(other, began));
        assert!(
            !wrong.count_wrong_token(one, began + PERIOD),
            "it begins anew"
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_sender() {
        let wrong = WrongTokens::default();
        let now = Instant::now();
        for host in 0..MOST_WRONG {
            wrong.count_wrong_token(format!("2001:db8::{host:x}").parse().unwrap(), now);
        }
        assert!(wrong.count_wrong_token("2001:db8::ffff".parse().unwrap(), now));
        assert!(!wrong.count_wrong_token("2001:db8:0:1::1".parse().unwrap(), now));
    }

    #[test]
    fn any_number_of_addresses_takes_bounded_memory() {
        let wrong = WrongTokens::default();
        let now = Instant::now();
        let address = |number: u32| IpAddr::from(std::net::Ipv4Addr::from(number));
        for number in 0..2 * MOST_ADDRESSES as u32 {
            assert!(!wrong.count_wrong_token(address(number), now));
        }
        let counted = || wrong.0.lock().unwrap().by_network.len();
        assert_eq!(counted(), MOST_ADDRESSES);
        wrong.count_wrong_token(address(u32::MAX), now + PERIOD);
        assert_eq!(counted(), 1, "those whose minute is over make room");
    }
}
