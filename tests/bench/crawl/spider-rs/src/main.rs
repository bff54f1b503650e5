//! spider-rs's side of the crawl benchmarks: the same seeds, links and XPaths as webfill's.
//!
//! Reads task.json in the current folder; writes items.jsonl and stats.json there. spider-rs leaves extraction to its
//! user; here libxml2 reads the page, as it does for Scrapy. It is measured at its best: on one thread, with webfill's
//! allocator, and reading each page where it is fetched, without a channel that would copy it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use libxml::parser::{Parser, ParserOptions};
use libxml::xpath::{Context, Expression};
use serde_json::{Map, Value, json};
use spider::CaseInsensitiveString;
use spider::hashbrown::HashSet;
use spider::page::Page;
use spider::tokio;
use spider::website::Website;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error>;

/// The number of requests in flight to each site. With one, spider-rs ends a crawl at the first page without new links,
/// whatever else is queued.
const IN_FLIGHT: usize = 2;

/// The fields to extract from each page, and the file for the results.
struct Extraction {
    /// For each field: its name, its XPath, and whether all values are wanted instead of the first one.
    fields: Vec<(String, Expression, bool)>,
    items: BufWriter<File>,
    pages: u64,
}

thread_local! {
    static EXTRACTION: RefCell<Option<Extraction>> = const { RefCell::new(None) };
}

fn main() -> Result<(), Failure> {
    let task: Value = serde_json::from_slice(&std::fs::read("task.json")?)?;
    let mapping = task["mapping"].as_str().ok_or("task.json has no mapping")?;
    EXTRACTION.set(Some(Extraction::new(&std::fs::read(mapping)?)?));
    let follow = task["depth"].as_u64().unwrap_or(0) > 0;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut crawls = tokio::task::JoinSet::new();
        for (site, seeds) in seeds_by_site(&task) {
            crawls.spawn(crawl_site(site, seeds, follow));
        }
        while crawls.join_next().await.is_some() {}
    });
    let Some(mut extraction) = EXTRACTION.take() else {
        return Err("the extraction was taken twice".into());
    };
    extraction.items.flush()?;
    let stats = json!({"response_received_count": extraction.pages});
    std::fs::write("stats.json", stats.to_string())?;
    Ok(())
}

/// The seeds by their sites, because spider-rs crawls one site at a time.
fn seeds_by_site(task: &Value) -> BTreeMap<String, Vec<String>> {
    let mut sites = BTreeMap::<String, Vec<String>>::new();
    for seed in task["seeds"].as_array().into_iter().flatten() {
        let seed = seed.as_str().unwrap_or_default();
        let path_at = seed.match_indices('/').nth(2).map_or(seed.len(), |at| at.0);
        let site = seed[..path_at].to_owned();
        sites.entry(site).or_default().push(seed.to_owned());
    }
    sites
}

async fn crawl_site(site: String, seeds: Vec<String>, follow: bool) {
    let start = if let [only] = &seeds[..] { only } else { &site };
    let mut website = Website::new(start);
    website
        .with_respect_robots_txt(true)
        .with_user_agent(Some("spider-peer"))
        .with_concurrency_limit(Some(IN_FLIGHT))
        .with_delay(0)
        .with_retry(0)
        .with_no_control_thread(true)
        .with_on_should_crawl_callback_closure(Some(move |page: &Page| {
            EXTRACTION.with_borrow_mut(|extraction| {
                if let Some(extraction) = extraction {
                    extraction.take_page(page);
                }
            });
            follow
        }));
    if seeds.len() > 1 {
        // Without this call, the crawl would forget the links that are added below.
        website.persist_links();
        let links: HashSet<_> = seeds
            .iter()
            .map(|url| CaseInsensitiveString::new(url))
            .collect();
        website.set_extra_links(links);
    }
    website.crawl_raw().await;
}

impl Extraction {
    fn new(mapping: &[u8]) -> Result<Extraction, Failure> {
        let mapping: Value = serde_json::from_slice(mapping)?;
        let mut fields = Vec::new();
        for field in mapping["fields"].as_array().into_iter().flatten() {
            let expression = &field["processors"][0]["parameters"]["expression"];
            let expression = expression
                .as_str()
                .ok_or("each chain begins with an XPath")?;
            let compiled =
                Expression::compile(expression).map_err(|_| "libxml2 refuses an XPath")?;
            let name = field["name"].as_str().unwrap_or_default().to_owned();
            fields.push((name, compiled, field["multiple"] == true));
        }
        Ok(Extraction {
            fields,
            items: BufWriter::new(File::create("items.jsonl")?),
            pages: 0,
        })
    }

    /// Writes the fields of a page to the file of results.
    fn take_page(&mut self, page: &Page) {
        let Some(body) = page.get_bytes().filter(|_| page.status_code.is_success()) else {
            return;
        };
        self.pages += 1;
        let fields = self.extract(body);
        let item = json!({"url": page.get_url(), "fields": fields});
        writeln!(self.items, "{item}").expect("the disk is full");
    }

    fn extract(&self, body: &[u8]) -> Map<String, Value> {
        let mut found = Map::new();
        // For UTF-8 pages, the encoding is given, because libxml2 would otherwise look for it in the page.
        let encoding = std::str::from_utf8(body).is_ok().then_some("utf-8");
        let options = options(encoding);
        let Ok(document) = Parser::default_html().parse_string_with_options(body, options) else {
            return found;
        };
        let Ok(context) = Context::new(&document) else {
            return found;
        };
        for (name, expression, multiple) in &self.fields {
            let Ok(result) = context.evaluate_compiled(expression) else {
                continue;
            };
            let mut values = result.get_nodes_as_str();
            if !*multiple {
                values.truncate(1);
            }
            match (multiple, values.len()) {
                (_, 0) => {}
                (false, _) => drop(found.insert(name.clone(), values.remove(0).into())),
                (true, _) => drop(found.insert(name.clone(), values.into())),
            }
        }
        found
    }
}

fn options(encoding: Option<&'static str>) -> ParserOptions<'static> {
    ParserOptions {
        recover: true,
        no_error: true,
        no_warning: true,
        no_net: true,
        encoding,
        ..ParserOptions::default()
    }
}
