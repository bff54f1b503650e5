//! Tests sitemaps and feeds as sources of URLs (`--sitemaps`).

use std::collections::BTreeSet;
use std::time::Duration;

use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::encodings::{gzip, html};
use webfill_tests::site::{Site, Web, document, page, redirect, status};
use webfill_tests::workplace::Workplace;

pub(crate) const XML: &str = "text/xml";

pub(crate) fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.crawl(web)
        .replace_flag("--delay", "0.02")
        .args(["--sitemaps", "--depth", "0"])
}

pub(crate) fn sitemap_xml(urls: impl IntoIterator<Item = String>) -> String {
    let entries = urls
        .into_iter()
        .map(|url| format!("<url><loc>{url}</loc><lastmod>2001-01-01</lastmod></url>\n"));
    let entries: String = entries.collect();
    format!(
        "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entries}</urlset>"
    )
}

pub(crate) fn sitemap_index_xml(urls: impl IntoIterator<Item = String>) -> String {
    let entries = urls
        .into_iter()
        .map(|url| format!("<sitemap><loc>{url}</loc></sitemap>\n"));
    let entries: String = entries.collect();
    format!(
        "<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entries}</sitemapindex>"
    )
}

fn serve_pages(site: &Site, paths: &[&str]) {
    for path in paths {
        site.serve(path, page(path));
    }
}

/// The requested paths except for robots.txt, sorted by name.
fn requested_paths(site: &Site) -> Vec<String> {
    requested_since(site, 0)
}

/// The paths of all requests after the first `before` requests.
fn requested_since(site: &Site, before: usize) -> Vec<String> {
    let visits = site.visits().pages();
    let mut paths: Vec<String> = visits.0[before..]
        .iter()
        .map(|visit| visit.path.clone())
        .collect();
    paths.sort();
    paths
}

#[test]
fn sitemaps_in_robots_txt_are_read_down_to_the_pages_at_the_depth_of_seeds() {
    let web = Web::start();
    let site = web.site("shop.example");
    let maps = web.site("maps.example");
    site.serve_robots(&format!("Sitemap: {}\n", maps.url("/index")));
    maps.serve_robots("");
    maps.serve(
        "/index",
        document(
            "text/html",
            sitemap_index_xml([site.url("/a.gz"), site.url("/b.txt"), site.url("/gone.xml")]),
        ),
    );
    let pages = sitemap_xml(["/1", "/2"].map(|path| site.url(path)));
    site.serve("/a.gz", document("text/plain", gzip(pages.as_bytes())));
    let text = format!("{}\n{}\n", site.url("/3"), site.url("/1"));
    site.serve(
        "/b.txt",
        document("application/octet-stream", gzip(text.as_bytes())),
    );
    site.serve("/", page("home").mapped_link("/linked"));
    serve_pages(&site, &["/1", "/2", "/3", "/linked"]);
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(
        requested_paths(&site),
        ["/", "/1", "/2", "/3", "/a.gz", "/b.txt", "/gone.xml"],
        "{}",
        run.stderr
    );
    assert_eq!(requested_paths(&maps), ["/index"]);
    assert_eq!(
        site.visits().robots().len(),
        1,
        "its task asks for nothing more"
    );
    let pages = work.stored().pages();
    let depths = ["/1", "/a.gz"].map(|path| pages[&site.url(path)].depth);
    assert_eq!(depths, [0, 0]);
    assert_eq!(run.summary().skipped_count("duplicate"), 1);
    web.visits().assert_polite(Duration::from_millis(20));
}

#[test]
fn no_sitemap_is_requested_without_the_flag() {
    let web = Web::start();
    let site = web.site("shop.example");
    site.serve_robots(&format!("Sitemap: {}\n", site.url("/sitemap.xml")));
    site.serve("/", page("home"));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    assert_eq!(requested_paths(&site), ["/"]);
}

#[test]
fn the_usual_place_is_tried_where_none_is_named_and_robots_txt_is_obeyed() {
    let web = Web::start();
    let named = web.site("named.example");
    named.serve_robots(&format!(
        "User-agent: *\nDisallow: /private\nSitemap: {}\n",
        named.url("/private/map")
    ));
    let usual = web.site("usual.example");
    usual.serve("/sitemap.xml", redirect("/map"));
    usual.serve("/map", document(XML, sitemap_xml([usual.url("/1")])));
    for site in [&named, &usual] {
        serve_pages(site, &["/", "/1"]);
    }
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .args([named.url("/"), usual.url("/"), usual.url("/1")])
        .finish()
        .expect_code(0);
    assert_eq!(requested_paths(&named), ["/"]);
    assert_eq!(requested_paths(&usual), ["/", "/1", "/map", "/sitemap.xml"]);
    assert_eq!(run.summary().outcome_count("disallowed"), 1);
}

#[test]
fn feeds_are_read_if_they_are_seeds_or_linked_from_seeds() {
    let web = Web::start();
    let blog = web.site("blog.example");
    let home = "<html><head><link rel='alternate' type='application/rss+xml' href='feed'>\
        <link rel='alternate' hreflang='de' href='/de'></head></html>";
    blog.serve("/", html(home));
    let rss =
        "<rss><channel><item><link>/1</link></item><item><guid>/2</guid></item></channel></rss>";
    blog.serve("/feed", document("application/rss+xml", rss));
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/3'/></entry></feed>";
    blog.serve("/atom", document("application/atom+xml", atom));
    let own = "<html><head><link rel='alternate' type='application/rss+xml' href='/1/feed'></head></html>";
    blog.serve("/1", html(own));
    serve_pages(&blog, &["/2", "/3"]);
    let work = Workplace::new();
    crawl_command(&work, &web)
        .args([blog.url("/"), blog.url("/atom")])
        .finish()
        .expect_code(0);
    assert_eq!(
        requested_paths(&blog),
        ["/", "/1", "/2", "/3", "/atom", "/feed", "/sitemap.xml"],
        "feeds of pages that are no seeds are not read"
    );
}

#[test]
fn scope_holds_for_pages_and_domains_for_sitemaps() {
    let web = Web::start();
    let site = web.site("shop.example");
    let other = web.site("other.example");
    site.serve_robots(&format!(
        "Sitemap: {}\nSitemap: {}\n",
        site.url("/map.xml"),
        other.url("/map.xml")
    ));
    let pages = ["/product/1", "/about"].map(|path| site.url(path));
    site.serve(
        "/map.xml",
        document(
            XML,
            sitemap_xml(pages.into_iter().chain([other.url("/product/2")])),
        ),
    );
    serve_pages(&site, &["/product/0", "/product/1", "/about"]);
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .args([
            "--allowed-domains",
            "shop.example",
            "--allow-regex",
            "/product/",
        ])
        .arg(site.url("/product/0"))
        .finish()
        .expect_code(0);
    assert_eq!(
        requested_paths(&site),
        ["/map.xml", "/product/0", "/product/1"]
    );
    assert!(web.visits().for_host("other.example").is_empty());
    let summary = run.summary();
    assert_eq!(
        summary.skipped_count("denied_pattern"),
        1,
        "{}",
        summary.json
    );
    assert_eq!(
        summary.skipped_count("out_of_domain"),
        2,
        "{}",
        summary.json
    );
}

#[test]
fn a_moved_sitemap_only_needs_an_allowed_domain() {
    let web = Web::start();
    let site = web.site("shop.example");
    site.serve_robots(&format!("Sitemap: {}\n", site.url("/map.xml")));
    site.serve("/map.xml", redirect("/map.xml.gz"));
    site.serve("/map.xml.gz", redirect("/moved/map.xml.gz"));
    let pages = sitemap_xml([site.url("/product/1")]);
    let packed = document("application/gzip", gzip(pages.as_bytes()));
    site.serve("/moved/map.xml.gz", packed);
    serve_pages(&site, &["/product/0", "/product/1"]);
    let work = Workplace::new();
    crawl_command(&work, &web)
        .args(["--allow-regex", "/product/|/map[.]xml$"])
        .arg(site.url("/product/0"))
        .finish()
        .expect_code(0);
    assert_eq!(site.visits().for_path("/product/1").len(), 1);
}

#[test]
fn a_moved_sitemap_of_an_index_only_needs_an_allowed_domain() {
    let web = Web::start();
    let site = web.site("shop.example");
    let maps = sitemap_index_xml([site.url("/product/map.xml")]);
    site.serve("/index.xml", document(XML, maps));
    site.serve("/product/map.xml", redirect("/moved/map.xml"));
    let pages = sitemap_xml([site.url("/product/1"), site.url("/product/2")]);
    site.serve("/moved/map.xml", document(XML, pages));
    // A product page has moved. The target of the redirect is judged like the page itself.
    site.serve("/product/2", redirect("/moved/2"));
    serve_pages(&site, &["/product/0", "/product/1", "/moved/2"]);
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .args(["--allow-regex", "/product/|/index[.]xml$"])
        .args([site.url("/product/0"), site.url("/index.xml")])
        .finish()
        .expect_code(0);
    assert_eq!(site.visits().for_path("/product/1").len(), 1);
    assert_eq!(site.visits().for_path("/moved/2").len(), 0);
    let summary = run.summary();
    assert_eq!(
        summary.skipped_count("denied_pattern"),
        1,
        "{}",
        summary.json
    );
}

#[test]
fn a_sitemap_that_was_empty_or_incomplete_is_requested_without_conditions() {
    const ETAG: &str = "\"one\"";
    let web = Web::start();
    let site = web.site("shop.example");
    let maps = [
        ("/none.xml", sitemap_xml([]).into_bytes()),
        ("/empty.xml", Vec::new()),
        ("/torn.gz", b"\x1f\x8b\x08 and no more".to_vec()),
        ("/cut.xml", b"<urlset><url><loc>".to_vec()),
    ];
    let named = maps
        .each_ref()
        .map(|(path, _)| format!("Sitemap: {}\n", site.url(path)));
    site.serve_robots(&named.concat());
    serve_pages(&site, &["/", "/1", "/2", "/3", "/4"]);
    for (path, body) in &maps {
        let answer = document("application/octet-stream", body.clone());
        site.serve(path, answer.header("ETag", ETAG));
    }
    let work = Workplace::new();
    let crawl_again = || {
        crawl_command(&work, &web)
            .args(["--refresh-after", "0s"])
            .arg(site.url("/"))
    };
    crawl_again().finish().expect_code(0);
    assert_eq!(site.visits().for_path("/1").len(), 0);
    // The server claims that the sitemaps are unchanged, although they have changed.
    for (number, (path, _)) in (1..).zip(&maps) {
        let lists = sitemap_xml([site.url(&format!("/{number}"))]);
        site.serve_with(path, move |request| match request.header("if-none-match") {
            Some(_) => status(304).header("ETag", ETAG).into(),
            None => document(XML, lists.clone()).into(),
        });
    }
    crawl_again().finish().expect_code(0);
    for path in ["/1", "/2", "/3", "/4"] {
        assert_eq!(site.visits().for_path(path).len(), 1, "{path}");
    }
}

#[test]
fn sitemaps_are_no_pages_without_a_mapping() {
    let web = Web::start();
    let site = web.site("shop.example");
    let lists = sitemap_xml([site.url("/1")]);
    site.serve("/sitemap.xml", document(XML, lists));
    serve_pages(&site, &["/", "/1"]);
    let work = Workplace::new();
    let fails = ["--fail-on", "no-mapping"];
    let run = crawl_command(&work, &web)
        .args(fails)
        .arg(site.url("/"))
        .finish();
    assert_eq!(run.expect_code(0).summary().json["found"]["unmatched"], 0);
    let stranger = web.site("other.test");
    stranger.serve("/", page("no mapping"));
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .args(fails)
        .arg(stranger.url("/"))
        .finish();
    assert_eq!(run.expect_code(1).summary().json["found"]["unmatched"], 1);
}

#[test]
fn a_site_with_no_budget_left_is_still_asked_for_its_sitemaps() {
    let web = Web::start();
    let site = web.site("shop.example");
    site.serve("/sitemap.xml", document(XML, sitemap_xml([site.url("/1")])));
    serve_pages(&site, &["/", "/1"]);
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .args(["--domain-max-pages", "1"])
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(requested_paths(&site), ["/"]);
    assert_eq!(
        run.summary().skipped_count("budget"),
        1,
        "the sitemap is reported"
    );
}

#[test]
fn many_sitemaps_are_read_by_a_crawl_that_is_killed_on_its_way() {
    let web = Web::start();
    let site = web.site("shop.example");
    let names = |prefix: &'static str, n: u32| (0..n).map(move |i| format!("{prefix}{i}"));
    let lists = sitemap_index_xml(names("/map", 60).map(|path| site.url(&path)));
    site.serve_robots(&format!("Sitemap: {}\n", site.url("/index.xml")));
    site.serve("/index.xml", document(XML, lists));
    for number in 0..60 {
        let path = format!("/page{number}");
        site.serve(
            &format!("/map{number}"),
            document(XML, sitemap_xml([site.url(&path)])),
        );
        site.serve(&path, page(&path));
    }
    site.serve("/", page("home"));
    let work = Workplace::new();
    let start = || crawl_command(&work, &web).arg(site.url("/"));
    let running = start().start();
    web.log()
        .wait_until("sitemaps are read", |visits| visits.pages().len() > 30);
    for process in running.processes() {
        process.signal(Signal::KILL);
    }
    running.finish();
    let before = requested_paths(&site).len();
    assert!(before < 122, "it was killed on its way");
    let run = start().finish().expect_code(0);
    let asked: BTreeSet<String> = requested_paths(&site).into_iter().collect();
    assert_eq!(asked.len(), 122, "{}", run.stderr);
}

#[test]
fn only_pages_of_mappings_are_taken_unless_all_links_are_followed() {
    let web = Web::start();
    let site = web.site("shop.other");
    site.serve(
        "/sitemap.xml",
        document(
            XML,
            sitemap_xml(["/item/1", "/news/1"].map(|path| site.url(path))),
        ),
    );
    serve_pages(&site, &["/", "/item/1", "/news/1"]);
    let mapping = serde_json::json!({"name": "items", "url_patterns": [
        {"type": "regex", "pattern": "^http://shop\\.other/item/"}]});
    for (follow, expected) in [
        ("mapped", vec!["/", "/item/1", "/sitemap.xml"]),
        ("all", vec!["/", "/item/1", "/news/1", "/sitemap.xml"]),
        ("none", vec!["/", "/item/1", "/news/1", "/sitemap.xml"]),
    ] {
        let before = site.visits().pages().len();
        let work = Workplace::new();
        work.write_json("mappings/profile.json", &mapping);
        crawl_command(&work, &web)
            .args(["--follow", follow])
            .arg(site.url("/"))
            .finish()
            .expect_code(0);
        assert_eq!(requested_since(&site, before), expected, "{follow}");
    }
}

#[test]
fn a_count_on_the_first_page_leads_to_all_pages_of_a_list() {
    let web = Web::start();
    let site = web.site("lists.other");
    site.serve_otherwise(
        |request| match request.path.starts_with("/search?q=lamps") {
            true => html("<p class=total>1,234 hits</p>").into(),
            false => status(404).into(),
        },
    );
    let mapping = serde_json::json!({
        "name": "lists",
        "url_patterns": [{"type": "prefix", "pattern": "http://lists.other/search"}],
        "url_parsers": [{"processors": [
            {"type": "css", "parameters": {"selector": ".total"}},
            {"type": "number", "parameters": {"group": ","}},
            {"type": "pagination", "parameters": {"parameter": "start", "step": 100}},
        ]}],
    });
    let work = Workplace::new();
    work.write_json("mappings/profile.json", &mapping);
    let run = work
        .crawl(&web)
        .replace_flag("--delay", "0.02")
        .arg(site.url("/search?q=lamps"))
        .args(["--depth", "2"])
        .finish()
        .expect_code(0);
    let mut expected = vec!["/search?q=lamps".to_owned()];
    let further = (1..=12).map(|page| format!("/search?q=lamps&start={}", 100 * page));
    expected.extend(further);
    expected.sort();
    assert_eq!(requested_paths(&site), expected);
    assert_eq!(run.summary().links(), 12, "further pages yield none");
}
