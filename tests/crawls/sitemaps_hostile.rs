//! Tests sitemaps that are hostile or too long, and pages with too many links.

use webfill_tests::site::encodings::{gzip, gzip_bomb, html};
use webfill_tests::site::{Web, document, page, status};
use webfill_tests::workplace::Workplace;

use crate::sitemaps::{XML, crawl_command, sitemap_index_xml, sitemap_xml};

#[test]
fn hostile_sitemaps_end_in_outcomes() {
    let web = Web::start();
    let site = web.site("shop.example");
    let loops = sitemap_index_xml(
        [
            "/loop.xml",
            "/other-loop.xml",
            "/laughs.xml",
            "/bomb.gz",
            "/deep/0",
        ]
        .map(|path| site.url(path)),
    );
    site.serve_robots(&format!("Sitemap: {}\n", site.url("/loop.xml")));
    site.serve("/loop.xml", document(XML, loops.clone()));
    site.serve("/other-loop.xml", document(XML, loops));
    let laughs = "<!DOCTYPE urlset [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>\
        <urlset><url><loc>/&b;</loc></url><url><loc>/1</loc></url></urlset>";
    site.serve("/laughs.xml", document(XML, laughs));
    site.serve("/bomb.gz", document("application/gzip", gzip_bomb(200)));
    site.serve("/1", page("one"));
    site.serve("/", page("home"));
    // Each sitemap index leads to further indexes, without end.
    let site_again = site.url("/deep/");
    site.serve_otherwise(move |request| {
        let number: Option<u32> = request
            .path
            .strip_prefix("/deep/")
            .and_then(|n| n.parse().ok());
        match number {
            Some(number) => document(
                XML,
                sitemap_index_xml([format!("{site_again}{}", number + 1)]),
            )
            .into(),
            None => status(404).into(),
        }
    });
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.outcome_count("crashed"), 0, "{}", summary.json);
    assert_eq!(site.visits().for_path("/1").len(), 1);
    let deep = site
        .visits()
        .0
        .iter()
        .filter(|visit| visit.path.starts_with("/deep/"))
        .count();
    assert!(
        (1..=4).contains(&deep),
        "{deep} indexes below each other were read"
    );
    assert_eq!(summary.skipped_count("too_deep"), 1, "{}", summary.json);
}

#[test]
fn a_sitemap_of_a_million_urls_is_cut_where_the_protocol_ends_and_larger_ones_than_pages_are_read()
{
    let web = Web::start();
    let site = web.site("huge.example");
    let name = "n".repeat(180);
    let urls = (0..1_000_000).map(|number| site.url(&format!("/{number}?{name}")));
    let plain = sitemap_xml(urls.take(100_000));
    assert!(plain.len() > 20 << 20);
    site.serve_robots(&format!(
        "Sitemap: {}\nSitemap: {}\n",
        site.url("/plain.xml"),
        site.url("/packed")
    ));
    site.serve("/plain.xml", document(XML, plain));
    let many = sitemap_xml((0..1_000_000).map(|number| site.url(&format!("/p{number}"))));
    site.serve(
        "/packed",
        document("application/x-gzip", gzip(many.as_bytes())),
    );
    site.serve("/", page("home"));
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .args(["--max-pages", "3"])
        .arg(site.url("/"))
        .finish()
        .expect_code(12);
    let summary = run.summary();
    assert_eq!(summary.links(), 100_002, "{}", summary.json);
    assert!(work.has_logged("sitemap_cut"));
}

#[test]
fn a_page_with_more_links_than_a_message_takes_is_cut() {
    let web = Web::start();
    let site = web.site("links.example");
    let folder = format!("/{}/", "f".repeat(3_900));
    let links: String = (0..50_000)
        .map(|number| format!("<a href=x{number}>"))
        .collect();
    site.serve(&folder, html(links));
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args(["--follow", "all", "--depth", "1", "--max-pages", "1"])
        .arg(site.url(&folder))
        .finish();
    let summary = run.summary();
    assert_eq!(summary.outcome_count("ok"), 1, "{}", summary.json);
    assert!(
        (2_000..2_200).contains(&summary.links()),
        "{}",
        summary.json
    );
    assert!(work.has_logged("links_cut"));
}
