//! The progress of a crawl on a terminal.

use std::process::{Command, Stdio};

use webfill_test_needs::needs;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// Runs a crawl of one record on a terminal of so many columns, and returns what was shown. It lasts
/// longer than it takes until records are counted for the first time after they were fed.
fn shown(columns: u16) -> String {
    let web = Web::start();
    let work = Workplace::new();
    let site = web.site("seen.example");
    site.robots("User-agent: *\nCrawl-delay: 4\n");
    site.serve("/", page("T").mapped_link("/more"));
    site.serve("/more", page("T").field("name", "Ada"));
    std::fs::write(
        work.path("seeds.csv"),
        format!("id,url,name\n1,{},\n", site.url("/")),
    )
    .expect("seeds");
    let mut command = format!(
        "stty rows 24 cols {columns}; {} crawl --progress auto --allow-private-networks --delay 0.2",
        webfill_tests::run::binary().display()
    );
    command += &format!(
        " --store sqlite:{0}/store.db --state {0}/state --mappings {0}/mappings --seeds {0}/seeds.csv",
        work.path("").display().to_string().trim_end_matches('/')
    );
    for argument in web.resolve_args() {
        command += &format!(" '{argument}'");
    }
    // `script` runs a command on a terminal of its own.
    let output = Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command", &command])
        .arg("/dev/null")
        .stdin(Stdio::null())
        .output()
        .expect("`script` is installed");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    assert_eq!(web.visits().pages().len(), 2);
    shown
}

/// What the bar showed, of the time before the summary.
fn frames(shown: &str) -> Vec<&str> {
    let frames = shown.split(['\r', '\n']);
    frames.filter(|frame| frame.contains("errors 0")).collect()
}

#[needs(script)]
#[test]
fn the_bar_is_drawn_on_a_wide_terminal() {
    let shown = shown(140);
    let frames = frames(&shown);
    let last = frames.last().unwrap_or_else(|| panic!("{shown:?}"));
    for part in ["█", " s: resolved ", "pages ", "sites "] {
        assert!(last.contains(part), "`{part}` is not in: {last:?}");
    }
}

#[needs(script)]
#[test]
fn a_narrow_terminal_shows_what_matters_and_cuts_the_rest_off() {
    let shown = shown(36);
    let frames = frames(&shown);
    let last = frames.last().unwrap_or_else(|| panic!("{shown:?}"));
    assert!(last.contains(" s: resolved "), "{last:?}");
    for part in ["█", "░", "sites"] {
        assert!(!last.contains(part), "`{part}` is in: {last:?}");
    }
}
