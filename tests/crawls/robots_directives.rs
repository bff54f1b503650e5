//! Tests directives of pages for robots, in `<meta name="robots">` and `X-Robots-Tag`.

use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// The path of a page, its directives in a header and in its head, and whether its links are followed.
const DIRECTIVES: &[(&str, &str, &str, bool)] = &[
    ("plain", "", "", true),
    (
        "nofollow",
        "",
        "<meta name=robots content='noindex, nofollow'>",
        false,
    ),
    ("none", "", "<META NAME='ROBOTS' CONTENT='NONE'>", false),
    ("own", "", "<meta name=webfill content=nofollow>", false),
    ("noindex", "", "<meta name=robots content=noindex>", true),
    ("other", "", "<meta name=googlebot content=nofollow>", true),
    ("tag", "nofollow", "", false),
    ("tag-none", "noarchive, none", "", false),
    ("tag-own", "webfill: noindex, nofollow", "", false),
    ("tag-other", "googlebot: noindex, nofollow", "", true),
    ("tag-noindex", "noindex", "", true),
];

#[test]
fn links_of_a_page_that_says_nofollow_are_followed_only_if_a_mapping_selects_them() {
    for (follow, mapped) in [("all", false), ("all", true), ("mapped", true)] {
        let (web, work) = (Web::start(), Workplace::new());
        let site = web.site("said.example");
        site.serve_otherwise(|_| page("leaf").into());
        for (name, tag, head, _) in DIRECTIVES {
            let answer = page("root")
                .html(*head)
                .mapped_link(&format!("/from-{name}"));
            let answer = match tag.is_empty() {
                true => answer,
                false => answer.header("X-Robots-Tag", *tag),
            };
            site.serve(&format!("/{name}"), answer);
        }
        if !mapped {
            std::fs::remove_file(work.path("mappings/profile.json")).expect("our own");
        }
        let urls = DIRECTIVES
            .iter()
            .map(|(name, ..)| site.url(&format!("/{name}")));
        let run = work
            .crawl_without_delay(&web)
            .args(["--delay", "0", "--follow", follow]);
        run.args(urls).finish().expect_code(0);
        let fetched = web.visits().pages().paths();
        for (name, _, _, is_followed) in DIRECTIVES {
            let is_fetched = fetched.contains(&format!("said.example/from-{name}"));
            let expected = *is_followed || follow == "mapped";
            assert_eq!(
                is_fetched, expected,
                "--follow {follow}, mapped: {mapped}, {name}"
            );
        }
    }
}
