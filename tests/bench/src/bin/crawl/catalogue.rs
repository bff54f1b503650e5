//! A generated shop of about 10,000 pages; see [`webfill_bench::catalogue_pages`].

use webfill_bench::catalogue_pages::item_page;

use crate::web::{Answer, Pages, page_answer, robots_answer};

/// A generated shop. The answer for each page is prepared before the measurement.
pub struct Catalogue {
    answers: Vec<Answer>,
}

impl Catalogue {
    /// Builds a shop of `pages` pages. They are numbered from 0, which is the seed.
    pub fn build(pages: usize) -> Catalogue {
        let answer = |number| {
            page_answer(
                "text/html; charset=utf-8",
                item_page(number, pages).as_bytes(),
            )
        };
        Catalogue {
            answers: (0..pages).map(answer).collect(),
        }
    }

    pub fn describe(&self) -> String {
        let bytes: usize = self.answers.iter().map(|answer| answer.len()).sum();
        format!(
            "pages of {:.1} KB on average",
            bytes as f64 / self.answers.len() as f64 / 1e3
        )
    }
}

impl Pages for Catalogue {
    fn answer(&self, _host: &str, path: &str) -> Option<Answer> {
        if path == "/robots.txt" {
            return Some(robots_answer());
        }
        let number: usize = path.strip_prefix("/item/")?.parse().ok()?;
        self.answers.get(number).cloned()
    }
}
