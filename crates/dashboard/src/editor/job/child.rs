//! The child process of a job: reads an order and its pages from standard input, carries it out, writes the answer, and
//! ends.

use std::io::{self, BufRead, Read, Write};
use std::panic::{self, AssertUnwindSafe};

use serde_json::Value;
use webfill_mapping::{Metadatum, PageKind};
use webfill_urls::Url;

use super::page::Page;
use super::{
    Answer, MOST_BYTES, MOST_PAGES, Order, PageHead, Work, candidates, reading, repairing, rows,
};
use crate::editor::copy::{Bounds, Copy, copy, copy_of_text};

/// Finds the type and the text of a body, from its content type, the extension of its file name, and its content. The
/// error is a clause that says why mappings cannot read it.
pub type Decode =
    fn(body: &[u8], content_type: Option<&str>, ending: &str) -> Result<Decoded, String>;

/// A page as mappings read it.
#[derive(Debug)]
pub struct Decoded {
    pub kind: PageKind,
    pub text: String,
    /// The metadata of a document (PDF, ...).
    pub metadata: Option<Vec<Metadatum>>,
}

/// The longest order, in bytes. It is the first line of the input.
const MOST_ORDER_BYTES: u64 = 32 << 20;

/// Carries out the order that is read from standard input. The process must be confined before.
///
/// # Errors
///
/// The order cannot be read, or the answer cannot be written because the parent has ended.
pub fn run(decode: Decode) -> io::Result<()> {
    // Panics must print nothing. The parent finds out from the error output why this process has ended, and a page must
    // not influence that text.
    panic::set_hook(Box::new(|_| {}));
    let mut input = io::stdin().lock();
    let order = read_order(&mut input)?;
    let bodies = read_bodies(&order, &mut input)?;
    let doing = AssertUnwindSafe(|| run_order(order, bodies, decode));
    let answer = panic::catch_unwind(doing)
        .unwrap_or_else(|_| Answer::Refused("the page crashed its reader".to_owned()));
    let mut output = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut output, &answer)?;
    output.flush()
}

fn read_order(input: &mut impl BufRead) -> io::Result<Order> {
    let mut line = Vec::new();
    input.take(MOST_ORDER_BYTES).read_until(b'\n', &mut line)?;
    let order: Order = serde_json::from_slice(&line)?;
    let bytes: u64 = order.pages.iter().map(|page| page.bytes).sum();
    match order.pages.len() <= MOST_PAGES && bytes <= MOST_BYTES {
        true => Ok(order),
        false => Err(io::Error::other("too many pages, or too large")),
    }
}

fn read_bodies(order: &Order, input: &mut impl Read) -> io::Result<Vec<Vec<u8>>> {
    let read = |page: &PageHead| {
        let mut body = Vec::new();
        let read = input.by_ref().take(page.bytes).read_to_end(&mut body)?;
        match read as u64 == page.bytes {
            true => Ok(body),
            false => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    };
    order.pages.iter().map(read).collect()
}

fn run_order(order: Order, bodies: Vec<Vec<u8>>, decode: Decode) -> Answer {
    let mut pages = Vec::new();
    for (head, body) in order.pages.into_iter().zip(bodies) {
        match decode_page(head, &body, decode) {
            Ok(page) => pages.push(page),
            Err(why) => return Answer::Refused(why),
        }
    }
    match do_work(order.work, &pages) {
        Ok(done) => Answer::Done(done),
        Err(why) => Answer::Refused(why),
    }
}

fn decode_page(head: PageHead, body: &[u8], decode: Decode) -> Result<Page, String> {
    let url = Url::parse(&head.url).map_err(|error| format!("{}: {error}", head.url))?;
    let decoded = decode(body, head.content_type.as_deref(), &head.ending);
    let decoded = decoded.map_err(|why| format!("{}: {why}", head.url))?;
    Ok(Page {
        url,
        kind: decoded.kind,
        text: decoded.text,
        metadata: decoded.metadata,
        head,
    })
}

fn do_work(work: Work, pages: &[Page]) -> Result<Value, String> {
    let only = || pages.first().ok_or_else(|| "no page".to_owned());
    match work {
        Work::Copy => Ok(copy_as_json(only()?)),
        Work::Read {
            sources,
            mapping,
            is_whole,
        } => reading::read_pages(sources, &mapping, is_whole, pages),
        Work::Trace { sources, mapping } => reading::trace(sources, &mapping, only()?),
        Work::Candidates { field, said } => candidates::find_candidates(&field, &said, pages),
        Work::Learn { name, said } => candidates::learn_all_fields(&name, &said, pages),
        Work::Rows {
            name,
            dataset,
            said,
        } => rows::find_rows(&name, &dataset, &said, pages),
        Work::Repair { mapping } => repairing::repair(&mapping, pages),
    }
}

fn copy_as_json(page: &Page) -> Value {
    let Copy {
        html,
        elements,
        is_cut,
    } = match page.kind {
        PageKind::Html | PageKind::Xml => {
            let document = page.document();
            let mut made = copy(&document, Bounds::default());
            made.is_cut |= document.truncation().is_some();
            made
        }
        PageKind::Json | PageKind::Text => copy_of_text(&page.text, Bounds::default()),
    };
    serde_json::json!({"html": html, "elements": elements, "is_cut": is_cut})
}
