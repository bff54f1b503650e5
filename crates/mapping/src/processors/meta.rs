//! `meta`: selects metadata from the head of a page, or from a document.

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::item::Item;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const META: Entry = Entry {
    name: "meta",
    family: Family::Find,
    summary: "Yields the content of the page's meta elements of a name: OpenGraph (og:title), Twitter (twitter:creator), or plain (description). The name may be in name, property, itemprop or http-equiv. Of a document (PDF, DOCX, ...) it yields title, author, created, modified or pages.",
    parameters: &[Parameter {
        name: "name",
        kind: Kind::Text,
        presence: Presence::Required,
        meaning: "the name; case does not matter",
    }],
    examples: &[Example {
        parameters: r#"{"name": "og:title"}"#,
        input: Input::Page(
            r#"<meta property="og:title" content="Ada Lovelace"><meta name="author" content="X">"#,
        ),
        output: &["Ada Lovelace"],
    }],
    build: |parameters, _| {
        let name = parameters.text("name").trim().to_owned();
        match name.is_empty() {
            true => Err(refusal("name", "the name is empty")),
            false => Ok(Box::new(Meta(name))),
        }
    },
};

struct Meta(String);

impl Processor for Meta {
    fn apply<'p>(&self, _: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        if let Some(metadata) = run.page.metadata() {
            let named = metadata
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(&self.0));
            if let Some((_, value)) = named {
                output.push_str(value);
            }
            return output.finish();
        }
        if let Some(document) = run.page.document_or_warn(run) {
            for content in document.meta(&self.0) {
                if !output.push_str(content) {
                    break;
                }
            }
        }
        output.finish()
    }
}
