use webfill_wire::*;
use webfill_wire::codec::encode;
fn w(n:&str,k:u8,frame:Vec<u8>){ let d=concat!(env!("CARGO_MANIFEST_DIR"),"/corpus/wire/"); std::fs::create_dir_all(d).unwrap(); let mut b=vec![k]; b.extend(&frame[1..]); std::fs::write(format!("{d}{n}"),b).unwrap(); }
#[test] fn make(){
 use serde_json::{json,from_value};
 let task=json!({"task":u64::MAX,"attempt":3,"crawl":1,"url":"https://example.com/ada","site":"example.com","depth":1,"wait_ms":15000,"last_request_ago_ms":5,"parent":"https://example.com/","records":["42","é"]});
 let crawl=json!({"key":1,"app_id":"a","crawl_id":"c","max_depth":1,"follow":"all","useragent":"x","attrs":"{}"});
 let done=json!({"task":1,"attempt":1,"outcome":"ok","status_code":200,"body_bytes":77,"fields":2,"links":["/a","http://b/"],"redirect":"/x","resolved":["42"],"clock":{"next_in_ms":5,"delay_ms":15000}});
 let returned=json!({"task":1,"attempt":1,"cause":"WorkerDied","clock":{"next_in_ms":5,"delay_ms":null}});
 let d=|n:&str,v:serde_json::Value|{ let m:DispatcherToSupervisor=from_value(v).unwrap(); w(n,1,encode(&m)); };
 d("tasks",json!({"Tasks":{"session":1,"number":7,"crawls":[crawl],"tasks":[task,task]}}));
 d("welcome",json!({"Welcome":{"session":1,"heard_ms":9,"lease_ms":30000,"mappings":[{"name":"m.json","text":"{}"}]}}));
 d("heard",json!({"Heartbeat":{"session":1,"heard_ms":1}}));
 d("drain",json!("Drain"));
 let u=|n:&str,v:serde_json::Value|{ let m:SupervisorToDispatcher=from_value(v).unwrap(); w(n,0,encode(&m)); };
 u("credit",json!({"Credit":{"session":1,"credit":{"tasks":1,"url_bytes":2}}}));
 u("goodbye",json!({"Goodbye":{"session":1,"outcomes_sent":3}}));
 u("heartbeat",json!({"Heartbeat":{"session":1,"sent_ms":2,"credit":{"tasks":1,"url_bytes":2},"received":4,"outcomes_sent":5}}));
 let m:SupervisorOutcomes=from_value(json!({"supervisor":"s","session":1,"number":2,"done":[done],"returned":[returned]})).unwrap(); w("outcomes",2,encode(&m));
 let s=|n:&str,v:serde_json::Value|{ let m:SupervisorToWorker=from_value(v).unwrap(); w(n,3,encode(&m)); };
 s("worker_tasks",json!({"Tasks":[task]})); s("worker_crawl",json!({"Crawl":crawl})); s("worker_inherited",json!({"Inherited":{"sites":["a.example"]}})); s("worker_recall",json!("Recall")); s("worker_lease",json!({"LeaseUntil":{"boot_ms":5}}));
 let m:WorkerToSupervisor=from_value(json!({"slot":1,"incarnation":2,"done":[done,done],"returned":[returned],"ready":true})).unwrap(); w("worker_says",4,encode(&m));
 w("huge_list",2,vec![2,1,b's',1,2,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0x7f]);
 w("huge_text",3,vec![2,1,0xff,0xff,0xff,0xff,0x0f]);
}
