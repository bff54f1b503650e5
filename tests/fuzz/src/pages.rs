//! Fuzzes pages. A mapping with every kind of processor reads them. The first byte selects the kind of page. Short HTML
//! pages are also read by html5ever's tokenizer, which must yield the same tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::{Url, canonical_url};

/// The time after its start when an extraction must end.
const DEADLINE: Duration = Duration::from_secs(2);

/// The longest page, in bytes, that is compared with html5ever. The comparison has no time limit.
const COMPARED_BYTES: usize = 4_096;

pub(crate) fn run(input: &[u8]) {
    thread_local! {
        static ENGINE: Engine = build_engine(mappings_with_everything());
    }
    let (kind, text) = crate::split_choice(input);
    let kind = match kind % 4 {
        0 | 1 => PageKind::Html,
        2 => PageKind::Xml,
        _ => PageKind::Json,
    };
    let text = String::from_utf8_lossy(text);
    if kind == PageKind::Html && text.len() <= COMPARED_BYTES {
        webfill_document::compare_tokenizers(&text);
    }
    ENGINE.with(|engine| extract_with(engine, kind, &text));
}

/// Reads a page with arbitrary mappings, by an engine made only for it.
pub(crate) fn extract(set: MappingSet, kind: PageKind, text: &str) {
    extract_with(&build_engine(set), kind, text);
}

fn extract_with(engine: &Engine, kind: PageKind, text: &str) {
    let url = Url::parse("https://example.com/people/ada?page=2").expect("it is one");
    let page = PageInput {
        url: &url,
        kind,
        text,
    };
    let wants = RequestedParts {
        mapped_links: true,
        row_links: true,
        all_links: true,
        feeds: true,
        shell: true,
        deadline: Some(Instant::now() + DEADLINE),
        ..RequestedParts::default()
    };
    let Ok(extraction) = engine.extract(page, wants) else {
        return;
    };
    serde_json::to_string(&extraction).expect("fields are plain JSON");
    for link in extraction.links.iter().chain(&extraction.all_links) {
        if let Ok(url) = canonical_url(link, None) {
            assert_eq!(
                url.as_str(),
                link,
                "links that can be crawled are canonical"
            );
        }
    }
}

fn build_engine(set: MappingSet) -> Engine {
    Engine::new(Arc::new(set), Limits::default())
}

fn mappings_with_everything() -> MappingSet {
    let source = Source {
        name: "everything.json".into(),
        text: include_str!("everything.json").into(),
    };
    MappingSet::from_sources(vec![source]).expect("the mapping of the fuzz targets is right")
}
