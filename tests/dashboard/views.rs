//! Tests the views of the dashboard by plain requests: which visitors see which content, page by page, with and without
//! a fleet.

use serde_json::json;
use webfill_tests::run::Run;

use crate::fleet::{APP, Fleet, wait_for};
use crate::http::Visitor;
use crate::scene::{CRAWL, DATASET, RECORDS_CRAWL, Scene};

const SHOP: &str = "shop-0123456789abcdef0123456789abcdef";

/// The address (`href`) of the first link with this label.
fn find_link(body: &str, label: &str) -> Option<String> {
    let (before, _) = body.split_once(&format!(">{label}</a>"))?;
    let (_, tag) = before.rsplit_once("<a ")?;
    let (_, href) = tag.split_once("href=\"")?;
    let href = href.split('"').next()?;
    Some(href.replace("&amp;", "&").replace("&#x2f;", "/"))
}

/// The rows of a list, from its first to its last page.
fn load_all_rows(visitor: &Visitor, path: &str) -> Vec<String> {
    let (mut all, mut path) = (Vec::new(), path.to_owned());
    for _ in 0..50 {
        let answer = visitor.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let heads = answer.body.split("scope=\"row\"").skip(1);
        all.extend(heads.map(|row| row.split("</th>").next().unwrap_or_default().to_owned()));
        match find_link(&answer.body, "Next page") {
            Some(next) => path = next,
            None => return all,
        }
    }
    panic!("{path} continues for ever");
}

#[test]
fn lists_are_read_page_by_page_and_each_figure_leads_to_its_list() {
    let scene = Scene::new();
    let visitor = scene.fleet.visitor();
    let records = load_all_rows(&visitor, &format!("/dashboard/records?dataset={DATASET}"));
    assert_eq!(records.len(), 64);
    let open = load_all_rows(
        &visitor,
        &format!("/dashboard/records?dataset={DATASET}&state=open"),
    );
    assert_eq!(open.len(), 2, "{open:?}");
    let datasets = visitor.get("/dashboard/records").body;
    let resolved = find_link(&datasets, "62").expect("a figure with a link");
    assert_eq!(load_all_rows(&visitor, &resolved).len(), 62);
    let by_id = load_all_rows(
        &visitor,
        &format!("/dashboard/records?dataset={DATASET}&id=m000"),
    );
    assert_eq!(by_id.len(), 10);

    let crawl = visitor
        .get(&format!(
            "/dashboard/crawl/{APP}/{}",
            crate::http::percent_encode(CRAWL)
        ))
        .body;
    let failed = find_link(&crawl, "http_error").expect("a figure with a link");
    assert_eq!(load_all_rows(&visitor, &failed).len(), 3);
    assert!(
        crawl.contains("out_of_domain") && crawl.contains("denied_extension"),
        "{crawl}"
    );

    let record = visitor
        .get(&format!("/dashboard/record/{DATASET}/nirgends"))
        .body;
    assert!(
        record.contains("one of its pages ended in http_error"),
        "{record}"
    );
    let record = visitor
        .get(&format!("/dashboard/records?dataset={DATASET}&state=open"))
        .body
        .replace("&#x2f;", "/");
    let (_, long) = record.split_once("/dashboard/record/").expect("a link");
    let path = format!("/dashboard/record/{}", long.split('"').next().unwrap());
    let record = visitor.get(&path).body;
    assert!(
        record.contains("no mapping has a field of this name"),
        "{record}"
    );
}

/// The links of the navigation named `label`: address, text, and `aria-current`.
fn navigation_links(body: &str, label: &str) -> Vec<(String, String, Option<String>)> {
    let start = format!("aria-label=\"{label}\">");
    let (_, rest) = body.split_once(&start).expect("a navigation");
    let (own, _) = rest.split_once("</nav>").expect("its end");
    let links = own.split("<a href=\"").skip(1).map(|link| {
        let (path, rest) = link.split_once('"').expect("an address");
        let (attributes, rest) = rest.split_once('>').expect("the end of the tag");
        let text = rest.split('<').next().unwrap_or_default();
        let current = attributes.split('"').nth(1).map(str::to_owned);
        (path.replace("&#x2f;", "/"), text.to_owned(), current)
    });
    links.collect()
}

#[test]
fn three_areas_lead_to_every_view() {
    let fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 3);
    let visitor = fleet.visitor();
    fleet.wait_until_listed(&visitor, "monday");
    let body = visitor.get("/dashboard/").body;
    let areas = navigation_links(&body, "Areas");
    let labels: Vec<&str> = areas.iter().map(|(_, label, _)| label.as_str()).collect();
    assert_eq!(labels, ["Overview", "Data", "Crawls", "System"]);
    assert_eq!(areas[0].2.as_deref(), Some("page"));
    for (area, views) in [
        ("Data", &["Records", "Changes"][..]),
        ("Crawls", &["Runs", "Sites", "Pages", "Watches"]),
        (
            "System",
            &["Machines", "Mappings", "Mapping editor", "Audit"],
        ),
    ] {
        let (path, ..) = areas.iter().find(|(_, label, _)| label == area).unwrap();
        let shown = navigation_links(&visitor.get(path).body, area);
        let labels: Vec<&str> = shown.iter().map(|(_, label, _)| label.as_str()).collect();
        assert_eq!(labels, views);
        for (path, label, _) in &shown {
            let answer = visitor.get(path);
            assert_eq!(answer.status, 200, "{label}: {}", answer.body);
            let (.., current) = &navigation_links(&answer.body, area)
                .into_iter()
                .find(|(_, other, _)| other == label)
                .unwrap();
            assert_eq!(current.as_deref(), Some("page"), "{label}");
        }
    }
    // The view of one crawl belongs to the list of crawls, so the navigation marks this list as current.
    let body = visitor.get(&format!("/dashboard/crawl/{APP}/monday")).body;
    let here = (
        "/dashboard/crawls".into(),
        "Runs".into(),
        Some("true".into()),
    );
    assert_eq!(navigation_links(&body, "Crawls")[0], here);
    assert_eq!(
        navigation_links(&body, "Areas")[2].2.as_deref(),
        Some("true")
    );
}

#[test]
fn visitors_limited_to_applications_see_nothing_of_others() {
    let fleet = Fleet::with_tokens(&format!("shop {SHOP} apps=shop\n"));
    fleet.feed_pages("geheim.example", "verborgen", 5);
    wait_for("pages are stored", || {
        let stored = webfill_tests::stored::Stored::open(&fleet.work.path("store.db"));
        (stored.query_number("SELECT count(*) FROM pages") == 5).then_some(())
    });
    let page = crate::looks::page_path(&fleet, "geheim.example", "outcome = 'ok'");
    let shop = fleet.log_in(SHOP);
    for (path, status) in [
        (format!("/dashboard/crawl/{APP}/verborgen"), 403),
        (format!("/dashboard/crawl/{APP}/verborgen/pages"), 403),
        (format!("/dashboard/crawl/{APP}/verborgen/changes"), 403),
        (page.clone(), 403),
        (format!("{page}/body"), 403),
        ("/dashboard/pages".into(), 200),
        ("/dashboard/site/geheim.example".into(), 200),
        ("/dashboard/site/geheim.example/pages".into(), 200),
        (
            "/dashboard/find?url=http%3A%2F%2Fgeheim.example%2F1".into(),
            200,
        ),
        ("/dashboard/sites".into(), 403),
        ("/dashboard/records".into(), 403),
        ("/dashboard/mappings".into(), 403),
        ("/dashboard/mapping/profile".into(), 403),
        ("/dashboard/mapping/profile/pages".into(), 200),
        ("/dashboard/watches".into(), 200),
    ] {
        let answer = shop.get(&path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(
            !answer.body.contains("verborgen"),
            "{path}: {}",
            answer.body
        );
    }
}

#[test]
fn a_store_alone_is_shown_without_the_parts_of_a_fleet() {
    let scene = Scene::new();
    let place = format!("{}:8099", scene.fleet.host());
    let mut dashboard = Run::new([
        "dashboard",
        "--store",
        &scene.fleet.store_uri(),
        "--listen",
        &place,
    ])
    .start();
    dashboard.wait_for_stderr("ready");
    let visitor = Visitor::of(&place);
    let crawl = visitor.get(&format!("/dashboard/crawl/{APP}/{RECORDS_CRAWL}"));
    assert_eq!(crawl.status, 200, "{}", crawl.body);
    assert!(
        crawl.body.contains("No dispatcher connected"),
        "{}",
        crawl.body
    );
    for path in [
        "/dashboard/sites",
        "/dashboard/site/blocks.example",
        "/dashboard/records",
        "/dashboard/pages",
        "/dashboard/mappings",
        "/dashboard/mapping/profile",
    ] {
        let answer = visitor.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(
            !answer.body.contains("/dashboard/do/"),
            "{path} offers what nobody does"
        );
    }
    assert!(
        visitor
            .get("/dashboard/sites")
            .body
            .contains("blocks.example")
    );
    assert_eq!(visitor.get("/dashboard/watches").status, 404);
    let reported = scene.run_action(json!({"action": "status"}));
    assert_eq!(reported["action"], "status", "the fleet is as it was");
}
