//! Generated sites, grouped into verticals. The sites of a vertical are about things of one kind (such as books), and
//! as different from each other as sites of different owners are.
//!
//! Each site has its own template. It determines the elements that have the values, their labels, order and form, the
//! fields that the site lacks, and the content around them. Each field is near content of the same form, such as a list
//! price or the date of a review. There are also other things of the same kind, reviews and menus. Different sites
//! mostly have different things.

mod kinds;
mod measured;
mod others;
mod template;
mod words;

use fastrand::Rng;
use webfill_urls::Url;

pub use kinds::{Kind, Part, Vertical};
pub use measured::MEASURED;
pub use others::OTHERS;
use template::{Template, Thing};

use crate::sites::{LabelledPage, Site};

impl Vertical {
    /// A generated site of the vertical. The same number always gives the same site.
    ///
    /// # Panics
    ///
    /// Never: the URLs are constant except for numbers.
    pub fn site(&self, number: u64, pages: usize) -> Site {
        let seed = self.name.bytes().fold(number + 1, |sum, byte| {
            sum.wrapping_mul(1_000_003) ^ u64::from(byte)
        });
        let mut chance = Rng::with_seed(seed);
        let template = Template::draw(self, &mut chance);
        let name = format!("{}{number}", self.name);
        let pages: Vec<LabelledPage> = (0..pages)
            .map(|page| {
                let thing = Thing::draw(self, &template, &mut chance);
                let url = format!("http://{name}.example/item/{}", 1_000 + page * 7);
                let (html, truth) = template.page(self, &thing, &mut chance);
                LabelledPage {
                    url: Url::parse(&url).expect("a URL"),
                    html,
                    truth,
                }
            })
            .collect();
        Site {
            name,
            pages,
            mapping: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redesign::visible_text;

    #[test]
    fn pages_are_the_same_each_time_and_have_their_values() {
        for vertical in MEASURED.iter().chain(OTHERS) {
            for number in 0..6 {
                let site = vertical.site(number, 4);
                let again = vertical.site(number, 4);
                for (page, other) in site.pages.iter().zip(&again.pages) {
                    assert_eq!(page.html, other.html);
                    let text = visible_text(&page.html) + &page.html;
                    for value in page.truth.values().flatten() {
                        assert!(text.contains(value.as_str()), "{}: {value}", site.name);
                    }
                }
            }
        }
    }
}
