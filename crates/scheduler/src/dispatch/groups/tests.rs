use super::*;

impl Groups {
    pub(in crate::dispatch) fn count_leased_tasks(&self) -> u32 {
        self.groups.values().map(|state| state.leased).sum()
    }

    pub(in crate::dispatch) fn count_waiting_sites(&self) -> usize {
        self.waiting
    }
}

fn address_group(number: u32) -> Group {
    Group::Address(std::net::Ipv4Addr::from(number).into())
}

#[test]
fn groups_that_limit_nothing_any_more_are_dropped() {
    let bounds = GroupBounds {
        delay_ms: 100,
        in_flight: 8,
        of_private: true,
    };
    let mut groups = Groups::new(Some(bounds));
    let busy = address_group(0);
    groups.begin_lease(&busy);
    for number in 1..=3 * MANY_GROUPS as u32 {
        let group = address_group(number);
        let now_ms = i64::from(number) * 50;
        assert!(groups.try_admit(&group, SiteId(1), now_ms));
        groups.begin_lease(&group);
        groups.put_off_next_start(&group, 1, now_ms);
        groups.end_lease(&group);
    }
    assert!(
        groups.groups.len() <= MANY_GROUPS,
        "{}",
        groups.groups.len()
    );
    assert_eq!(groups.count_leased_tasks(), 1);
    assert!(groups.calls.is_empty());
}
