//! Finds parallel lists that should be rows, such as `names` and `scores`, each read separately from the same entries
//! of a page. If an entry lacks one of the values, all later values shift.

mod pieces;
mod way;

use serde_json::{Value, json};

use self::way::{ChainPath, Language, Piece, select_processors};
use crate::mapping::{Field, Mapping};
use crate::set::{MappingIndex, MappingSet};

/// Fields of a mapping that should be read as rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelLists {
    pub fields: Vec<String>,
    /// The `rows` rule that reads the fields entry by entry. It replaces the fields in the mapping.
    pub rewrite: Value,
}

impl MappingSet {
    /// Finds fields of a mapping that are parallel lists: their chains lead to the same entries of a page.
    pub fn parallel_lists(&self, index: MappingIndex) -> Vec<ParallelLists> {
        let mapping = self.mapping(index);
        let mut open = collect_lists(mapping);
        let mut found = Vec::new();
        found.extend(find_definitions(mapping, &mut open));
        while let Some(prefix) = common_entries(&open) {
            let (within, others) = open
                .into_iter()
                .partition(|(_, way)| way.begins_with(&prefix));
            open = others;
            found.push(rewrite_as_rows(mapping, &prefix, &within));
        }
        found
    }

    /// The names of the list fields where empty values do not keep their positions, so that the values may shift.
    pub fn lists_without_positions(&self, index: MappingIndex) -> Vec<&str> {
        let fields = self.mapping(index).fields.iter();
        let lists = fields.filter(|field| is_list(field));
        lists.map(|field| field.name.as_str()).collect()
    }

    /// Builds the row rule that reads these fields of a mapping in each element that the XPath `entries` selects.
    /// `None` if the chains of the fields do not work within an element.
    pub fn rows_rule(
        &self,
        index: MappingIndex,
        entries: &str,
        names: &[String],
    ) -> Option<ParallelLists> {
        let mapping = self.mapping(index);
        let fields = names.iter().map(|name| {
            let field = mapping.fields.iter().find(|field| field.name == *name)?;
            let way = ChainPath::from_chain(field.alternatives.first()?)?;
            Some(json!({"name": name, "processors": way.processors_in_row()?}))
        });
        let fields: Option<Vec<Value>> = fields.collect();
        let select = json!([{"type": "xpath", "parameters": {"expression": entries}}]);
        Some(ParallelLists {
            fields: names.to_vec(),
            rewrite: build_rule(mapping, select, fields?),
        })
    }
}

fn is_list(field: &Field) -> bool {
    field.multiple && !field.keep_empty
}

type List<'m> = (&'m Field, ChainPath);

fn collect_lists(mapping: &Mapping) -> Vec<List<'_>> {
    let fields = mapping.fields.iter().filter(|field| is_list(field));
    let with_way = fields
        .filter_map(|field| Some((field, ChainPath::from_chain(field.alternatives.first()?)?)));
    with_way.collect()
}

/// The path to the entries that most lists have in common. Of several such paths, the longest.
fn common_entries(lists: &[List<'_>]) -> Option<Vec<Piece>> {
    let prefixes = lists
        .iter()
        .flat_map(|(_, way)| (1..=way.pieces.len()).map(|count| &way.pieces[..count]));
    let counted = prefixes.filter_map(|prefix| {
        let within: Vec<&ChainPath> = lists
            .iter()
            .map(|(_, way)| way)
            .filter(|way| way.begins_with(prefix))
            .collect();
        let can_be_cut = within.iter().all(|way| {
            let next = way.pieces.get(prefix.len());
            next.is_none_or(|next| !matches!(next.joint, "+" | "~"))
        });
        let are_rows =
            can_be_cut && (selects_entries(prefix, &within) || have_same_elements(prefix, &within));
        are_rows.then_some((within.len(), prefix.len(), prefix))
    });
    let best = counted.max_by_key(|(count, length, _)| (*count, *length));
    best.map(|(_, _, prefix)| prefix.to_vec())
}

/// Whether a prefix selects entries of a list, and enough of the paths below it read one value of each entry.
fn selects_entries(prefix: &[Piece], within: &[&ChainPath]) -> bool {
    let Some(last) = prefix.last().filter(|last| last.repeats()) else {
        return false;
    };
    let lists = within
        .iter()
        .filter(|way| way.is_list_below(prefix))
        .count();
    let needed = match last.language {
        // In JSON, a list is certainly a list, so a single value of each entry is enough evidence.
        Language::JsonPath => 1,
        _ => 2,
    };
    within.len() >= 2 && within.len() - lists >= needed
}

/// Whether several paths read different things, such as text and an attribute, from the same elements.
fn have_same_elements(prefix: &[Piece], within: &[&ChainPath]) -> bool {
    let is_single = |piece: &Piece| piece.language == Language::JsonPath;
    let same = within
        .iter()
        .filter(|way| way.pieces.len() == prefix.len())
        .count();
    same >= 2 && !prefix.last().is_none_or(is_single)
}

fn rewrite_as_rows(mapping: &Mapping, prefix: &[Piece], within: &[List<'_>]) -> ParallelLists {
    let fields = within.iter().map(|(field, way)| {
        let mut rewritten = json!({"name": field.name});
        if way.is_list_below(prefix) {
            rewritten["multiple"] = Value::Bool(true);
        }
        let chains = field.alternatives.iter().filter_map(ChainPath::from_chain);
        let chains = chains.filter(|way| way.begins_with(prefix));
        let mut chains: Vec<Value> = chains
            .map(|way| Value::from(way.processors_below(prefix)))
            .collect();
        match chains.len() {
            1 => rewritten["processors"] = chains.remove(0),
            _ => rewritten["alternatives"] = Value::from(chains),
        }
        rewritten
    });
    ParallelLists {
        fields: within.iter().map(|(field, _)| field.name.clone()).collect(),
        rewrite: build_rule(
            mapping,
            Value::from(select_processors(prefix)),
            fields.collect(),
        ),
    }
}

/// Finds lists of terms (`dt`) and their descriptions (`dd`). These are siblings, not parts of a common entry.
fn find_definitions(mapping: &Mapping, lists: &mut Vec<List<'_>>) -> Option<ParallelLists> {
    let ends_in = |way: &ChainPath, tag: &str| way.pieces.last().and_then(Piece::tag) == Some(tag);
    let before = |way: &ChainPath| way.pieces[..way.pieces.len() - 1].to_vec();
    let term = lists.iter().position(|(_, way)| ends_in(way, "dt"))?;
    let meant = before(&lists[term].1);
    let is_description = |(_, way): &List<'_>| ends_in(way, "dd") && before(way) == meant;
    let description = lists.iter().position(is_description)?;
    let entries = lists[term].1.pieces.clone();
    let own =
        json!({"name": lists[term].0.name, "processors": lists[term].1.processors_below(&entries)});
    let mut chain =
        vec![json!({"type": "xpath", "parameters": {"expression": "following-sibling::dd[1]"}})];
    let description_way = &lists[description].1;
    chain.extend(description_way.processors_below(&description_way.pieces));
    let other = json!({"name": lists[description].0.name, "processors": chain});
    let fields = [term, description].map(|at| lists[at].0.name.clone());
    lists.retain(|(field, _)| !fields.contains(&field.name));
    Some(ParallelLists {
        fields: fields.to_vec(),
        rewrite: build_rule(
            mapping,
            Value::from(select_processors(&entries)),
            vec![own, other],
        ),
    })
}

fn build_rule(mapping: &Mapping, select: Value, fields: Vec<Value>) -> Value {
    let names: Vec<&str> = fields
        .iter()
        .filter(|field| field["multiple"] != true)
        .filter_map(|field| field["name"].as_str())
        .collect();
    let key = likeliest_key(&names).or(names.first().copied());
    json!({
        "rows": {
            "dataset": mapping.name,
            "select": select,
            "fields": fields,
            "key": key.into_iter().collect::<Vec<_>>(),
        }
    })
}

/// The field that most likely identifies an entry, as its name suggests.
fn likeliest_key<'n>(names: &[&'n str]) -> Option<&'n str> {
    const NAMES_OF_KEYS: [&str; 10] = [
        "id", "url", "link", "href", "sku", "isbn", "code", "item", "name", "title",
    ];
    let is_called = |name: &str, word: &str| {
        name.split('_')
            .any(|part| part == word || part.strip_suffix('s') == Some(word))
    };
    NAMES_OF_KEYS
        .iter()
        .find_map(|word| names.iter().find(|name| is_called(name, word)))
        .copied()
}
