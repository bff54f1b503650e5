//! Measures the time and memory of learning from large pages.

use std::collections::BTreeMap;

use webfill_bench::core_time::time_on_core;
use webfill_bench::sites::Failure;
use webfill_bench::{Limit, Size, Verdict};
use webfill_learn::{Limits, Page, Task, learn};
use webfill_mapping::PageKind;
use webfill_urls::Url;

/// The number of pages in the full and in the small size, and the size of each page in bytes.
const PAGES: usize = 50;
const PAGES_OF_SMALL: usize = 10;
const BYTES: usize = 160_000;

const FIELDS: [&str; 5] = ["title", "maker", "price", "weight", "people"];

/// Learns from large pages. Measures the CPU time of this thread and the peak memory of the process.
pub fn measure(size: Size) -> Result<Vec<Verdict>, Failure> {
    let count = size.pick(PAGES, PAGES_OF_SMALL);
    let pages: Result<Vec<Page>, Failure> = (0..count).map(build_page).collect();
    let pages = pages?;
    let task = Task {
        name: "large".to_owned(),
        fields: Vec::new(),
        limits: Limits::default(),
    };
    let before = time_on_core()?;
    let learned = learn(&pages, &[], &task)?;
    let seconds = (time_on_core()? - before).as_secs_f64();
    let fields = learned.mappings.iter().flat_map(|mapping| &mapping.fields);
    let sure = fields.filter(|field| field.confidence >= 0.9).count();
    let verdict = |what: &str, figure, limit| Verdict {
        what: format!("{count} pages of 160 KB, {} fields: {what}", FIELDS.len()),
        figure,
        limit,
    };
    Ok(vec![
        verdict("CPU seconds", seconds, Limit::AtMost(10.0)),
        verdict(
            "MiB at the largest",
            peak_memory_mib()?,
            Limit::AtMost(600.0),
        ),
        verdict(
            "learned surely",
            sure as f64,
            Limit::AtLeast(FIELDS.len() as f64),
        ),
    ])
}

/// A page as shops have them: a few values, and long lists of other things with similar values.
fn build_page(number: usize) -> Result<Page, Failure> {
    let (title, maker) = (
        format!("Thing {number}"),
        format!("Makers of {}", number * 7 + 3),
    );
    let (price, weight) = (
        format!("${}.{:02}", number * 3 + 10, number + 11),
        number * 41 + 170,
    );
    let people: Vec<String> = (0..number % 3 + 1)
        .map(|at| format!("Person {number} {at}"))
        .collect();
    let list: String = people
        .iter()
        .map(|one| format!("<li class=\"person\"><a href=\"/p\">{one}</a></li>"))
        .collect();
    let mut text = format!(
        "<html><head><title>{title} - Shop</title></head><body><div id=\"main\" class=\"page product\"><h1>{title}</h1>\
         <table class=\"specs\"><tr><th>Maker:</th><td class=\"value\">{maker}</td></tr>\
         <tr><th>Price:</th><td class=\"value\">{price}</td></tr></table>\
         <p class=\"note\">It weighs {weight} grams without its box.</p><h2>People</h2><ul class=\"people\">{list}</ul></div>\
         <div class=\"others\">"
    );
    let mut other = 0;
    while text.len() < BYTES {
        other += 1;
        let of = (number * 131 + other * 17) % 9_000;
        text.push_str(&format!(
            "<div class=\"card card-small\"><a class=\"title\" href=\"/thing/{of}\"><span>Other thing {of}</span></a>\
             <p class=\"note\">It weighs {} grams without its box.</p><b class=\"price\">${of}.50</b></div>\n",
            of % 977
        ));
    }
    text.push_str("</div></body></html>");
    let known = [
        ("title", vec![title]),
        ("maker", vec![maker]),
        ("price", vec![price]),
        ("weight", vec![weight.to_string()]),
        ("people", people),
    ];
    Ok(Page {
        url: Url::parse(&format!("http://large.example/thing/{number}"))?,
        kind: PageKind::Html,
        text,
        record: None,
        known: known
            .map(|(field, values)| (field.to_owned(), values))
            .into(),
        said: BTreeMap::new(),
    })
}

fn peak_memory_mib() -> Result<f64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    Ok(kib.ok_or("/proc/self/status: no VmHWM")? / 1_024.0)
}
