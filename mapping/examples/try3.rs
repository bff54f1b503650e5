use webfill_mapping::*;
use std::time::Instant;
fn main() {
    let which: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let list: Vec<String> = (0..500).filter(|n| which.contains(&(n % 10))).map(|number| {
        let (kind, text) = match number % 10 {
            0 => ("regex", format!(r"^https?://[^/]+/path{number}/(?!edit)\w+")),
            1 => ("regex", format!(r"/[a-z]{{2}}/{number}\d+$")),
            2 => ("host", format!("*.site{number}.example")),
            3 => ("glob", format!("https://site{number}.example/p/*.html")),
            _ => ("regex", format!(r"^https?://(?:www\.)?site{number}\.example/\w+/?$")),
        };
        serde_json::json!({"name": format!("m{number}"), "url_patterns": [{"type": kind, "pattern": text}]}).to_string()
    }).collect();
    let set = MappingSet::from_sources(vec![Source { name: "x".into(), text: format!("[{}]", list.join(",")) }]).unwrap();
    let urls: Vec<String> = (0..1000).map(|number| format!("https://www.site{number}.example/profile{number}/")).collect();
    for _ in 0..3 {
        let s = Instant::now(); let mut f = 0;
        for _ in 0..20 { for u in &urls { f += usize::from(set.find(u).is_some()); } }
        println!("{:?} {} ns", which, s.elapsed().as_nanos() / 20_000); std::hint::black_box(f);
    }
}
