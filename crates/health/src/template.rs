//! Templates: groups of pages with the same layout, which is recognised by a sketch of the page.
//!
//! A sketch is a text of digits. For each digit, a different hash function is applied to the page's tag paths, and the
//! smallest hash gives the digit. So the share of equal digits of two pages estimates how many paths they share. An
//! optional block, or a list with more entries, changes few digits. A page belongs to the template that it resembles
//! most. A page that resembles none makes a new template.

use serde::{Deserialize, Serialize};

use crate::scope::Scope;

/// The most templates (layouts) that are distinguished in a mapping. All pages of further templates are counted
/// together.
pub const MOST_TEMPLATES: usize = 32;

/// The most digits of a sketch.
const MOST_DIGITS: usize = 64;

/// A template is known from this many pages on. Fields that its pages never had are not expected of them.
pub(crate) const KNOWN: u64 = 30;

/// The percentage of equal digits in two sketches.
fn percent_of_equal_digits(one: &str, other: &str) -> usize {
    if one.len() != other.len() || one.is_empty() {
        return 0;
    }
    let equal = one.bytes().zip(other.bytes()).filter(|(a, b)| a == b);
    100 * equal.count() / one.len()
}

/// Whether two sketches show the same layout.
pub fn is_similar(one: &str, other: &str) -> bool {
    one == other || percent_of_equal_digits(one, other) >= 50
}

/// The pages of one layout.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Template {
    /// The sketch of the template's first page. Empty for pages without a tree, and for pages of templates beyond
    /// [`MOST_TEMPLATES`].
    pub(crate) sketch: String,
    /// The number of the template's first page, counted among the pages of the mapping.
    pub(crate) founded: u64,
    pub(crate) scope: Scope,
}

/// The index of the template that a page belongs to. A new template is added if no template resembles the page.
/// `number` is the number of the page.
pub(crate) fn find_or_add(
    templates: &mut Vec<Template>,
    sketch: Option<&str>,
    number: u64,
) -> usize {
    let sketch = sketch
        .filter(|sketch| sketch.len() <= MOST_DIGITS)
        .unwrap_or("");
    let nearest = templates
        .iter()
        .enumerate()
        .filter(|(_, template)| is_similar(&template.sketch, sketch))
        .max_by_key(|(_, template)| percent_of_equal_digits(&template.sketch, sketch));
    if let Some((index, _)) = nearest {
        return index;
    }
    let is_full = templates.len() >= MOST_TEMPLATES;
    let sketch = if is_full { "" } else { sketch };
    let same = templates
        .iter()
        .position(|template| template.sketch == sketch);
    same.unwrap_or_else(|| {
        templates.push(Template {
            sketch: sketch.to_owned(),
            founded: number,
            scope: Scope::default(),
        });
        templates.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_belongs_to_the_template_that_it_resembles_most() {
        let mut templates = Vec::new();
        assert_eq!(find_or_add(&mut templates, Some("aaaaaaaa"), 1), 0);
        assert_eq!(find_or_add(&mut templates, Some("aaaa0000"), 2), 0);
        assert_eq!(find_or_add(&mut templates, Some("aaa00000"), 3), 1);
        assert_eq!(find_or_add(&mut templates, Some("aa000000"), 4), 1);
        assert_eq!(find_or_add(&mut templates, None, 5), 2);
        assert_eq!(find_or_add(&mut templates, None, 5), 2);
    }

    #[test]
    fn the_number_of_templates_is_bounded() {
        let mut templates = Vec::new();
        for number in 0..1_000 {
            let sketch = format!("{:016x}", crate::hash(&format!("page {number}")));
            find_or_add(&mut templates, Some(&sketch), number);
        }
        assert_eq!(templates.len(), MOST_TEMPLATES + 1);
    }
}
