//! Tests the progress of a crawl on a terminal.

use std::process::{Command, Stdio};

use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, files_under};

/// Runs a crawl of one record on a terminal with this many columns, and returns its output. The crawl lasts long enough
/// for the records to be counted once.
fn crawl_on_terminal(columns: u16) -> String {
    let web = Web::start();
    let work = Workplace::new();
    let site = web.site("seen.example");
    site.serve_robots("User-agent: *\nCrawl-delay: 4\n");
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
    // The program `script` runs a command on a new terminal.
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

/// The frames of the progress bar, which are printed before the summary.
fn progress_frames(shown: &str) -> Vec<&str> {
    let frames = shown.split(['\r', '\n']);
    frames.filter(|frame| frame.contains("errors 0")).collect()
}

#[needs(script)]
#[test]
fn the_bar_is_drawn_on_a_wide_terminal() {
    let shown = crawl_on_terminal(140);
    let frames = progress_frames(&shown);
    let last = frames.last().unwrap_or_else(|| panic!("{shown:?}"));
    for part in ["█", " s: resolved ", "pages ", "sites "] {
        assert!(last.contains(part), "`{part}` is not in: {last:?}");
    }
}

#[needs(script)]
#[test]
fn a_narrow_terminal_shows_the_essentials_and_cuts_the_rest_off() {
    let shown = crawl_on_terminal(36);
    let frames = progress_frames(&shown);
    let last = frames.last().unwrap_or_else(|| panic!("{shown:?}"));
    assert!(last.contains(" s: resolved "), "{last:?}");
    for part in ["█", "░", "sites"] {
        assert!(!last.contains(part), "`{part}` is in: {last:?}");
    }
}

/// Control sequences that set a terminal's title, colour its text, clear it, and overwrite its content.
const STEERING: &str = "A\u{1b}]0;owned\u{7}B\u{1b}[31mC\u{9b}2JD\u{8}E\u{7f}F\u{9d}8;;x\u{9c}G";

fn has_control_characters(text: &str) -> bool {
    let is_steering = |c: char| c.is_control() && !"\n\t".contains(c);
    text.contains(is_steering)
}

/// Serves a page whose text tries to control a terminal, and writes seeds and a saved page with the same text. Returns
/// commands that show this text.
fn prepare_hostile_commands(web: &Web, work: &Workplace) -> Vec<Vec<String>> {
    let site = web.site("evil.example");
    site.serve(
        "/",
        page(STEERING)
            .field("name", STEERING)
            .mapped_link(&format!("/{STEERING}")),
    );
    site.serve("/gone", page(STEERING).status(404));
    let seeds = [site.url("/"), site.url("/gone")]
        .map(|url| format!("{STEERING} {url},{url},,,{STEERING}\n"))
        .concat();
    work.write(
        "evil.csv",
        format!("id,url,name,wanted {STEERING},known\n{seeds}"),
    );
    let store = format!("sqlite:{}", work.path("store.db").display());
    let state = work.path("state").display().to_string();
    let profile = work.path("mappings/profile.json").display().to_string();
    work.write(
        "page.html",
        format!("<h1>{STEERING}</h1><p class=name>{STEERING}</p>"),
    );
    let kept = work.path("page.html").display().to_string();
    let commands: &[&[&str]] = &[
        &["export", "--store", &store, "records"],
        &["export", "--store", &store, "records", "--format", "csv"],
        &["export", "--store", &store, "pages", "--format", "csv"],
        &["changes", "--store", &store],
        &["changes", "--store", &store, "--json"],
        &["health", "--store", &store],
        &["trace", "http://evil.example/", "--state", &state],
        &["trace", "http://evil.example/", "--state", &state, "--json"],
        &["trace", STEERING, "--state", &state],
        &["mapping", "test", &profile, &kept],
        &["mapping", "test", &profile, &kept, "--trace"],
        &["mapping", "test", &profile, &kept, &kept],
        &["mapping", "test", &profile, STEERING],
        &["mapping", "check", STEERING],
        &["crawl", "--seeds", STEERING],
        &["extract", "--store", &store, "--crawl", STEERING],
        &["export", "--store", STEERING],
        &[STEERING],
    ];
    let owned = |args: &&[&str]| args.iter().map(|arg| arg.to_string()).collect();
    commands.iter().map(owned).collect()
}

#[test]
fn no_text_of_a_page_controls_a_terminal() {
    let (web, work) = (Web::start(), Workplace::new());
    let commands = prepare_hostile_commands(&web, &work);
    let run = work
        .crawl(&web)
        .replace_flag("--summary", "human")
        .replace_flag("--progress", "plain")
        .arg("--seeds")
        .arg(work.path("evil.csv"))
        .finish()
        .expect_code(0);
    assert!(!has_control_characters(&run.stdout), "{:?}", run.stdout);
    assert!(!has_control_characters(&run.stderr), "{:?}", run.stderr);
    for path in files_under(&work.path("state/logs")) {
        let text = std::fs::read_to_string(&path).expect("a log");
        assert!(
            !has_control_characters(&text),
            "{}: {text:?}",
            path.display()
        );
    }
    let mut said = String::new();
    for args in commands.iter().filter(|args| args[0] != "export") {
        let run = Run::new(args).finish();
        assert!(
            !has_control_characters(&run.stdout),
            "{args:?}: {:?}",
            run.stdout
        );
        assert!(
            !has_control_characters(&run.stderr),
            "{args:?}: {:?}",
            run.stderr
        );
        said += &run.stdout;
    }
    for part in ["A\\u001b]0;owned\\u0007B", "C\\u009b2JD"] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}

#[needs(script)]
#[test]
fn an_export_is_as_stored_in_a_pipe_and_harmless_on_a_terminal() {
    let (web, work) = (Web::start(), Workplace::new());
    let commands = prepare_hostile_commands(&web, &work);
    let crawl = work.crawl(&web).arg("--seeds").arg(work.path("evil.csv"));
    crawl.finish().expect_code(0);
    let exports = commands
        .iter()
        .filter(|args| args[0] == "export" && args.len() > 3);
    for args in exports {
        let piped = Run::new(args).finish().expect_code(0).stdout;
        assert!(piped.contains('\u{9b}'), "{args:?}: {piped:?}");
        let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
        let command = format!(
            "{} {}",
            webfill_tests::run::binary().display(),
            quoted.join(" ")
        );
        let output = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command", &command])
            .arg("/dev/null")
            .stdin(Stdio::null())
            .output()
            .expect("`script` is installed");
        let shown = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
        assert!(output.status.success(), "{shown}");
        assert!(!has_control_characters(&shown), "{args:?}: {shown:?}");
        assert!(shown.contains("\\u009b2J"), "{args:?}: {shown:?}");
    }
}
