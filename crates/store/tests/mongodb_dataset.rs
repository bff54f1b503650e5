//! Datasets: a user's collections, read in order from any document on, and written to.

use mongodb::bson::{Bson, DateTime, Document, doc, oid::ObjectId};
use mongodb::{Client, Database};
use webfill_store::{
    Dataset, DatasetDocument, DatasetSource, MongoUri, StoreError, StoreUri, WriteBack,
};
use webfill_test_mongod::{Mongod, fresh_database};
use webfill_test_needs::needs;

/// A database on a test server, with a collection `people`.
struct People {
    uri: MongoUri,
    database: Database,
    _kept: webfill_test_mongod::Database,
}

impl People {
    async fn with_documents(documents: Vec<Document>) -> People {
        let kept = fresh_database();
        let client = Client::with_uri_str(kept.uri()).await.unwrap();
        let database = client.default_database().unwrap();
        let people = database.collection("people");
        people.insert_many(documents).await.unwrap();
        let Ok(StoreUri::MongoDb(uri)) = kept.uri().parse() else {
            panic!("a test server has an address of MongoDB");
        };
        People {
            uri,
            database,
            _kept: kept,
        }
    }

    fn source(&self) -> DatasetSource {
        DatasetSource::new(self.uri.clone(), "people").unwrap()
    }
}

/// Reads the collection to its end, on a thread that may block.
async fn read(dataset: &Dataset, after: Option<&str>) -> Vec<Vec<DatasetDocument>> {
    let documents = dataset.read(after).unwrap();
    let reading = tokio::task::spawn_blocking(|| documents.collect::<Result<Vec<_>, StoreError>>());
    reading.await.unwrap().unwrap()
}

fn ids(chunks: &[Vec<DatasetDocument>]) -> Vec<String> {
    let documents = chunks.iter().flatten();
    documents.map(|document| document.id.clone()).collect()
}

#[needs(mongod)]
#[tokio::test]
async fn reading_continues_after_any_document_whatever_the_type_of_its_id() {
    let oid: ObjectId = "0123456789abcdef01234567".parse().unwrap();
    let mut all: Vec<Bson> = (0..600).map(Bson::from).collect();
    all.extend([
        Bson::Null,
        Bson::Double(1.5),
        Bson::Int64(1 << 40),
        Bson::Boolean(true),
    ]);
    all.extend([
        Bson::from(""),
        Bson::from("$_id"),
        Bson::from("x\0y"),
        Bson::ObjectId(oid),
    ]);
    all.extend([
        Bson::Document(doc! {"a": 1}),
        Bson::DateTime(DateTime::from_millis(7)),
    ]);
    let documents = all.iter().map(|id| doc! {"_id": id.clone()}).collect();
    let people = People::with_documents(documents).await;
    let dataset = Dataset::open(people.source()).await.unwrap();
    let chunks = read(&dataset, None).await;
    assert!(chunks.len() > 1, "they come in chunks");
    let read_ids = ids(&chunks);
    assert_eq!(read_ids.len(), all.len());
    for place in (0..all.len()).filter(|place| *place % 97 == 0 || *place > 598) {
        let rest = ids(&read(&dataset, Some(&read_ids[place])).await);
        assert_eq!(rest, read_ids[place + 1..], "behind {}", read_ids[place]);
    }
}

#[needs(mongod)]
#[tokio::test]
async fn a_server_that_goes_away_in_the_middle_is_waited_for() {
    let mut mongod = Mongod::start();
    let uri = mongod.uri("people") + "&serverSelectionTimeoutMS=300";
    let client = Client::with_uri_str(&uri).await.unwrap();
    let people = client.database("people").collection("people");
    let documents = (0..5_000).map(|id| doc! {"_id": id});
    people.insert_many(documents).await.unwrap();
    let Ok(StoreUri::MongoDb(uri)) = uri.parse() else {
        panic!("a test server has an address of MongoDB");
    };
    let source = DatasetSource::new(uri, "people").unwrap();
    let dataset = Dataset::open(source).await.unwrap();
    let mut documents = dataset.read(None).unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        let first = documents.next().unwrap().unwrap();
        mongod.kill();
        mongod.restart();
        let rest: Result<Vec<_>, StoreError> = documents.collect();
        [vec![first], rest.unwrap()].concat()
    });
    let read = ids(&reading.await.unwrap());
    let expected = (0..5_000).map(|id| format!(r#"{{"$numberInt":"{id}"}}"#));
    assert!(read.into_iter().eq(expected), "each once, in order");
}

#[needs(mongod)]
#[tokio::test]
async fn continuing_after_a_document_uses_the_index_of_ids() {
    let documents = (0..2_000).map(|id| doc! {"_id": id, "even": id % 2 == 0});
    let people = People::with_documents(documents.collect()).await;
    let source = people.source().with_query(r#"{"even": true}"#).unwrap();
    let dataset = Dataset::open(source).await.unwrap();
    people
        .database
        .run_command(doc! {"profile": 2})
        .await
        .unwrap();
    let rest = read(&dataset, Some(r#"{"$numberInt": "1899"}"#)).await;
    assert_eq!(rest.concat().len(), 50);
    let profile = people.database.collection::<Document>("system.profile");
    let of_find = doc! {"command.find": "people"};
    let found = profile.find_one(of_find).await.unwrap().unwrap();
    assert_eq!(found.get_i32("docsExamined").ok(), Some(100), "{found}");
}

#[needs(mongod)]
#[tokio::test]
async fn a_chunk_of_large_documents_holds_few_of_them() {
    let notes = "x".repeat(1 << 20);
    let documents = (0..20).map(|id| doc! {"_id": id, "notes": &*notes});
    let people = People::with_documents(documents.collect()).await;
    let dataset = Dataset::open(people.source()).await.unwrap();
    let chunks = read(&dataset, None).await;
    assert!(chunks.iter().all(|chunk| chunk.len() <= 5), "of 1 MB each");
    assert_eq!(ids(&chunks).len(), 20);
}

#[needs(mongod)]
#[tokio::test]
async fn projected_fields_that_a_document_lacks_are_null() {
    let people = People::with_documents(vec![doc! {"_id": 1, "a": {"b": 2}, "c": 3}]).await;
    let projection = r#"{"name": "$a.b", "city": 1, "links": ["$a.b", "$x"]}"#;
    let source = people.source().with_projection(projection).unwrap();
    let dataset = Dataset::open(source).await.unwrap();
    let read = read(&dataset, None).await.concat();
    let expected = serde_json::json!({"name": 2, "links": [2, null], "city": null});
    assert_eq!(serde_json::json!(read[0].members), expected);
    assert_eq!(read[0].record, "1");
}

#[needs(mongod)]
#[tokio::test]
async fn an_unreadable_or_unwritable_collection_is_refused_when_opened() {
    let people = People::with_documents(vec![doc! {"_id": 1}]).await;
    let refusal = async |source: DatasetSource| match Dataset::open(source).await {
        Err(error) if error.is_fatal() => error.to_string(),
        Err(error) => panic!("not fatal: {error}"),
        Ok(_) => panic!("it was opened"),
    };
    let elsewhere = DatasetSource::new(people.uri.clone(), "persons").unwrap();
    assert!(refusal(elsewhere).await.contains("no such collection"));
    let query = people.source().with_query(r#"{"$nonsense": 1}"#).unwrap();
    assert!(refusal(query).await.contains("$nonsense"));
    let dataset = Dataset::open(people.source()).await.unwrap();
    let view = doc! {"create": "seen", "viewOn": "people", "pipeline": []};
    people.database.run_command(view).await.unwrap();
    let seen = WriteBack::new("seen").unwrap();
    let refused = dataset.check_writable(&seen).await.unwrap_err();
    assert!(refused.is_fatal(), "{refused}");
    let people_too = WriteBack::new("people").unwrap();
    dataset.check_writable(&people_too).await.unwrap();
}
