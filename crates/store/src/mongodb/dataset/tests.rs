use super::reading::record_id;
use super::*;
use crate::StoreUri;

fn source() -> DatasetSource {
    let StoreUri::MongoDb(uri) = "mongodb://me:secret@db/people".parse().unwrap() else {
        panic!("it is one of MongoDB");
    };
    DatasetSource::new(uri, "members").unwrap()
}

#[test]
fn texts_that_are_no_object_of_extended_json_are_refused_with_the_reason() {
    for (text, reason) in [
        ("{name: 1}", "no JSON"),
        ("", "no JSON"),
        ("[]", "no JSON object"),
        ("null", "no JSON object"),
        (r#"{"_id": {"$oid": "42"}}"#, "no extended JSON"),
    ] {
        let refusal = source().with_query(text).unwrap_err();
        assert!(refusal.contains(reason), "{text}: {refusal}");
        let refusal = source().with_projection(text).unwrap_err();
        assert!(refusal.contains(reason), "{text}: {refusal}");
    }
    let typed = source().with_query(r#"{"at": {"$gt": {"$date": "2026-01-01T00:00:00Z"}}}"#);
    assert!(typed.is_ok());
}

#[test]
fn a_projection_leaves_the_id_alone() {
    for changed in [r#"{"_id": 0}"#, r#"{"_id": false}"#, r#"{"_id": "$x"}"#] {
        let refusal = source().with_projection(changed).unwrap_err();
        assert!(refusal.contains("`_id`"), "{changed}: {refusal}");
    }
    assert!(source().with_projection(r#"{"_id": 1, "name": 1}"#).is_ok());
}

#[test]
fn the_members_of_a_projection_are_known_by_name() {
    let names = |projection| {
        source()
            .with_projection(projection)
            .unwrap()
            .projected_members()
    };
    let computed = r#"{"_id": 1, "urls": ["$a", "$b"], "name": "$person.name", "address.city": 1,
        "address.street": true}"#;
    assert_eq!(names(computed), ["urls", "name", "address"]);
    assert!(names(r#"{"notes": 0, "photo": false}"#).is_empty());
    assert!(source().projected_members().is_empty());
}

#[test]
fn nothing_secret_identifies_an_input_but_every_part_of_it() {
    let plain = source().identity();
    assert!(!plain.contains("secret"), "{plain}");
    let of_query = source().with_query(r#"{"a": 1}"#).unwrap().identity();
    let of_projection = source().with_projection(r#"{"a": 1}"#).unwrap().identity();
    assert!(plain != of_query && plain != of_projection && of_query != of_projection);
}

#[test]
fn names_that_no_collection_can_have_are_refused() {
    for name in ["", "system.users", "a$b", "nul\0"] {
        assert!(WriteBack::new(name).is_err(), "{name}");
    }
    assert!(WriteBack::new("people.2026").is_ok());
}

#[test]
fn ids_of_every_type_are_texts_and_come_back_with_their_type() {
    let hex = "0123456789abcdef01234567";
    for (id, record) in [
        (Bson::from("a \"b\""), "a \"b\""),
        (Bson::ObjectId(hex.parse().unwrap()), hex),
        (Bson::Int32(-7), "-7"),
        (Bson::Int64(7_000_000_000), "7000000000"),
        (Bson::Double(1.5), r#"{"$numberDouble":"1.5"}"#),
        (Bson::Document(doc! {"a": 1}), r#"{"a":{"$numberInt":"1"}}"#),
    ] {
        assert_eq!(record_id(&id), record);
        let written = id.clone().into_canonical_extjson().to_string();
        assert_eq!(parse_document_id(&written).unwrap(), id);
    }
}
