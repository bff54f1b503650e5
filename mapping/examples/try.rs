use std::sync::Arc;
use webfill_mapping::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let set = MappingSet::load_dir(std::path::Path::new(&args[1])).unwrap_or_else(|e| {
        eprintln!("{e}");
        std::process::exit(2)
    });
    let engine = Engine::new(Arc::new(set), Limits::default());
    for pair in args[3..].chunks(2) {
        let url = webfill_urls::Url::parse(&pair[0]).unwrap();
        let bytes = std::fs::read(&pair[1]).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let page = PageInput {
            url: &url,
            kind: PageKind::Html,
            text: &text,
        };
        if args[2] == "trace" {
            println!(
                "{}",
                serde_json::to_string_pretty(&engine.trace(None, page)).unwrap()
            );
        } else {
            let e = engine
                .extract(
                    page,
                    Wants {
                        mapped_links: true,
                        ..Wants::default()
                    },
                )
                .unwrap();
            println!("{}", serde_json::to_string_pretty(&e).unwrap());
        }
    }
}
