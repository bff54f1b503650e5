//! Applications and operators hear of a mapping that begins to rot.

use serde_json::Value;
use webfill_tests::site::page;

use crate::fleet::{Fleet, request};

#[test]
fn a_changed_layout_is_published_once_and_stands_in_the_status() {
    let fleet = Fleet::start();
    let site = fleet.web.site("shop.example");
    site.otherwise(|request| {
        let number: usize = request.path.trim_start_matches('/').parse().unwrap_or(0);
        let page = page(&format!("Thing {number}"));
        match number < 120 {
            true => page.field("name", &format!("Name {number}")).into(),
            false => page
                .html(format!("<table><tr><td>Name {number}</table>"))
                .into(),
        }
    });
    fleet
        .run(&["site", "shop.example", "--delay", "0"])
        .expect(0);
    let firehose = fleet.firehose("outbound.testapp");
    let requests = |numbers: std::ops::Range<usize>| -> Vec<Value> {
        let url = |number| format!("http://shop.example/{number}");
        numbers
            .map(|number| request(&url(number), "shop"))
            .collect()
    };
    fleet.feed(&requests(0..160));
    let notice = firehose.wait_for(|message| message["action"] == "layout_changed");
    assert_eq!(
        (&notice["mapping"], &notice["appid"], &notice["crawlid"]),
        (&"profile".into(), &"testapp".into(), &"shop".into()),
        "{notice}"
    );
    assert_eq!(notice["fields"][0]["field"], "name");
    assert_eq!(notice["urls_after"].as_array().map(Vec::len), Some(3));
    let status = fleet.run(&["status", "--json"]).expect(0).stdout;
    let status: Value = serde_json::from_str(&status).expect("an object");
    assert_eq!(status["alarms"][0]["mapping"], "profile", "{status}");
    assert_eq!(status["alarms"][0]["fields"], "name");
    let told = fleet.run(&["status"]).expect(0).stdout;
    assert!(told.contains("alarms\nmapping  layout changed"), "{told}");
}
