use super::*;

const MIB: usize = 1 << 20;

fn expect_permit(admission: Admission) -> Permit {
    match admission {
        Admission::Taken(permit) => permit,
        other => panic!("not taken: {other:?}"),
    }
}

#[test]
fn requests_beyond_a_bound_are_refused_then_not_heard_and_taken_again_when_others_are_answered() {
    let mut permits = Permits::default();
    let peer = vec![1];
    let mut under_way = Vec::new();
    for _ in 0..OF_A_CONNECTION.requests {
        under_way.push(expect_permit(permits.admit(&peer, None, 10)));
    }
    let mut refusals = Vec::new();
    while let Admission::Refused(permit, _) = permits.admit(&peer, None, 10) {
        refusals.push(permit);
    }
    assert_eq!(
        refusals.len(),
        OF_A_CONNECTION.requests * (UNHEARD_BEYOND - 1)
    );
    assert!(matches!(permits.admit(&peer, None, 10), Admission::Unheard));
    expect_permit(permits.admit(&vec![2], None, 10));
    assert_eq!(
        permits.message_admission(&peer, 10),
        MessageAdmission::Unheard
    );
    refusals.clear();
    let admission = permits.admit(&peer, None, 10);
    assert!(matches!(admission, Admission::Unheard), "it has not read");
    under_way.clear();
    assert_eq!(
        permits.message_admission(&peer, 10),
        MessageAdmission::Heard
    );
    expect_permit(permits.admit(&peer, None, 10));
    assert_eq!(permits.all.account.requests.load(Relaxed), 0);
    assert_eq!(permits.all.account.bytes.load(Relaxed), 0);
}

#[test]
fn who_is_unheard_and_sends_on_floods() {
    let mut permits = Permits::default();
    let peer = vec![1];
    let mut under_way = Vec::new();
    while let Admission::Taken(permit) | Admission::Refused(permit, _) =
        permits.admit(&peer, None, 10)
    {
        under_way.push(permit);
    }
    let most = OF_A_CONNECTION.requests * UNHEARD_BEYOND;
    for _ in 1..most {
        assert_eq!(
            permits.message_admission(&peer, 10),
            MessageAdmission::Unheard
        );
    }
    assert_eq!(
        permits.message_admission(&peer, 10),
        MessageAdmission::Flood
    );
    assert_eq!(
        permits.message_admission(&vec![2], 10),
        MessageAdmission::Heard
    );
    under_way.clear();
    assert_eq!(
        permits.message_admission(&peer, 10),
        MessageAdmission::Heard
    );
}

#[test]
fn bytes_are_bounded_by_key_whatever_the_number_of_its_connections() {
    let mut permits = Permits::default();
    let key: Arc<str> = "shop".into();
    let mut under_way = Vec::new();
    let is_taken =
        |permits: &mut Permits, peer: u8, key: &Arc<str>, bytes, under_way: &mut Vec<Permit>| {
            match permits.admit(&vec![peer], Some(key), bytes) {
                Admission::Taken(permit) => under_way.push(permit),
                _ => return false,
            }
            true
        };
    for peer in 0..3 {
        assert!(is_taken(&mut permits, peer, &key, 16 * MIB, &mut under_way));
    }
    assert!(!is_taken(&mut permits, 4, &key, MIB, &mut under_way));
    assert!(
        is_taken(&mut permits, 4, &key, 100, &mut under_way),
        "it is small"
    );
    assert!(is_taken(
        &mut permits,
        5,
        &"other".into(),
        16 * MIB,
        &mut under_way
    ));
}

#[test]
fn a_key_has_something_under_way_on_so_many_connections_only() {
    let mut permits = Permits::default();
    let (key, other): (Arc<str>, Arc<str>) = ("shop".into(), "other".into());
    let peer = |number: usize| number.to_be_bytes().to_vec();
    let all = 0..MOST_CONNECTIONS_OF_A_KEY;
    let mut under_way: Vec<Permit> = all
        .map(|number| expect_permit(permits.admit(&peer(number), Some(&key), 10)))
        .collect();
    let further = peer(MOST_CONNECTIONS_OF_A_KEY);
    match permits.admit(&further, Some(&key), 10) {
        Admission::Refused(_, why) => assert_eq!(why, TOO_MANY_CONNECTIONS),
        other => panic!("{other:?}"),
    }
    expect_permit(permits.admit(&further, Some(&other), 10));
    under_way.push(expect_permit(permits.admit(&peer(0), Some(&key), 10)));
    under_way.remove(1);
    expect_permit(permits.admit(&further, Some(&key), 10));
}

#[test]
fn a_sender_that_does_not_read_is_refused_until_it_does() {
    let mut permits = Permits::default();
    let peer = vec![1];
    let answered = expect_permit(permits.admit(&peer, None, MIB));
    assert!(!answered.has_unread());
    answered.note_answer(2 * MIB);
    assert_eq!(permits.all.account.bytes.load(Relaxed), 0);
    assert!(answered.has_unread());
    assert!(matches!(
        permits.admit(&peer, None, 10),
        Admission::Refused(..)
    ));
    drop(answered);
    expect_permit(permits.admit(&peer, None, 10));
}

#[test]
fn a_connection_of_the_same_name_as_one_that_is_gone_is_another() {
    let mut permits = Permits::default();
    let first = expect_permit(permits.admit(&vec![1], None, 10));
    first.mark_receiver_gone();
    assert!(first.has_no_receiver());
    assert!(!expect_permit(permits.admit(&vec![1], None, 10)).has_no_receiver());
}
