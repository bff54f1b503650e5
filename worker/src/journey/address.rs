//! Finds the IP address that a task's requests count for. The dispatcher bounds the requests to each address, but only
//! workers resolve names.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use webfill_urls::Url;
use webfill_urls::address::{AddressClass, classify};
use webfill_wire::{AddressBounds, Task};

use super::turns::Turns;
use crate::permits::Permit;
use crate::resolve::{FRESH_FOR, HeldName};

const MOST_NAMES_KEPT: usize = 4_096;

/// Resolves the task's host. If the dispatcher counted the task for another address, returns the one that its requests
/// must count for. Must be called before the task's first request, while no fetch permit is held.
pub(super) async fn look_up_changed_address(
    turns: &Turns,
    names_given_back: &RefCell<ReturnedTaskNames>,
    (task, url): (&Task, &Url),
    permit: &Permit,
) -> Option<IpAddr> {
    if task.address_bounds == AddressBounds::None {
        return None;
    }
    let name = turns.look_up_host(url, permit).await;
    if turns.interrupt.is_called_back(permit) {
        return None;
    }
    let addresses = turns.resolver.allowed_addresses(url).await;
    let address = address_to_count(task.address_bounds, &addresses);
    let mut given_back = names_given_back.borrow_mut();
    match (name, address) {
        (Some(name), Some(_)) => given_back.keep_name(url, name),
        _ => given_back.forget(url),
    }
    address
}

/// The looked-up host names of tasks that were given back because they must count for another address. The addresses
/// are held for a while, so that a task that returns soon needs no new lookup.
#[derive(Debug, Default)]
pub struct ReturnedTaskNames(HashMap<String, (HeldName, Instant)>);

impl ReturnedTaskNames {
    fn keep_name(&mut self, url: &Url, name: HeldName) {
        let now = Instant::now();
        if self.0.len() >= MOST_NAMES_KEPT {
            self.0
                .retain(|_, (_, since)| now.duration_since(*since) <= FRESH_FOR);
        }
        let host = url.host_str().unwrap_or_default();
        if self.0.len() < MOST_NAMES_KEPT {
            self.0.insert(host.to_owned(), (name, now));
        }
    }

    fn forget(&mut self, url: &Url) {
        self.0.remove(url.host_str().unwrap_or_default());
    }
}

/// The address that a task must count for; `None` if its host still has the address that the task counts for. The
/// result is the smallest address of the host, so that hosts with the same addresses are counted together.
pub fn address_to_count(bounds: AddressBounds, addresses: &[IpAddr]) -> Option<IpAddr> {
    let (counted, of_private) = match bounds {
        AddressBounds::None => return None,
        AddressBounds::OfPublic(counted) => (counted, false),
        AddressBounds::OfAny(counted) => (counted, true),
    };
    if counted.is_some_and(|address| addresses.contains(&address)) {
        return None;
    }
    let is_bounded = |address: &&IpAddr| of_private || classify(**address) == AddressClass::Public;
    addresses.iter().filter(is_bounded).min().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_task_is_counted_for_the_smallest_address_of_its_host() {
        let found = ips(&["2606:4700::1", "9.9.9.9", "1.1.1.1"]);
        let of = |counted: &str| AddressBounds::OfPublic(Some(counted.parse().unwrap()));
        let smallest = ips(&["1.1.1.1"]).pop();
        assert_eq!(
            address_to_count(AddressBounds::OfPublic(None), &found),
            smallest
        );
        assert_eq!(address_to_count(of("8.8.8.8"), &found), smallest);
        assert_eq!(address_to_count(of("9.9.9.9"), &found), None);
        assert_eq!(address_to_count(of("2606:4700::1"), &found), None);
        assert_eq!(address_to_count(AddressBounds::None, &found), None);
        assert_eq!(address_to_count(AddressBounds::OfPublic(None), &[]), None);
    }

    #[test]
    fn private_addresses_are_counted_only_if_all_are() {
        let found = ips(&["10.0.0.1", "127.0.0.1"]);
        assert_eq!(
            address_to_count(AddressBounds::OfPublic(None), &found),
            None
        );
        assert_eq!(
            address_to_count(AddressBounds::OfAny(None), &found),
            ips(&["10.0.0.1"]).pop()
        );
        let mixed = ips(&["10.0.0.1", "1.1.1.1"]);
        assert_eq!(
            address_to_count(AddressBounds::OfPublic(None), &mixed),
            ips(&["1.1.1.1"]).pop()
        );
    }
}
