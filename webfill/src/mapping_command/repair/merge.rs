//! Makes the repaired mapping: the former mapping, with new chains for the repaired fields.

use serde_json::{Map, Value, json};

/// The chains of a field (sequences of processors that each try to read its value), in the order they are tried in.
pub fn chains_of(field: &Value) -> Vec<Value> {
    match (field.get("processors"), field.get("alternatives")) {
        (Some(chain), _) => vec![chain.clone()],
        (None, Some(Value::Array(chains))) => chains.clone(),
        _ => Vec::new(),
    }
}

/// Replaces the chains of a field; everything else in the mapping stays.
pub fn set_chains(mapping: &mut Value, field: &str, chains: Vec<Value>) {
    let fields = mapping["fields"].as_array_mut().into_iter().flatten();
    for member in fields.filter(|member| member["name"] == field) {
        let Some(former) = member.as_object() else {
            continue;
        };
        let mut changed = Map::new();
        for (key, value) in former {
            match key.as_str() {
                "processors" | "alternatives" => match chains.as_slice() {
                    [only] => changed.insert("processors".to_owned(), only.clone()),
                    several => changed.insert("alternatives".to_owned(), json!(several)),
                },
                _ => changed.insert(key.clone(), value.clone()),
            };
        }
        *member = Value::Object(changed);
    }
}

/// Finds a mapping by its name in the content of a mapping file, which is one mapping or a list of mappings.
pub fn find_mapping<'f>(file: &'f mut Value, name: &str) -> Option<&'f mut Value> {
    match file {
        Value::Array(mappings) => mappings.iter_mut().find(|mapping| mapping["name"] == name),
        mapping => (mapping["name"] == name).then_some(mapping),
    }
}

/// Concatenates two lists of chains, without duplicates.
pub fn join_chains(first: &[Value], then: &[Value]) -> Vec<Value> {
    let mut chains: Vec<Value> = Vec::new();
    for chain in first.iter().chain(then) {
        if !chains.contains(chain) {
            chains.push(chain.clone());
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_chains_of_a_field_change() {
        let old = json!([{"type": "xpath", "parameters": {"expression": "//old"}}]);
        let new = json!([{"type": "xpath", "parameters": {"expression": "//new"}}]);
        let mut mapping = json!({"name": "shop", "fields": [
            {"name": "price", "description": "of one", "processors": old},
            {"name": "name", "processors": old},
        ]});
        let former = chains_of(&mapping["fields"][0]);
        let chains = join_chains(std::slice::from_ref(&new), &former);
        set_chains(&mut mapping, "price", chains);
        let expected =
            json!({"name": "price", "description": "of one", "alternatives": [new, old]});
        assert_eq!(mapping["fields"][0], expected);
        assert_eq!(mapping["fields"][1]["processors"], old);
        set_chains(&mut mapping, "price", vec![new.clone()]);
        assert_eq!(mapping["fields"][0]["processors"], new);
        assert!(mapping["fields"][0].get("alternatives").is_none());
    }
}
