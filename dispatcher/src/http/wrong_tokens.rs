//! How often an address may try wrong tokens, so that nobody guesses one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many wrong tokens of one address within [`PERIOD`]; then none of its tokens is looked at any more.
pub(super) const MOST_WRONG: u32 = 10;

/// How long that lasts, from the first wrong one.
pub(super) const PERIOD: Duration = Duration::from_secs(60);

/// At most this many addresses are counted. While there are more, no further address may be wrong.
const MOST_ADDRESSES: usize = 10_000;

/// The wrong tokens of the last minute, by address.
#[derive(Debug, Default)]
pub(super) struct WrongTokens(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl WrongTokens {
    /// Whether an address has been wrong too often.
    pub(super) fn are_too_many(&self, from: IpAddr, now: Instant) -> bool {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= MOST_ADDRESSES {
            counted.retain(|_, (_, since)| now.duration_since(*since) < PERIOD);
        }
        match counted.get(&network(from)) {
            Some((wrong, since)) => *wrong >= MOST_WRONG && now.duration_since(*since) < PERIOD,
            None => counted.len() >= MOST_ADDRESSES,
        }
    }

    /// An address has had a wrong token.
    pub(super) fn count(&self, from: IpAddr, now: Instant) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (wrong, since) = counted.entry(network(from)).or_insert((0, now));
        if now.duration_since(*since) >= PERIOD {
            (*wrong, *since) = (0, now);
        }
        *wrong = wrong.saturating_add(1);
    }
}

/// What one sender has: an IPv4 address, or the 64 bits of an IPv6 network.
fn network(from: IpAddr) -> IpAddr {
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
            assert!(!wrong.are_too_many(one, began));
            wrong.count(one, began);
        }
        assert!(wrong.are_too_many(one, began));
        assert!(wrong.are_too_many("::ffff:192.0.2.1".parse().unwrap(), began));
        assert!(!wrong.are_too_many(other, began));
        let later = began + PERIOD;
        assert!(!wrong.are_too_many(one, later));
        wrong.count(one, later);
        assert!(!wrong.are_too_many(one, later), "it begins anew");
    }

    #[test]
    fn a_network_of_ipv6_is_one_sender() {
        let wrong = WrongTokens::default();
        let now = Instant::now();
        for host in 0..MOST_WRONG {
            wrong.count(format!("2001:db8::{host:x}").parse().unwrap(), now);
        }
        assert!(wrong.are_too_many("2001:db8::ffff".parse().unwrap(), now));
        assert!(!wrong.are_too_many("2001:db8:0:1::1".parse().unwrap(), now));
    }

    #[test]
    fn any_number_of_addresses_takes_bounded_memory() {
        let wrong = WrongTokens::default();
        let now = Instant::now();
        let address = |number: u32| IpAddr::from(std::net::Ipv4Addr::from(number));
        for number in 0..2 * MOST_ADDRESSES as u32 {
            if !wrong.are_too_many(address(number), now) {
                wrong.count(address(number), now);
            }
        }
        assert_eq!(wrong.0.lock().unwrap().len(), MOST_ADDRESSES);
        assert!(!wrong.are_too_many(address(u32::MAX), now + PERIOD));
    }
}
