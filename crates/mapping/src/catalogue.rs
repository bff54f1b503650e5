//! The table of processors: their names, parameters and examples. The checks of mapping files, the JSON Schema and
//! the manual are all generated from it, so they cannot contradict each other.

use crate::entry::Entry;
use crate::fault::did_you_mean;
use crate::processors;

/// Every processor, in the order of the manual.
pub(crate) const ALL: &[&Entry] = &[
    &processors::select::XPATH,
    &processors::select::CSS,
    &processors::cell::CELL,
    &processors::regex::REGEX,
    &processors::json::JSONPATH,
    &processors::json_ld::JSON_LD,
    &processors::meta::META,
    &processors::text::TRIM,
    &processors::text::COLLAPSE_WHITESPACE,
    &processors::replace::REPLACE,
    &processors::text::LOWERCASE,
    &processors::text::UPPERCASE,
    &processors::text::PREFIX,
    &processors::text::SUFFIX,
    &processors::text::LENGTH_LIMIT,
    &processors::markup::HTML_TO_TEXT,
    &processors::markup::DECODE_ENTITIES,
    &processors::lookup::MAP,
    &processors::number::NUMBER,
    &processors::date::DATE,
    &processors::duration::DURATION,
    &processors::measure::MEASURE,
    &processors::url::URL,
    &processors::pagination::PAGINATION,
    &processors::list::SPLIT,
    &processors::list::JOIN,
    &processors::list::FIRST,
    &processors::list::LAST,
    &processors::list::NTH,
    &processors::list::UNIQUE,
    &processors::regex::FILTER,
    &processors::validate::VALIDATE,
    &processors::list::DEFAULT,
];

/// Returns the processor called `name`.
///
/// # Errors
///
/// A sentence that names the most similar processor.
pub(crate) fn find(name: &str) -> Result<&'static Entry, String> {
    ALL.iter()
        .find(|entry| entry.name == name)
        .copied()
        .ok_or_else(|| {
            let meant = did_you_mean(name, ALL.iter().map(|entry| entry.name));
            format!("unknown processor `{name}`{meant}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Example, Input};
    use crate::extraction::{PageInput, PageKind};
    use crate::item::Item;
    use crate::limits::Limits;
    use crate::page::Page;
    use crate::parameters::Parameters;
    use crate::reader::Reader;
    use crate::run::{Processor, Run};
    use crate::selectors::{CompiledSelectors, Selectors};
    use crate::source::Source;
    use webfill_urls::Url;

    #[test]
    fn names_are_unique_and_every_processor_has_an_example() {
        for (index, entry) in ALL.iter().enumerate() {
            assert!(!entry.examples.is_empty(), "{}", entry.name);
            let others = &ALL[index + 1..];
            assert!(others.iter().all(|other| other.name != entry.name));
        }
    }

    #[test]
    fn the_mapping_of_the_fuzz_targets_has_every_processor() {
        let mapping = include_str!("../../../tests/fuzz/src/everything.json");
        for entry in ALL {
            let used = format!("\"type\": \"{}\"", entry.name);
            assert!(
                mapping.contains(&used),
                "tests/fuzz/src/everything.json: no {}",
                entry.name
            );
        }
    }

    #[test]
    fn an_unknown_name_gets_the_most_similar_one() {
        let error = find("x-path").err().unwrap_or_default();
        assert_eq!(error, "unknown processor `x-path`, did you mean `xpath`?");
    }

    #[test]
    fn every_example_yields_its_output() {
        for entry in ALL {
            for example in entry.examples {
                let output = run_example(entry, example);
                assert_eq!(
                    output, example.output,
                    "{} {}",
                    entry.name, example.parameters
                );
            }
        }
    }

    fn run_example(entry: &'static Entry, example: &Example) -> Vec<String> {
        let mut selectors = Selectors::default();
        let processor = build_processor(entry, example.parameters, &mut selectors);
        let url = Url::parse("https://people.example/list/").unwrap();
        let (text, items) = match example.input {
            Input::Page(html) => (html, vec![Item::Page]),
            Input::Values(texts) => {
                let items = texts.iter().map(|text| Item::from((*text).to_owned()));
                ("", items.collect())
            }
        };
        let input = PageInput {
            url: &url,
            kind: PageKind::Html,
            text,
        };
        let limits = Limits::default();
        let compiled = CompiledSelectors::new(&selectors);
        let page = Page::new(input, &limits, None);
        let run = Run::new(&page, &compiled, &limits, None);
        let output = processor.apply(items, &run).unwrap();
        output
            .iter()
            .map(|item| run.text(item).into_owned())
            .collect()
    }

    fn build_processor(
        entry: &'static Entry,
        parameters: &str,
        selectors: &mut Selectors,
    ) -> Box<dyn Processor> {
        let source = Source {
            name: entry.name.to_owned(),
            text: parameters.to_owned(),
        };
        let (mut reader, value) = Reader::parse(&source).unwrap();
        let given = value.as_object().unwrap();
        let parameters = Parameters::read(entry, given, "", &mut reader);
        let parameters = parameters.unwrap_or_else(|| panic!("{:?}", reader.into_findings().0));
        let built = (entry.build)(&parameters, selectors);
        built.unwrap_or_else(|refusals| panic!("{}: {refusals:?}", entry.name))
    }
}
