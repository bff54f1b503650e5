//! Judges the appearance of an open page on four screens, in light and dark. By the rules of axe-core, the page must
//! meet WCAG 2.2 at level AA. Nothing may be cut off, and only tables may scroll sideways. Screenshots are kept, so
//! that people can inspect them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Browser;

/// The widths of a phone, a small laptop, a usual laptop and a large screen, in pixels.
pub const WIDTHS: [u32; 4] = [390, 1024, 1440, 2560];

const HEIGHT: u32 = 900;

/// On screens of at least this width, in pixels, no table may need sideways scrolling.
const ROOMY: u32 = 1440;

/// The tags of the rules that a light page must meet: WCAG 2.0 to 2.2 at levels A and AA, and best practices.
const TAGS: &str =
    "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa', 'best-practice']";

/// The rules that a dark page must meet. Only its colours differ from those of the light page.
const COLOURS: &str = "['color-contrast', 'link-in-text-block']";

/// JavaScript that lists parts that are cut off: elements that hide a part of their text, and elements that reach
/// beyond the right edge of the screen outside of a scrolling area.
const CUT_OFF: &str = "
    const clips = (one) => ['hidden', 'clip'].includes(getComputedStyle(one).overflowX);
    const scrolls = (one) => { for (; one && one !== document.body; one = one.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(one).overflowX)) return true; return false; };
    const isSeen = (one) => !one.closest('.unseen, .skip, svg, input, select, textarea, canvas, .uplot, [hidden]') && one.getClientRects().length > 0;
    const name = (one) => `${one.localName}.${one.className}: ${one.textContent.trim().slice(0, 60)}`;
    return [...document.querySelectorAll('main *, header *, nav *')].filter(isSeen).filter((one) =>
        (clips(one) && getComputedStyle(one).textOverflow !== 'ellipsis' && one.scrollWidth > one.clientWidth + 1)
        || (one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one))).map(name).slice(0, 5);";

/// JavaScript that lists the tables that have to be scrolled sideways.
const SIDEWAYS: &str = "
    const name = (one) => `${one.getAttribute('aria-label') ?? one.id}: ${one.scrollWidth} in ${one.clientWidth}`;
    return [...document.querySelectorAll('.wide')].filter((one) => one.scrollWidth > one.clientWidth + 1).map(name);";

/// Whether the tables of a page must fit on large screens. Tables with columns that the user has chosen may scroll
/// sideways on every screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    Fit,
    Scroll,
}

/// Judges the open page on each screen, and keeps a picture of each: `NAME-WIDTH[-dark].png`.
pub fn check_and_screenshot(browser: &Browser, name: &str, tables: Tables) {
    let axe = fs::read_to_string(axe_path()).expect("tests/dashboard/install.sh");
    browser.run_script(&axe, json!([]));
    for width in WIDTHS {
        browser.set_size(width, HEIGHT);
        for is_dark in [false, true] {
            browser.set_prefers_dark(is_dark);
            let shade = if is_dark { "-dark" } else { "" };
            let what = format!("{name}-{width}{shade}");
            check_accessibility(browser, &what, is_dark);
            if !is_dark {
                check_width(browser, &what, width, tables);
            }
            browser.screenshot(&what);
        }
    }
    browser.set_prefers_dark(false);
    browser.set_size(ROOMY, HEIGHT);
}

fn axe_path() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../.cache/dashboard-tools/axe.min.js"
    ))
}

fn check_accessibility(browser: &Browser, what: &str, is_dark: bool) {
    let only = match is_dark {
        false => format!("{{type: 'tag', values: {TAGS}}}"),
        true => format!("{{type: 'rule', values: {COLOURS}}}"),
    };
    let script = format!(
        "const done = arguments[arguments.length - 1];
         axe.run(document, {{resultTypes: ['violations'], runOnly: {only}}}).then(done, (error) => done({{fault: String(error)}}))"
    );
    let judged = browser.run_and_wait(&script, json!([]));
    let violations = judged["violations"].as_array();
    let violations = violations.unwrap_or_else(|| panic!("{what}: {judged}"));
    let reported: Vec<Value> = violations
        .iter()
        .map(|one| json!({"rule": one["id"], "help": one["help"], "at": one["nodes"][0]["html"], "why": one["nodes"][0]["failureSummary"]}))
        .collect();
    assert!(
        reported.is_empty(),
        "{what}: {}",
        serde_json::to_string_pretty(&reported).expect("it is JSON")
    );
}

/// Checks that the page need not be scrolled sideways, that nothing is cut off, and that tables fit if required.
fn check_width(browser: &Browser, what: &str, width: u32, tables: Tables) {
    let wide = browser.run_script("return document.documentElement.scrollWidth", json!([]));
    assert!(
        wide.as_u64().expect("a number") <= u64::from(width),
        "{what} is {wide} wide"
    );
    assert_eq!(
        browser.run_script(CUT_OFF, json!([])),
        json!([]),
        "{what} is cut off"
    );
    if width >= ROOMY && tables == Tables::Fit {
        let sideways = browser.run_script(SIDEWAYS, json!([]));
        assert_eq!(sideways, json!([]), "{what} is scrolled sideways");
    }
}
