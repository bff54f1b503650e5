//! `url`: makes links absolute and canonical.

use crate::entry::{Entry, Example, Family, Input};
use crate::item::Item;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const URL: Entry = Entry {
    name: "url",
    family: Family::Convert,
    summary: "Converts every value to an absolute, canonical URL, as for a link on the page; values that are not http or https URLs are dropped. url_parsers do this by themselves at their end.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&[
            "../ada#works",
            "HTTP://ADA.example:80",
            "mailto:ada@ada.example",
        ]),
        output: &["https://people.example/ada", "http://ada.example/"],
    }],
    build: |_, _| Ok(Box::new(AbsoluteUrl)),
};

struct AbsoluteUrl;

impl Processor for AbsoluteUrl {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let base = run.page.base();
        run.map_texts(items, |text| {
            run.page
                .resolve_link(webfill_values::trim(text), base)
                .ok()
                .map(|url| url.to_string())
        })
    }
}
