use super::*;

fn pages(config: BrowserConfig) -> ScriptedPages {
    ScriptedPages::new(&config)
}

fn kind(layout: &str) -> PageKind {
    PageKind {
        mapping: "shop".into(),
        layout: layout.into(),
    }
}

#[test]
fn mappings_decide_before_browser_crawls_and_those_before_sites() {
    use Rendering::{Always, IfUnread, Never};
    let config = BrowserConfig {
        sites: vec!["yes.example".into()],
        not_sites: vec!["no.example".into()],
        ..BrowserConfig::default()
    };
    let off = pages(BrowserConfig {
        auto: false,
        ..config.clone()
    });
    let auto = pages(config);
    let (http, browser) = (Some(PageLane::Http), Some(PageLane::Browser));
    for (crawl, mapping, site, with_auto, without) in [
        (Lane::Http, None, "a.example", IfUnread, Never),
        (Lane::Http, None, "yes.example", Always, Always),
        (Lane::Http, None, "no.example", Never, Never),
        (Lane::Http, browser, "no.example", Always, Always),
        (Lane::Http, browser, "a.example", Always, Always),
        (Lane::Http, http, "yes.example", Never, Never),
        (Lane::Browser, None, "a.example", Always, Always),
        (Lane::Browser, None, "no.example", Always, Always),
        (Lane::Browser, http, "a.example", Never, Never),
    ] {
        let case = format!("{crawl:?} {mapping:?} {site}");
        assert_eq!(auto.rendering(crawl, mapping, site), with_auto, "{case}");
        assert_eq!(off.rendering(crawl, mapping, site), without, "{case}, off");
    }
}

#[test]
fn of_a_kind_that_gains_nothing_only_a_sample_is_rendered() {
    let mut pages = pages(BrowserConfig::default());
    let one = kind("#app");
    for n in 1..=SAMPLE {
        assert!(pages.may_try("a.example", &one, true));
        let known = pages.note_result("a.example", &one, true, false);
        let expected = match n {
            SAMPLE => Finding::Empty,
            _ => Finding::Tried,
        };
        assert_eq!(known, Some(expected));
    }
    assert!(!pages.may_try("a.example", &one, true));
    assert!(pages.may_try("a.example", &kind("#other"), true));
    assert!(pages.may_try("b.example", &one, true));
}

#[test]
fn a_kind_that_is_filled_is_rendered_as_long_as_that_fills_it() {
    let mut pages = pages(BrowserConfig::default());
    let one = kind("#app");
    assert_eq!(
        pages.note_result("a.example", &one, true, true),
        Some(Finding::Filled)
    );
    assert_eq!(pages.note_result("a.example", &one, true, true), None);
    assert!(pages.may_fill_site("a.example") && pages.has_filled_kind("a.example", &one));
    let mut wasted = 0;
    while pages.may_try("a.example", &one, true) {
        wasted += 1;
        pages.note_result("a.example", &one, true, false);
    }
    assert_eq!(wasted, 2 * (ONE_IN - 1) + 1);
    assert!(!pages.may_fill_site("a.example"));
}

fn reported_scripts(finding: Finding, tries: u32) -> SiteScripts {
    let PageKind { mapping, layout } = kind("#app");
    let kinds = vec![KnownKind {
        mapping,
        layout,
        finding,
        tries,
    }];
    SiteScripts {
        site: "a.example".into(),
        lane: None,
        kinds,
    }
}

#[test]
fn kinds_known_before_a_restart_need_no_new_sample() {
    let one = kind("#app");
    for (finding, tries, left) in [
        (Finding::Empty, 3, 0),
        (Finding::Tried, 2, 1),
        (Finding::Wanted, 0, SAMPLE),
    ] {
        let mut pages = pages(BrowserConfig::default());
        pages.update_site(reported_scripts(finding, tries));
        let mut rendered = 0;
        while pages.may_try("a.example", &one, true) {
            rendered += 1;
            pages.note_result("a.example", &one, true, false);
        }
        assert_eq!(rendered, left, "{finding:?}");
    }
    let mut pages = pages(BrowserConfig::default());
    pages.update_site(reported_scripts(Finding::Filled, 0));
    assert!(pages.may_fill_site("a.example") && pages.has_filled_kind("a.example", &one));
    pages.update_site(reported_scripts(Finding::Empty, 3));
    assert!(pages.may_fill_site("a.example"), "what it knows is newer");
    pages.forget("a.example");
    assert!(!pages.has_rendered_kind("a.example", &one));
}

#[test]
fn a_rule_of_the_dispatcher_goes_before_the_settings_of_the_worker() {
    let config = BrowserConfig {
        sites: vec!["a.example".into()],
        ..BrowserConfig::default()
    };
    let mut pages = pages(config);
    let mut answer = reported_scripts(Finding::Wanted, 0);
    for (lane, expected) in [
        (Some(Lane::Http), Rendering::Never),
        (None, Rendering::Always),
        (Some(Lane::Browser), Rendering::Always),
    ] {
        answer.lane = lane;
        pages.update_site(answer.clone());
        assert_eq!(pages.rendering(Lane::Http, None, "a.example"), expected);
        let of_mapping = pages.rendering(Lane::Http, Some(PageLane::Http), "a.example");
        assert_eq!(of_mapping, Rendering::Never);
    }
}

#[test]
fn layouts_that_resemble_each_other_are_of_one_kind() {
    let mut pages = pages(BrowserConfig::default());
    pages.note_result("a.example", &kind("aaaaaaaa"), true, true);
    assert!(pages.has_filled_kind("a.example", &kind("aaaaaa00")));
    assert!(!pages.has_filled_kind("a.example", &kind("bbbbbbbb")));
}

#[test]
fn the_memory_of_sites_is_bounded() {
    let mut pages = pages(BrowserConfig::default());
    for n in 0..2 * MOST_KINDS {
        let layout = kind(&"x".repeat(n + 1));
        if pages.may_try("a.example", &layout, true) {
            pages.note_result("a.example", &layout, true, false);
        }
    }
    assert!(pages.known["a.example"].len() <= MOST_KINDS);
    for n in 0..=MOST_SITES {
        pages.note_result(&format!("{n}.example"), &kind("#app"), true, false);
    }
    assert!(pages.known.len() <= MOST_SITES);
}

#[test]
fn pages_of_a_site_where_nothing_is_filled_are_soon_not_rendered() {
    let mut pages = pages(BrowserConfig::default());
    let mut rendered = 0;
    for n in 0..MOST_KINDS {
        let layout = kind(&"x".repeat(n + 1));
        while pages.may_try("a.example", &layout, true) {
            rendered += 1;
            pages.note_result("a.example", &layout, true, false);
        }
    }
    assert_eq!(rendered, MOST_IN_VAIN);
    assert!(pages.may_try("b.example", &kind("#app"), true));
}

#[test]
fn a_mapping_that_fits_no_page_is_not_tried_at_every_site() {
    let mut pages = pages(BrowserConfig::default());
    let mut rendered = 0;
    for n in 0..100 {
        let site = format!("{n}.example");
        if pages.may_try(&site, &kind("aaaaaaaa"), false) {
            rendered += 1;
            pages.note_result(&site, &kind("aaaaaaaa"), false, false);
        }
    }
    assert_eq!(rendered, MOST_UNFIT);
    assert!(
        pages.may_try("a.example", &kind("#app"), true),
        "a shell is"
    );
    pages.note_result("a.example", &kind("aaaaaaaa"), false, true);
    assert!(pages.may_try("b.example", &kind("aaaaaaaa"), false));
}

#[test]
fn only_pages_with_scripts_are_candidates() {
    assert!(has_scripts(b"<p><script>1</script>") && has_scripts(b"<SCRIPT SRC=x>"));
    assert!(!has_scripts(b"<p>script</p>") && !has_scripts(b""));
    let long = format!("<script></script>{}", " ".repeat(MOST_BYTES));
    assert!(!has_scripts(long.as_bytes()));
}
