use std::sync::Arc;
use std::time::Instant;
use webfill_mapping::*;
fn main() {
    let set = Arc::new(MappingSet::load_dir(std::path::Path::new("etl-mappings")).unwrap());
    let engine = Engine::new(set.clone(), Limits::default());
    for (dir, base) in [
        (
            "/usr/share/doc/python3-doc/html/library",
            "https://docs.python.org/3/library/",
        ),
        (
            "/usr/share/doc/postgresql-doc-15/html",
            "https://www.postgresql.org/docs/15/",
        ),
        (
            "/usr/share/doc/sqlite3/c3ref",
            "https://www.sqlite.org/c3ref/",
        ),
    ] {
        let mut pages = vec![];
        for e in std::fs::read_dir(dir).unwrap() {
            let p = e.unwrap().path();
            if p.extension().is_some_and(|x| x == "html") {
                pages.push((
                    webfill_urls::Url::parse(&format!(
                        "{base}{}",
                        p.file_name().unwrap().to_str().unwrap()
                    ))
                    .unwrap(),
                    String::from_utf8_lossy(&std::fs::read(p).unwrap()).into_owned(),
                ));
            }
        }
        let bytes: usize = pages.iter().map(|p| p.1.len()).sum();
        for round in 0..2 {
            let mut t = [0.0f64; 5];
            for (url, text) in &pages {
                let page = PageInput {
                    url,
                    kind: PageKind::Html,
                    text,
                };
                let s = Instant::now();
                let e = engine
                    .extract(
                        page,
                        Wants {
                            mapped_links: true,
                            ..Wants::default()
                        },
                    )
                    .unwrap();
                if e.mapping.is_some() {
                    t[0] += s.elapsed().as_secs_f64();
                    t[4] += 1.0;
                }
                let s = Instant::now();
                let e = engine
                    .extract_as(
                        None,
                        page,
                        Wants {
                            all_links: true,
                            ..Wants::default()
                        },
                    )
                    .unwrap();
                t[1] += s.elapsed().as_secs_f64();
                std::hint::black_box(&e);
                let s = Instant::now();
                let d = webfill_document::Document::parse_html(
                    text,
                    &webfill_document::Limits::default(),
                );
                t[2] += s.elapsed().as_secs_f64();
                let s = Instant::now();
                std::hint::black_box(d.links().count());
                t[3] += s.elapsed().as_secs_f64();
            }
            if round == 1 {
                let n = pages.len() as f64;
                println!(
                    "{dir}: {} pages mean {:.0} KB: mapped {:.3} ms ({}), links only {:.3} ms, dom {:.3} ms, dom links {:.4}",
                    n,
                    bytes as f64 / n / 1024.,
                    t[0] * 1e3 / t[4],
                    t[4],
                    t[1] * 1e3 / n,
                    t[2] * 1e3 / n,
                    t[3] * 1e3 / n
                );
            }
        }
    }
}
