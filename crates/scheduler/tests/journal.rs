//! The rules of the journal: what is appended and when it counts, who may take the lease, which commits a reader gets.

use webfill_scheduler::journal::{
    AppendAnswer, Appends, Content, JournalFault, JournalReader, Lease, LeaseWatch, Record,
    Replaced, Tenure,
};

const LEASE_MS: u64 = 5_000;

fn changes_record(number: u64, epoch: u64, part: &[u8], is_last: bool) -> Record {
    Record {
        number,
        epoch,
        content: Content::Changes {
            part: part.to_owned(),
            is_last,
        },
    }
}

fn lease(epoch: u64, turn: u64, holder: u64) -> Lease {
    Lease {
        epoch,
        turn,
        holder,
        is_free: false,
    }
}

#[test]
fn records_that_are_made_while_a_command_is_under_way_share_the_next_one() {
    let mut appends = Appends::new(3, 10, 100, 1_000);
    assert_eq!(appends.add(b"one"), 11);
    assert_eq!(
        appends.begin_next_command().map(|records| records.len()),
        Some(1)
    );
    assert_eq!(appends.add(b"two"), 12);
    assert_eq!(appends.add(b"three"), 13);
    assert_eq!(appends.begin_next_command(), None, "one is under way");
    appends.on_answer((11, 1), AppendAnswer::Added).unwrap();
    assert_eq!(appends.last_appended_number(), 11);
    assert_eq!(
        appends.begin_next_command().map(|records| records.len()),
        Some(2)
    );
}

#[test]
fn a_commit_without_changes_waits_for_those_before_it() {
    let mut appends = Appends::new(3, 10, 100, 1_000);
    assert_eq!(appends.add(b""), 10);
    appends.add(b"one");
    assert_eq!(appends.add(b""), 11);
}

#[test]
fn a_command_whose_answer_was_lost_is_found_under_the_own_epoch() {
    let mut appends = Appends::new(3, 10, 100, 1_000);
    appends.add(b"one");
    appends.add(b"two");
    let command = appends.begin_next_command().unwrap();
    assert_eq!(appends.command_under_way(), Some(command));
    let taken = |number, epoch| AppendAnswer::Taken { number, epoch };
    appends.on_answer((11, 2), taken(11, 3)).unwrap();
    assert_eq!(appends.last_appended_number(), 11);
    let rest = appends.begin_next_command().unwrap();
    assert_eq!(rest, vec![changes_record(12, 3, b"two", true)]);
    let replaced = appends.on_answer((12, 1), taken(12, 4));
    assert_eq!(replaced, Err(Replaced { by_epoch: 4 }));
}

#[test]
fn an_answer_that_comes_late_is_passed_over() {
    let mut appends = Appends::new(3, 10, 100, 1_000);
    appends.add(b"one");
    appends.begin_next_command();
    appends.on_answer((11, 1), AppendAnswer::Added).unwrap();
    appends.add(b"two");
    appends.begin_next_command();
    appends.on_answer((11, 1), AppendAnswer::Added).unwrap();
    assert_eq!(appends.last_appended_number(), 11);
    assert!(!appends.is_idle());
    appends.on_answer((12, 1), AppendAnswer::Added).unwrap();
    assert!(appends.is_idle());
}

#[test]
fn what_is_on_its_way_is_bounded() {
    let mut appends = Appends::new(3, 0, 4, 10);
    assert_eq!(appends.add(b"12345678"), 2, "two parts");
    assert!(!appends.is_full());
    appends.add(b"90");
    assert!(appends.is_full());
}

#[test]
fn half_a_commit_never_happened_once_another_dispatcher_has_begun() {
    let mut reader = JournalReader::starting_after(0, 0);
    let mut take = |record| {
        reader
            .add_record(record)
            .unwrap()
            .map(|commit| commit.changes)
    };
    assert_eq!(take(Record::epoch_start(1, 1)), Some(Vec::new()));
    assert_eq!(take(changes_record(2, 1, b"ab", false)), None);
    assert_eq!(
        take(changes_record(3, 1, b"cd", true)),
        Some(b"abcd".to_vec())
    );
    assert_eq!(take(changes_record(4, 1, b"ef", false)), None);
    assert_eq!(take(changes_record(4, 1, b"ef", false)), None, "again");
    assert_eq!(take(Record::epoch_start(5, 2)), Some(Vec::new()));
    assert_eq!(
        take(changes_record(6, 2, b"gh", true)),
        Some(b"gh".to_vec())
    );
}

#[test]
fn a_gap_and_an_earlier_epoch_are_faults() {
    let mut reader = JournalReader::starting_after(4, 2);
    let gap = reader.add_record(changes_record(6, 2, b"", true));
    assert_eq!(gap, Err(JournalFault::Gap { last: 4, found: 6 }));
    assert!(reader.add_record(changes_record(5, 1, b"", true)).is_err());
    assert!(
        reader.add_record(changes_record(5, 3, b"", true)).is_err(),
        "it has not begun"
    );
}

/// A record under a number that was cut may be of a former dispatcher, even if it is just the next one.
#[test]
fn records_that_were_cut_are_not_applied() {
    let mut reader = JournalReader::starting_after(4, 2);
    let records = [5, 6].map(|number| changes_record(number, 2, b"", true));
    let (number, cut_before) = (5, 6);
    let cut = JournalFault::Cut { number, cut_before };
    assert!(cut.needs_snapshot());
    assert_eq!(reader.check_cut(&records, 6), Err(cut));
    assert_eq!(reader.check_cut(&records, 5), Ok(()));
    reader.add_record(records[0].clone()).unwrap();
    assert_eq!(reader.check_cut(&records, 6), Ok(()), "one was read before");
    assert_eq!(reader.check_cut(&[], 99), Ok(()));
}

#[test]
fn a_lease_is_taken_once_it_was_not_renewed_for_its_time() {
    let mut watch = LeaseWatch::new(7, LEASE_MS);
    assert_eq!(watch.lease_to_take(1_000), None, "nothing is known");
    watch.note_lease(lease(1, 1, 8), 1_000);
    watch.note_lease(lease(1, 1, 8), 3_000);
    assert_eq!(watch.lease_to_take(6_400), None);
    watch.note_lease(lease(1, 2, 8), 6_400);
    assert_eq!(watch.lease_to_take(6_600), None, "it was renewed");
    assert_eq!(watch.lease_to_take(11_900), Some(lease(1, 2, 8)));
}

/// During an election of the store nobody can renew the lease. Afterwards its holder has half a lease to do so.
#[test]
fn after_a_time_in_which_no_read_is_answered_the_holder_is_spared() {
    let mut watch = LeaseWatch::new(7, LEASE_MS);
    watch.note_lease(lease(1, 1, 8), 1_000);
    watch.note_lease(lease(1, 1, 8), 60_000);
    assert_eq!(watch.lease_to_take(60_000), None);
    watch.note_lease(lease(1, 1, 8), 62_400);
    assert_eq!(watch.lease_to_take(62_400), None);
    watch.note_lease(lease(1, 1, 8), 62_500);
    assert_eq!(watch.lease_to_take(62_500), Some(lease(1, 1, 8)));
    watch.note_lease(lease(1, 2, 8), 62_600);
    assert_eq!(watch.lease_to_take(65_000), None, "it was renewed");
}

/// However short the time without an answer was, the lease must be over before another dispatcher takes it.
#[test]
fn a_holder_that_is_spared_keeps_the_rest_of_its_lease() {
    let mut watch = LeaseWatch::new(7, LEASE_MS);
    watch.note_lease(lease(1, 1, 8), 1_000);
    watch.note_lease(lease(1, 1, 8), 3_600);
    watch.note_lease(lease(1, 1, 8), 6_100);
    assert_eq!(watch.lease_to_take(6_400), None);
    assert_eq!(watch.lease_to_take(6_500), Some(lease(1, 1, 8)));
}

#[test]
fn a_lease_that_is_free_or_was_ours_is_taken_at_once() {
    let mut watch = LeaseWatch::new(7, LEASE_MS);
    watch.note_lease(lease(1, 1, 7), 1_000);
    assert!(watch.lease_to_take(1_000).is_some());
    let mut watch = LeaseWatch::new(7, LEASE_MS);
    watch.note_lease(lease(1, 1, 8), 1_000);
    let free = Lease {
        is_free: true,
        ..lease(1, 1, 8)
    };
    watch.note_lease(free, 1_001);
    assert_eq!(watch.lease_to_take(1_001), Some(free));
}

#[test]
fn a_tenure_counts_from_when_its_renewal_was_sent() {
    let mut tenure = Tenure::begin(2, LEASE_MS, 1_000);
    assert!(tenure.is_in_force(5_999));
    assert!(!tenure.is_in_force(6_000));
    tenure.on_renewed(2_000);
    assert!(tenure.is_in_force(6_999));
    tenure.on_renewed(1_500);
    assert!(tenure.is_in_force(6_999), "an old answer");
    assert!(!tenure.is_in_force(7_000));
}
