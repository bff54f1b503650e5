use super::*;

impl Groups {
    pub(in crate::dispatch) fn leased_tasks(&self) -> u32 {
        self.groups.values().map(|state| state.leased).sum()
    }

    pub(in crate::dispatch) fn waiting_groups(&self) -> usize {
        self.waiting
    }
}

fn address(number: u32) -> Group {
    Group::Address(std::net::Ipv4Addr::from(number).into())
}

#[test]
fn groups_that_bound_nothing_any_more_are_dropped() {
    let bounds = GroupBounds {
        delay_ms: 100,
        in_flight: 8,
        of_private: true,
    };
    let mut groups = Groups::new(Some(bounds));
    let busy = address(0);
    groups.lease(&busy);
    for number in 1..=3 * MANY_GROUPS as u32 {
        let group = address(number);
        let now_ms = i64::from(number) * 50;
        assert!(groups.try_admit(&group, SiteId(1), now_ms));
        groups.lease(&group);
        groups.put_off_next_start(&group, 1, now_ms);
        groups.end_lease(&group);
    }
    assert!(
        groups.groups.len() <= MANY_GROUPS,
        "{}",
        groups.groups.len()
    );
    assert_eq!(groups.leased_tasks(), 1);
    assert!(groups.calls.is_empty());
}
