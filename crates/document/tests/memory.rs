//! Checks that the memory of a page stays within the estimate and the limit while the page is parsed and read. All
//! allocations of the thread are counted.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use webfill_document::{Document, Limits, Truncation, XPath};

const PAGE_BYTES: usize = 4 << 20;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn record_allocation(more: usize, less: usize) {
    // Memory allocated by one thread may be freed by another.
    let now = (ALLOCATED.get() + more).saturating_sub(less);
    PEAK.set(PEAK.get().max(ALLOCATED.get() + more));
    ALLOCATED.set(now);
}

// SAFETY: all calls are passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        record_allocation(0, layout.size());
        unsafe { System.dealloc(at, layout) }
    }

    /// Counts both the old and the new block, because both exist while the content is copied.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record_allocation(size, layout.size());
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the result of `work`, and the largest memory that was allocated at one time during it.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get() - before)
}

fn filled_with(piece: &str) -> String {
    piece.repeat(PAGE_BYTES / piece.len())
}

/// Pages that take the most memory per byte, each in a different way, and two ordinary pages.
fn costly_pages() -> Vec<(&'static str, String)> {
    let named: String = (0..250).map(|number| format!(" a{number}")).collect();
    let new_names: String = (0..300_000).map(|n| format!("<p a{n}=0>")).collect();
    let fonts: String = (0..200).map(|n| format!("<font color=c{n}>")).collect();
    vec![
        ("text", filled_with("lorem ipsum dolor sit amet ")),
        (
            "paragraphs",
            filled_with("<p>lorem ipsum dolor sit amet</p>\n"),
        ),
        ("<a><a>", filled_with("<a><a>")),
        ("links", filled_with("<a href=/x>y</a>")),
        ("<br>", filled_with("x<br>")),
        ("comments", filled_with("<!---->")),
        (
            "attributes",
            filled_with("<p a b c d e f g h i j k l m n o p q>"),
        ),
        (
            "attributes of one element",
            filled_with(&format!("<p{named}>")),
        ),
        ("new names", new_names),
        ("copied elements", fonts + &filled_with("<p>x")),
        (
            "foster parents",
            format!("<table>{}", filled_with("x <tr>")),
        ),
        ("a script", format!("<script>{}", filled_with("var x = 1;"))),
        ("lines", filled_with("a\r\n")),
    ]
}

#[test]
fn a_tree_costs_at_most_what_is_estimated() {
    // On a busy machine, the default time limit would end the parsing of some pages.
    let limits = Limits {
        parse_time: Duration::from_secs(300),
        ..Limits::default()
    };
    for (name, page) in costly_pages() {
        let (document, peak) = peak_of(|| Document::parse_html(&page, &limits));
        let estimate = document.memory_bytes();
        assert!(peak <= estimate, "{name}: {peak} bytes, not {estimate}");
        // Each attribute is estimated as if it were the only one of its element, whose list has room for four.
        assert!(estimate <= 4 * peak, "{name}: {peak} bytes, not {estimate}");
    }
}

#[test]
fn a_tree_stays_within_its_memory() {
    let limits = Limits {
        memory_bytes: 3 * PAGE_BYTES,
        ..Limits::default()
    };
    for (name, page) in costly_pages() {
        let (document, peak) = peak_of(|| Document::parse_html(&page, &limits));
        assert!(peak <= limits.memory_bytes, "{name}: {peak} bytes");
        if name == "paragraphs" {
            assert_eq!(document.truncation(), Some(Truncation::Memory));
        }
    }
}

#[test]
fn a_copy_for_an_expression_counts_as_memory_and_is_refused_for_a_large_page() {
    let expression = XPath::compile("//p[substring-before(., ' ') = 'lorem']").unwrap();
    let page = "<p class=c>lorem ipsum</p>".repeat(20_000);
    let document = Document::parse_html(&page, &Limits::default());
    let tree = document.memory_bytes();
    let (found, peak) = peak_of(|| document.evaluate(&expression).unwrap().len());
    assert_eq!(found, 20_000);
    let copy = document.memory_bytes() - tree;
    assert!(peak <= copy, "{peak} bytes, not {copy}");
    assert!(copy <= 3 * peak, "{peak} bytes, not {copy}");

    let tight = Limits {
        memory_bytes: tree + copy / 2,
        ..Limits::default()
    };
    let document = Document::parse_html(&page, &tight);
    assert_eq!(document.truncation(), None);
    let refusal = document.evaluate(&expression).unwrap_err().to_string();
    assert!(refusal.contains("the page is too large"), "{refusal}");
}
