//! Tests that pages made to do harm are processed in limited time and memory. The memory of the whole process is
//! measured, so each test needs its own process, as under nextest.

use crate::made::{page, task};
use webfill_learn::learn;

/// The most memory in MiB that the process may ever use. The trees of a group of pages may take 1 GiB of it.
const MOST_MIB: u64 = 1_600;

fn assert_learns_within_memory(what: &str, text: &str) {
    let pages: Vec<_> = (0..3)
        .map(|number| {
            page(
                &format!("person/{number}"),
                text.to_owned(),
                &[("name", &["Ada"])],
            )
        })
        .collect();
    let learned = learn(&pages, &[], &task());
    assert!(learned.is_ok(), "{what}: {learned:?}");
    let peak = peak_mib();
    assert!(peak <= MOST_MIB, "{what}: {peak} MiB");
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap() / 1_024
}

#[test]
fn hostile_pages_do_no_harm() {
    let numbers = |count: usize| vec!["1"; count].join(",");
    let linked = |kind: &str, values: &str| {
        let object = format!(r#"{{"@type": "{kind}", "a": [{values}]}}"#);
        format!("<p>Ada</p><script type=application/ld+json>{object}</script>")
    };
    let lists = vec![format!("[{}]", numbers(900)); 100].join(",");
    let attributes: String = (0..200)
        .map(|n| {
            format!(
                "<p data-({n}='Ada' data-a[{n}]='Ada' {}='x'>Ada</p>",
                "n".repeat(5_000)
            )
        })
        .collect();
    let classes = format!("<p class='a b{}'>Ada</p>", " ".repeat(1 << 20)).repeat(4);
    let cases = [
        ("deep", "<div>".repeat(200_000) + "Ada"),
        ("equal values", "<b>Ada</b>".repeat(1_000_000)),
        ("a long text", "x ".repeat(5 << 20) + "Ada"),
        ("a long type", linked(&"T".repeat(2 << 20), &lists)),
        ("many numbers", linked("Person", &lists)),
        ("long classes", classes),
        ("odd attributes", attributes),
    ];
    for (what, text) in cases {
        assert_learns_within_memory(what, &text);
    }
}

/// No chain may use a known value as its anchor, nor a class or URL that contains words of one.
#[test]
fn no_known_value_becomes_an_anchor() {
    let clubs = [
        "Boston Celtics",
        "Boston Celtics",
        "Boston Celtics",
        "Chicago Bulls",
    ];
    let people = ["Ada", "Mary", "Grace", "Emmy"];
    let pages: Vec<_> = people
        .iter()
        .zip(clubs)
        .enumerate()
        .map(|(number, (name, club))| {
            let slug = club.to_lowercase().replace(' ', "-");
            let html = format!(
                "<h1>{name}</h1><div><p class='club {slug}'>{club}</p></div>\
                 <a href='/{slug}/players'>{club}</a><p id='of-{slug}'>{club}</p>"
            );
            page(
                &format!("person/{number}"),
                html,
                &[("name", &[name]), ("club", &[club])],
            )
        })
        .collect();
    let learned = learn(&pages[..3], &[], &task()).unwrap();
    let mapping = learned.mappings[0].mapping.to_string();
    assert!(!mapping.contains("celtics"), "{mapping}");
    let read = crate::made::read(&learned.mappings[0].mapping, &pages[3]);
    assert_eq!(read["club"], "Chicago Bulls", "{mapping}");
}
