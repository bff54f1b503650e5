//! The layouts that a crawl has stored for its pages. They show which pages are of another kind, without reading their
//! bodies.

use webfill_health::is_similar;
use webfill_urls::Url;

use super::gathered::PageGatherer;

/// The most pages whose layout is kept.
const MOST: usize = 20_000;

/// The URLs of pages, each with the sketch of its layout (a short text for comparing layouts).
#[derive(Default)]
pub struct Layouts(Vec<(String, String)>);

impl Layouts {
    pub fn add(&mut self, url: &str, sketch: &str) {
        if self.0.len() < MOST {
            self.0.push((url.to_owned(), sketch.to_owned()));
        }
    }

    /// Notes pages that do not resemble any page with known values.
    pub fn note_of_other_kinds(&self, gathering: &mut PageGatherer<'_>) {
        let mut kinds: Vec<&str> = Vec::new();
        for (url, sketch) in &self.0 {
            let is_new = kinds.iter().all(|kind| !is_similar(kind, sketch));
            if is_new && gathering.is_known(url) {
                kinds.push(sketch);
            }
        }
        if kinds.is_empty() {
            return;
        }
        for (url, sketch) in &self.0 {
            let is_other = kinds.iter().all(|kind| !is_similar(kind, sketch));
            if is_other && let Ok(url) = Url::parse(url) {
                gathering.note_of_other_kind(&url);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_of_other_kinds(known: &str) -> Vec<String> {
        let mut layouts = Layouts::default();
        for (path, sketch) in [("a", "1111"), ("b", "1112"), ("c", "2222"), ("d", "1222")] {
            layouts.add(&format!("https://made.example/{path}"), sketch);
        }
        let is_known = |url: &str| url.ends_with(known);
        let mut gathering = PageGatherer::new(&is_known);
        layouts.note_of_other_kinds(&mut gathering);
        let noted = gathering.of_other_kinds.iter();
        noted.map(|url| url.path().to_owned()).collect()
    }

    #[test]
    fn pages_that_resemble_no_known_one_are_of_another_kind() {
        assert_eq!(paths_of_other_kinds("/a"), ["/c", "/d"]);
        assert_eq!(paths_of_other_kinds("/c"), ["/a", "/b"]);
        assert!(
            paths_of_other_kinds("/x").is_empty(),
            "of nothing known nothing is said"
        );
    }
}
