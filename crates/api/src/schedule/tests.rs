use std::collections::BTreeSet;

use jiff::Zoned;

use super::*;

fn cron(text: &str, zone: &str) -> Schedule {
    Schedule::parse(text, time_zone(zone).unwrap()).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn to_unix_ms(text: &str, zone: &str) -> i64 {
    let shown: DateTime = text.parse().unwrap();
    let zoned = shown.to_zoned(time_zone(zone).unwrap()).unwrap();
    zoned.timestamp().as_millisecond()
}

fn to_zoned_time(ms: i64, zone: &str) -> Zoned {
    let at = Timestamp::from_millisecond(ms).unwrap();
    at.to_zoned(time_zone(zone).unwrap())
}

/// The due times between two times of a zone's clocks, with the offset of each.
fn due_times_between(text: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let (schedule, to_ms) = (cron(text, zone), to_unix_ms(to, zone));
    let mut now_ms = to_unix_ms(from, zone);
    let mut due = Vec::new();
    while let Some(next_ms) = schedule.next_due_ms(None, now_ms) {
        assert!(next_ms > now_ms, "{text}: it continues");
        if next_ms > to_ms {
            break;
        }
        due.push(
            to_zoned_time(next_ms, zone)
                .strftime("%m-%d %H:%M %:z")
                .to_string(),
        );
        now_ms = next_ms;
    }
    due
}

#[test]
fn a_time_that_does_not_exist_is_due_once_right_after_the_gap() {
    let berlin = due_times_between(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-03-28T12:00",
        "2026-03-30T12:00",
    );
    assert_eq!(berlin, ["03-29 03:00 +02:00", "03-30 02:30 +02:00"]);
    let several = due_times_between(
        "*/15 2 * * *",
        "Europe/Berlin",
        "2026-03-29T00:00",
        "2026-03-29T12:00",
    );
    assert_eq!(several, ["03-29 03:00 +02:00"], "all of them at once");
    let both = due_times_between(
        "0 2,3 * * *",
        "Europe/Berlin",
        "2026-03-29T00:00",
        "2026-03-29T12:00",
    );
    assert_eq!(both, ["03-29 03:00 +02:00"]);
    let new_york = due_times_between(
        "30 2 * * *",
        "America/New_York",
        "2026-03-07T12:00",
        "2026-03-09T12:00",
    );
    assert_eq!(new_york, ["03-08 03:00 -04:00", "03-09 02:30 -04:00"]);
    let lord_howe = due_times_between(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T12:00",
        "2026-10-05T12:00",
    );
    assert_eq!(lord_howe, ["10-04 02:30 +11:00", "10-05 02:15 +11:00"]);
    let no_day = due_times_between(
        "0 2 * * *",
        "Pacific/Apia",
        "2011-12-29T12:00",
        "2011-12-31T12:00",
    );
    assert_eq!(no_day, ["12-31 00:00 +14:00", "12-31 02:00 +14:00"]);
}

#[test]
fn a_time_that_exists_twice_is_due_once_at_fixed_hours() {
    let berlin = due_times_between(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24T12:00",
        "2026-10-26T12:00",
    );
    assert_eq!(berlin, ["10-25 02:30 +02:00", "10-26 02:30 +01:00"]);
    let new_york = due_times_between(
        "30 1 * * *",
        "America/New_York",
        "2026-10-31T12:00",
        "2026-11-02T12:00",
    );
    assert_eq!(new_york, ["11-01 01:30 -04:00", "11-02 01:30 -05:00"]);
    let lord_howe = due_times_between(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T12:00",
        "2026-04-06T12:00",
    );
    assert_eq!(lord_howe, ["04-05 01:45 +11:00", "04-06 01:45 +10:30"]);
}

#[test]
fn a_rhythm_continues_through_both_changes() {
    let count =
        |from: &str, to: &str| due_times_between("*/15 * * * *", "Europe/Berlin", from, to).len();
    assert_eq!(count("2026-03-29T00:00", "2026-03-30T00:00"), 23 * 4);
    assert_eq!(count("2026-10-25T00:00", "2026-10-26T00:00"), 25 * 4);
    let hourly = due_times_between(
        "30 * * * *",
        "Europe/Berlin",
        "2026-10-25T01:00",
        "2026-10-25T03:45",
    );
    let expected = [
        "01:30 +02:00",
        "02:30 +02:00",
        "02:30 +01:00",
        "03:30 +01:00",
    ];
    assert_eq!(hourly, expected.map(|time| format!("10-25 {time}")));
    let skipped = due_times_between(
        "30 * * * *",
        "Europe/Berlin",
        "2026-03-29T01:00",
        "2026-03-29T04:00",
    );
    assert_eq!(skipped, ["03-29 01:30 +01:00", "03-29 03:30 +02:00"]);
}

#[test]
fn days_are_those_of_the_calendar() {
    let year = |text| due_times_between(text, "UTC", "2025-01-01T00:00", "2032-12-31T00:00");
    let leap: Vec<String> = year("0 0 29 2 *");
    assert_eq!(leap.len(), 2, "2028 and 2032");
    assert_eq!(
        due_times_between(
            "0 0 29 FEB *",
            "UTC",
            "2096-03-01T00:00",
            "2104-03-01T00:00"
        )
        .len(),
        1
    );
    let month = |text| due_times_between(text, "UTC", "2026-10-31T23:59", "2026-11-30T00:00");
    let either = ["06", "10", "13", "20", "27"].map(|day| format!("11-{day} 00:00 +00:00"));
    assert_eq!(month("0 0 10 * 5"), either, "one of both is enough");
    assert_eq!(month("0 0 * * 7"), month("0 0 * * SUN"));
    assert_eq!(month("0 0 * * 0"), month("0 0 * * sun"));
    assert_eq!(month("0 0 * * 5-7"), month("0 0 * * FRI,sat,0"));
    assert_eq!(
        month("0 0 */2 * 1").len(),
        2,
        "a star asks for both: the 9th and the 23rd"
    );
    assert_eq!(month("0 0 1-10/3 NOV *").len(), 4);
    assert_eq!(month("0 0 25/2 * *").len(), 3);
}

#[test]
fn invalid_schedules_are_refused_with_the_allowed_forms() {
    for (text, why) in [
        ("", "expected `once`, `every 6h`"),
        ("0 2 * *", "five fields"),
        ("@daily", "five fields"),
        ("60 2 * * *", "minute `60`: allowed are 0 to 59"),
        ("0 24 * * *", "hour `24`: allowed are 0 to 23"),
        ("0 2 0 * *", "day of month `0`: allowed are 1 to 31"),
        (
            "0 2 * FOO *",
            "month `FOO`: allowed are 1 to 12 and JAN to DEC",
        ),
        ("0 2 * * 8", "day of week `8`: allowed are 0 to 7"),
        ("0 2 * * 5-1", "the range ends before it begins"),
        ("*/0 * * * *", "a step is a number from 1 to 60"),
        ("1,,2 * * * *", "minute ``"),
        ("+1 * * * *", "minute `+1`"),
        ("0 0 30 2 *", "no month of these has such a day"),
        ("every 0s", "from 1s to 366d"),
        ("every 6 hours", "five fields"),
        ("every soon", "is not a duration"),
    ] {
        let refusal = Schedule::parse(text, TimeZone::UTC).unwrap_err();
        assert!(refusal.contains(why), "{text}: {refusal}");
    }
    for zone in ["", "Berlin", "Europe/Atlantis", "../../etc/passwd", "\u{0}"] {
        assert!(time_zone(zone).is_err(), "{zone}");
    }
}

const HOUR_MS: i64 = 3_600_000;

fn last_run(due_h: i64, started_h: i64, ended_h: i64) -> LastRun {
    LastRun {
        due_ms: due_h * HOUR_MS,
        started_ms: started_h * HOUR_MS,
        ended_ms: ended_h * HOUR_MS,
    }
}

#[test]
fn a_period_counts_from_the_last_start_without_drift() {
    let every = cron("every 6h", "UTC");
    let next_h = |last: &LastRun| every.next_due_ms(Some(last), 0).map(|ms| ms / HOUR_MS);
    assert_eq!(every.next_due_ms(None, 5_000), Some(5_000), "at once");
    let mut late = last_run(12, 12, 13);
    late.started_ms += 700;
    assert_eq!(
        every.next_due_ms(Some(&late), 0),
        Some(18 * HOUR_MS),
        "no drift"
    );
    assert_eq!(
        next_h(&last_run(12, 15, 16)),
        Some(21),
        "it was missed and made up for"
    );
    assert_eq!(
        next_h(&last_run(12, 12, 25)),
        Some(30),
        "two were due while it ran"
    );
    assert_eq!(every.count_skipped_during(&last_run(12, 12, 25)), 2);
    assert_eq!(
        next_h(&last_run(12, 12, 11)),
        Some(18),
        "the clock was set back"
    );
}

#[test]
fn once_is_due_at_once_and_never_again() {
    let once = cron("once", "UTC");
    assert_eq!(once.next_due_ms(None, 5_000), Some(5_000));
    let last = last_run(12, 12, 40);
    assert_eq!(once.next_due_ms(Some(&last), 0), None);
    assert_eq!(
        (once.count_skipped_during(&last), once.period_ms(0)),
        (0, None)
    );
    assert_eq!(once.count_due_between(0, 100 * HOUR_MS), 0);
}

#[test]
fn due_times_are_missed_once_and_skipped_during_a_run() {
    let nightly = cron("0 2 * * *", "UTC");
    let last = last_run(2, 2, 3);
    assert_eq!(nightly.next_due_ms(Some(&last), 0), Some(26 * HOUR_MS));
    assert_eq!(nightly.count_skipped_during(&last), 0);
    assert_eq!(
        nightly.count_skipped_during(&last_run(2, 2, 51)),
        2,
        "of the second and the third night"
    );
    assert_eq!(
        nightly.next_due_ms(Some(&last_run(2, 2, 51)), 0),
        Some(74 * HOUR_MS)
    );
    assert_eq!(nightly.count_due_between(26 * HOUR_MS, 100 * HOUR_MS), 3);
    let often = cron("* * * * *", "UTC");
    assert_eq!(
        often.count_due_between(0, i64::MAX / 2),
        MOST_COUNTED as u64
    );
}

/// Finds due times by checking the clock each minute, as an independent reference.
fn find_due_times_by_minute(
    schedule: &Schedule,
    zone: &str,
    from_ms: i64,
    minutes: i64,
) -> Vec<i64> {
    let Schedule::Cron(cron) = schedule else {
        panic!("it has fields")
    };
    let matches = |time: DateTime| {
        let is = |field: &Field, value: i8| field.allows(value as u32);
        let (by_day, by_weekday) = (
            is(&cron.days, time.day()),
            is(&cron.weekdays, time.weekday().to_sunday_zero_offset()),
        );
        let both = cron.days.is_star || cron.weekdays.is_star;
        is(&cron.minutes, time.minute())
            && is(&cron.hours, time.hour())
            && is(&cron.months, time.month())
            && ((both && by_day && by_weekday) || (!both && (by_day || by_weekday)))
    };
    let has_rhythm = cron.hours.is_star;
    let mut begun: BTreeSet<DateTime> = BTreeSet::new();
    let mut latest = to_zoned_time(from_ms, zone).datetime();
    let mut due = Vec::new();
    for minute in 1..=minutes {
        let now_ms = from_ms + minute * 60_000;
        let now = to_zoned_time(now_ms, zone).datetime();
        let mut is_due = match has_rhythm {
            true => matches(now),
            false => matches(now) && begun.insert(now),
        };
        let mut jumped = latest.checked_add(1.minute()).unwrap();
        while !has_rhythm && jumped < now {
            is_due |= matches(jumped) && begun.insert(jumped);
            jumped = jumped.checked_add(1.minute()).unwrap();
        }
        latest = now;
        if is_due {
            due.push(now_ms);
        }
    }
    due
}

#[test]
fn due_times_equal_those_of_a_daemon_that_checks_each_minute() {
    const DAYS: i64 = 3;
    let mut dice = fastrand::Rng::with_seed(20_261_123);
    let changes = [
        ("Europe/Berlin", "2026-03-28T00:00"),
        ("Europe/Berlin", "2026-10-24T00:00"),
        ("America/New_York", "2026-03-07T00:00"),
        ("America/New_York", "2026-10-31T00:00"),
        ("Australia/Lord_Howe", "2026-04-04T00:00"),
        ("Australia/Lord_Howe", "2026-10-03T00:00"),
        // On these dates midnight does not exist in Cairo, or comes twice.
        ("Africa/Cairo", "2026-04-23T00:00"),
        ("Africa/Cairo", "2026-10-28T00:00"),
        ("America/St_Johns", "2006-10-28T00:00"),
        ("UTC", "2028-02-27T00:00"),
    ];
    for round in 0..120 {
        let (zone, from) = changes[round % changes.len()];
        let mut field = |least: u32, most: u32| match dice.u32(0..6) {
            0 | 1 => "*".to_owned(),
            2 => format!("*/{}", dice.u32(1..20)),
            3 => format!("{}-{most}/{}", dice.u32(least..=most), dice.u32(1..9)),
            _ => format!("{},{}", dice.u32(least..=most), dice.u32(least..=most)),
        };
        let fields = [
            field(0, 59),
            field(0, 3),
            field(27, 31),
            "*".into(),
            field(0, 7),
        ];
        let text = fields.join(" ");
        let (schedule, from_ms) = (cron(&text, zone), to_unix_ms(from, zone));
        let expected = find_due_times_by_minute(&schedule, zone, from_ms, DAYS * 1_440);
        let mut found = Vec::new();
        let mut now_ms = from_ms;
        while let Some(next_ms) = schedule.next_due_ms(None, now_ms) {
            if next_ms > from_ms + DAYS * 86_400_000 {
                break;
            }
            found.push(next_ms);
            now_ms = next_ms;
        }
        assert_eq!(found, expected, "{text} in {zone} from {from}");
    }
}

#[test]
fn compiled_in_time_zones_need_no_system_database() {
    // The compiled-in time zones are the fallback of a machine without tzdata.
    let compiled_in = jiff::tz::TimeZoneDatabase::bundled();
    assert!(compiled_in.get("Europe/Berlin").is_ok());
}
