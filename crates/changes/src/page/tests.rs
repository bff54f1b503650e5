//! Tests of pages over several checks.

use serde_json::json;

use super::*;

struct Web {
    page: PageVersions,
    site: SiteBlocks,
    nights: u64,
}

impl Web {
    fn new() -> Web {
        Web {
            page: PageVersions::default(),
            site: SiteBlocks::default(),
            nights: 0,
        }
    }

    fn check(&mut self, change: impl FnOnce(&mut CheckedPage<'_>)) -> Option<CheckOutcome> {
        self.nights += 1;
        let nothing = Map::new();
        let mut check = CheckedPage {
            key: CheckKey {
                task: self.nights,
                number: 1,
                at_ms: self.nights as i64 * 86_400_000,
                ..CheckKey::default()
            },
            run_began_ms: None,
            answer: Answer::Page,
            content_hash: None,
            mapping: None,
            mapping_version: None,
            fields: &nothing,
            seen: PageContent::without_content(),
        };
        change(&mut check);
        let judged = self.page.compare_check(&check, &mut self.site);
        let packed = self.page.pack(1 << 20);
        assert_eq!(PageVersions::unpack(&packed).unwrap(), self.page);
        judged
    }

    fn check_text(&mut self, text: &str) -> Verdict {
        self.check(|check| check.seen = PageContent::from_text(text))
            .unwrap()
            .verdict
    }

    fn check_missing(&mut self) -> Option<Verdict> {
        self.check(|check| check.answer = Answer::Missing)
            .map(|judged| judged.verdict)
    }

    fn check_fields(&mut self, fields: Value, version: &str) -> Option<CheckOutcome> {
        let fields = fields.as_object().cloned().unwrap();
        self.nights += 1;
        let check = CheckedPage {
            key: CheckKey {
                task: self.nights,
                number: 1,
                ..CheckKey::default()
            },
            run_began_ms: None,
            answer: Answer::Page,
            content_hash: None,
            mapping: Some("shop"),
            mapping_version: Some(version),
            fields: &fields,
            seen: PageContent::without_content(),
        };
        self.page.compare_check(&check, &mut self.site)
    }
}

#[test]
fn a_page_is_new_then_unchanged_then_changed() {
    let mut web = Web::new();
    assert_eq!(web.check_text("one word"), Verdict::New);
    assert_eq!(web.check_text("one word"), Verdict::Unchanged);
    assert_eq!(web.check_text("one other word"), Verdict::Changed);
}

#[test]
fn two_alternating_forms_are_reported_once() {
    let mut web = Web::new();
    web.check_text("form A");
    assert_eq!(web.check_text("form B"), Verdict::Changed);
    for form in ["form A", "form B", "form B", "form A"] {
        assert_eq!(web.check_text(form), Verdict::Unchanged);
    }
    for number in 0..5 {
        assert_eq!(web.check_text(&format!("other {number}")), Verdict::Changed);
    }
    assert_eq!(
        web.check_text("form A"),
        Verdict::Changed,
        "it was forgotten"
    );
}

#[test]
fn a_page_is_gone_at_the_second_check_and_back_with_its_changes() {
    let mut web = Web::new();
    web.check_text("text");
    assert_eq!(web.check_missing(), None);
    assert_eq!(
        web.check_text("text"),
        Verdict::Unchanged,
        "it was missing once"
    );
    assert_eq!(web.check_missing(), None);
    assert_eq!(web.check_missing(), Some(Verdict::Gone));
    assert_eq!(web.check_missing(), None, "reported once");
    let back = web
        .check(|check| check.seen = PageContent::from_text("another text"))
        .unwrap();
    assert_eq!(back.verdict, Verdict::Back);
    assert!(!back.difference.is_empty());
    assert_eq!(web.check_missing(), None);
    assert_eq!(web.check_missing(), Some(Verdict::Gone));
    assert_eq!(web.check_text("another text"), Verdict::Back);
}

#[test]
fn a_page_that_never_was_is_not_gone() {
    let mut web = Web::new();
    assert_eq!((web.check_missing(), web.check_missing()), (None, None));
    assert!(web.page.is_unknown());
    assert_eq!(web.check_text("text"), Verdict::New);
}

#[test]
fn a_check_is_judged_once() {
    let mut web = Web::new();
    web.check_text("text");
    let again = web.check(|check| {
        check.key = CheckKey {
            task: 1,
            number: 1,
            at_ms: 86_400_000,
            ..CheckKey::default()
        };
        check.seen = PageContent::from_text("other");
    });
    assert_eq!(again, None);
}

#[test]
fn a_page_that_is_not_modified_is_there() {
    let mut web = Web::new();
    let not_modified = |web: &mut Web| {
        let judged = web.check(|check| check.answer = Answer::NotModified);
        judged.map(|judged| judged.verdict)
    };
    assert_eq!(not_modified(&mut web), None);
    web.check_text("text");
    assert_eq!(web.check_missing(), None);
    assert_eq!(not_modified(&mut web), Some(Verdict::Unchanged));
    assert_eq!(web.check_missing(), None, "it was there in between");
}

#[test]
fn an_empty_page_shows_nothing() {
    let mut web = Web::new();
    web.check_text("text");
    assert_eq!(web.check(|_| {}), None);
    assert_eq!(web.check_text("text"), Verdict::Unchanged);
}

#[test]
fn fields_are_compared_by_value_and_another_mapping_begins_anew() {
    let mut web = Web::new();
    web.check_fields(json!({"price": 10, "name": "Lamp"}), "v1");
    let judged = web
        .check_fields(json!({"price": 12, "name": "Lamp"}), "v1")
        .unwrap();
    assert_eq!(judged.old, Some(json!({"price": 10})));
    assert_eq!(judged.new, Some(json!({"price": 12})));
    let back = web
        .check_fields(json!({"price": 10, "name": "Lamp"}), "v1")
        .unwrap();
    assert_eq!(
        back.verdict,
        Verdict::Changed,
        "a price that is back is reported"
    );
    let other = web.check_fields(json!({"cost": 10}), "v2");
    assert_eq!(other, None, "it was never read so before");
    assert_eq!(web.check_fields(json!({"cost": null}), "v2"), None);
    let again = web.check_fields(json!({"price": 9, "name": "Lamp"}), "v1");
    assert_eq!(again.unwrap().old, Some(json!({"price": 10})));
}

/// The pages of one site, checked every night.
struct Pages {
    site: SiteBlocks,
    pages: Vec<PageVersions>,
    nights: i64,
}

impl Pages {
    fn new(count: usize) -> Pages {
        Pages {
            site: SiteBlocks::default(),
            pages: vec![PageVersions::default(); count],
            nights: 0,
        }
    }

    /// Checks all pages. Returns those reported as changed, with their differences.
    fn check_pages(&mut self, text: impl Fn(usize) -> String) -> Vec<(usize, String)> {
        self.nights += 1;
        let nothing = Map::new();
        let mut reported = Vec::new();
        for (number, page) in self.pages.iter_mut().enumerate() {
            let check = CheckedPage {
                key: CheckKey {
                    epoch: 1,
                    task: self.nights as u64,
                    number: 1,
                    at_ms: self.nights * 86_400_000 + number as i64,
                },
                run_began_ms: None,
                answer: Answer::Page,
                content_hash: None,
                mapping: None,
                mapping_version: None,
                fields: &nothing,
                seen: PageContent::from_text(&text(number)),
            };
            let judged = page.compare_check(&check, &mut self.site).unwrap();
            if judged.verdict == Verdict::Changed {
                reported.push((number, judged.difference));
            }
        }
        reported
    }
}

fn page_numbers(reported: &[(usize, String)]) -> Vec<usize> {
    reported.iter().map(|(number, _)| *number).collect()
}

#[test]
fn text_that_comes_to_all_pages_is_reported_for_the_first_ones_only() {
    let mut pages = Pages::new(20);
    let mut check = |night: usize| {
        pages.check_pages(|number| {
            let is_sold = night == 3 && number == 15;
            let own = if is_sold { "sold out" } else { "in stock" };
            format!("Thing {number}\n\n{own}\n\nHeadline of night {night}")
        })
    };
    assert_eq!(page_numbers(&check(1)), [0; 0]);
    assert_eq!(page_numbers(&check(2)), [0, 1, 2, 3]);
    let reported = check(3);
    assert_eq!(page_numbers(&reported), [0, 1, 2, 3, 15]);
    assert_eq!(reported[4].1, "- in stock\n+ sold out");
}

#[test]
fn text_that_comes_to_some_pages_is_reported_for_each() {
    let mut pages = Pages::new(20);
    let mut check = |sold: &[usize]| {
        let reported = pages.check_pages(|number| match sold.contains(&number) {
            true => format!("Thing {number}\n\nsold out"),
            false => format!("Thing {number}\n\nin stock"),
        });
        page_numbers(&reported)
    };
    check(&[]);
    let some = [1, 2, 3, 7, 9, 12, 16];
    assert_eq!(check(&some), some, "several in one night");
    let one_more = [1, 2, 3, 7, 8, 9, 12, 16];
    assert_eq!(check(&one_more), [8], "one in another night");
    let mut few = Pages::new(5);
    few.check_pages(|number| format!("Thing {number}\n\nin stock"));
    let reported = few.check_pages(|number| format!("Thing {number}\n\nsold out"));
    assert_eq!(
        page_numbers(&reported),
        [0, 1, 2, 3, 4],
        "each one of a small site is reported"
    );
}

#[test]
fn after_a_headline_its_words_on_a_single_page_are_reported() {
    let mut pages = Pages::new(20);
    let mut check = |has: &dyn Fn(usize) -> bool| {
        let reported = pages.check_pages(|number| match has(number) {
            true => format!("Thing {number}\n\nClosed today"),
            false => format!("Thing {number}"),
        });
        page_numbers(&reported)
    };
    check(&|_| false);
    check(&|_| true);
    for _ in 0..5 {
        check(&|_| false);
    }
    // No version of page 12 has the headline's text: other pages had reported it first. So now it is a change of this
    // page.
    assert_eq!(check(&|number| number == 12), [12]);
}

/// Checks a missing page at the second `at_s`, in the run that began at the second `began_s`.
fn check_missing_in_run(web: &mut Web, began_s: i64, at_s: i64) -> Option<Verdict> {
    let judged = web.check(|check| {
        check.answer = Answer::Missing;
        check.key.at_ms = at_s * 1_000;
        check.run_began_ms = Some(began_s * 1_000);
    });
    judged.map(|judged| judged.verdict)
}

#[test]
fn a_check_repeated_in_its_run_is_one_check() {
    let mut web = Web::new();
    let first = web.check(|check| {
        check.key.at_ms = 110_000;
        check.run_began_ms = Some(100_000);
        check.seen = PageContent::from_text("there");
    });
    assert_eq!(first.unwrap().verdict, Verdict::New);
    assert_eq!(check_missing_in_run(&mut web, 200, 210), None);
    assert_eq!(
        check_missing_in_run(&mut web, 200, 250),
        None,
        "after a crash"
    );
    assert_eq!(
        check_missing_in_run(&mut web, 300, 310),
        Some(Verdict::Gone)
    );
    assert_eq!(
        check_missing_in_run(&mut web, 300, 350),
        None,
        "reported once"
    );
}

#[test]
fn a_clock_that_is_ahead_hides_no_page_that_is_gone() {
    let mut web = Web::new();
    web.check(|check| check.seen = PageContent::from_text("there"));
    assert_eq!(check_missing_in_run(&mut web, 200, 90_210), None);
    assert_eq!(
        check_missing_in_run(&mut web, 200, 90_250),
        None,
        "after a crash"
    );
    assert_eq!(
        check_missing_in_run(&mut web, 300, 90_310),
        Some(Verdict::Gone)
    );
}

fn check_unread(web: &mut Web, hash: &'static str) -> Option<Verdict> {
    let judged = web.check(|check| {
        check.content_hash = Some(hash);
        check.seen = PageContent::unread_document();
    });
    judged.map(|judged| judged.verdict)
}

#[test]
fn a_document_that_cannot_be_read_is_new_once_and_changes_when_it_can() {
    let mut web = Web::new();
    assert_eq!(check_unread(&mut web, "a"), Some(Verdict::New));
    assert_eq!(check_unread(&mut web, "a"), Some(Verdict::Unchanged));
    assert_eq!(check_unread(&mut web, "b"), None, "bytes are not compared");
    let read = web
        .check(|check| check.seen = PageContent::from_text("text"))
        .unwrap();
    assert_eq!(
        (read.verdict, &*read.difference),
        (Verdict::Changed, "+ text")
    );
    assert_eq!(check_unread(&mut web, "a"), None, "damage is no change");
    assert_eq!(web.check_text("text"), Verdict::Unchanged);
}

#[test]
fn a_document_that_cannot_be_read_is_gone_and_back() {
    let mut web = Web::new();
    assert_eq!(check_unread(&mut web, "a"), Some(Verdict::New));
    assert_eq!(web.check_missing(), None);
    assert_eq!(web.check_missing(), Some(Verdict::Gone));
    assert_eq!(check_unread(&mut web, "b"), Some(Verdict::Back));
}

#[test]
fn fields_of_a_document_that_could_not_be_read_are_a_change_once() {
    let mut web = Web::new();
    check_unread(&mut web, "a");
    let read = web.check_fields(json!({"number": 7}), "1").unwrap();
    assert_eq!(
        (read.verdict, read.new),
        (Verdict::Changed, Some(json!({"number": 7})))
    );
    assert_eq!(
        web.check_fields(json!({"number": 8}), "2"),
        None,
        "another mapping"
    );
}
