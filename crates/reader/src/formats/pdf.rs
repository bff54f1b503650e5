//! Reads PDFs with `pdf-extract` and its parser. The document is read in one go, because `pdf-extract` walks through
//! all pages for each page that is requested. If it panics on a page, the remaining pages are read one by one. The
//! number of pages that could not be read is reported.

use std::panic::{self, AssertUnwindSafe};

use pdf_extract::xref::XrefEntry;
use pdf_extract::{Dictionary, Document, Object, Stream, output_doc, output_doc_page};

use super::pdf_date::to_iso;
use super::pdf_pages::PagesOutput;
use super::{
    Content, Trouble, pdf_cmaps, pdf_filters, pdf_fonts, pdf_operators, pdf_rebuild, pdf_tree,
};
use crate::report::Metadata;

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut document = load(bytes)?;
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err(Trouble::Encrypted);
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    if pages.is_empty() {
        return Err(Trouble::broken("it has no pages"));
    }
    pdf_filters::decode_streams(&mut document);
    pdf_fonts::name_characters(&mut document);
    pdf_operators::expand_operators(&mut document);
    let add_tables = AssertUnwindSafe(|| pdf_cmaps::add_tables(&mut document));
    // If the tables cannot be added, the library reads the fonts as well as it can.
    let _: Result<(), _> = panic::catch_unwind(add_tables);
    let mut output = PagesOutput::new(max_text_bytes);
    let in_one_go = AssertUnwindSafe(|| output_doc(&document, &mut output).is_ok());
    let is_whole = panic::catch_unwind(in_one_go).unwrap_or(false);
    let (mut writer, done) = output.finish()?;
    let mut unread = 0;
    for page in pages.iter().skip(done).filter(|_| !is_whole) {
        match page_text(&document, *page, max_text_bytes) {
            Some(text) => {
                // Between pages that are read in one go, there is this line break. Here it was trimmed.
                writer.push_line_break();
                writer.push(&text)?;
            }
            None => unread += 1,
        }
        writer.end_paragraph();
    }
    let text = writer.finish();
    if unread > 0 && text.is_empty() {
        return Err(Trouble::broken("none of its pages can be read"));
    }
    let mut metadata = read_metadata(&document);
    metadata.pages = u32::try_from(pages.len()).ok();
    Ok(Content {
        text,
        metadata,
        unread,
    })
}

/// Loads the document. A damaged document is also rebuilt, and then the version with more pages is used.
fn load(bytes: &[u8]) -> Result<Document, Trouble> {
    let load = |bytes: &[u8]| {
        let load = AssertUnwindSafe(|| {
            let mut document = Document::load_mem(bytes).map_err(to_trouble)?;
            pdf_tree::repair_tree(&mut document);
            Ok(document)
        });
        panic::catch_unwind(load).unwrap_or_else(|_| Err(Trouble::broken("its parser panicked")))
    };
    let as_it_is = load(bytes);
    match &as_it_is {
        Ok(document) if is_whole(document) => return as_it_is,
        Err(Trouble::Encrypted) => return as_it_is,
        _ => {}
    }
    let mut rebuilt = match load(&pdf_rebuild::rebuild(bytes)) {
        Ok(rebuilt) => rebuilt,
        Err(Trouble::Encrypted) => return Err(Trouble::Encrypted),
        Err(_) => return as_it_is,
    };
    pdf_rebuild::rebuild_page_tree(&mut rebuilt);
    let pages = rebuilt.page_iter().count();
    match as_it_is {
        Ok(document) if document.page_iter().count() > pages => Ok(document),
        Err(trouble) if pages == 0 => Err(trouble),
        _ => Ok(rebuilt),
    }
}

/// Whether there are pages, all objects are where the cross-reference table says, and all streams have their data.
fn is_whole(document: &Document) -> bool {
    let is_there = |(number, entry): (&u32, &XrefEntry)| match entry {
        XrefEntry::Normal { generation, .. } => document.has_object((*number, *generation)),
        _ => true,
    };
    let missing = document
        .reference_table
        .entries
        .iter()
        .filter(|entry| !is_there(*entry));
    // The parser removes the object with the encryption parameters.
    let taken_away = usize::from(document.was_encrypted());
    let mut streams = document.objects.values().flat_map(Object::as_stream);
    missing.count() <= taken_away
        && !document.objects.values().any(lacks_data)
        && streams.all(|stream| has_its_data(document, stream))
        && document.page_iter().next().is_some()
}

/// Whether an object is a stream without its data. If the length of a stream is wrong, the parser mistakes it for a
/// dictionary. A dictionary of encryption parameters has a length, too, but also a version.
fn lacks_data(object: &Object) -> bool {
    let dictionary = object.as_dict();
    dictionary.is_ok_and(|dictionary| dictionary.has(b"Length") && !dictionary.has(b"V"))
}

/// Whether a stream has its data. The parser drops the data if it cannot determine their length.
fn has_its_data(document: &Document, stream: &Stream) -> bool {
    let length = stream.dict.get(b"Length");
    let length = length.and_then(|length| document.dereference(length));
    let length = length.and_then(|(_, length)| length.as_i64());
    !stream.content.is_empty() || length.is_ok_and(|length| length == 0)
}

fn page_text(document: &Document, page: u32, max_text_bytes: u64) -> Option<String> {
    let read = AssertUnwindSafe(|| {
        let mut output = PagesOutput::new(max_text_bytes);
        let read = output_doc_page(document, &mut output, page);
        let (writer, _) = read.ok().and_then(|()| output.finish().ok())?;
        Some(writer.finish())
    });
    panic::catch_unwind(read).ok().flatten()
}

fn to_trouble(error: pdf_extract::Error) -> Trouble {
    match error {
        pdf_extract::Error::Decryption(_) | pdf_extract::Error::InvalidPassword => {
            Trouble::Encrypted
        }
        other => Trouble::broken(other),
    }
}

fn read_metadata(document: &Document) -> Metadata {
    let Some(info) = info_dictionary(document) else {
        return Metadata::default();
    };
    let entry = |key: &[u8]| decode_text_string(document, info.get(key).ok()?);
    let date = |key: &[u8]| to_iso(&entry(key)?);
    Metadata {
        title: entry(b"Title"),
        author: entry(b"Author"),
        created: date(b"CreationDate"),
        modified: date(b"ModDate"),
        pages: None,
    }
}

fn info_dictionary(document: &Document) -> Option<&Dictionary> {
    match document.trailer.get(b"Info").ok()? {
        Object::Reference(id) => document.get_object(*id).ok()?.as_dict().ok(),
        Object::Dictionary(info) => Some(info),
        _ => None,
    }
}

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, or else PDFDocEncoding, which differs little from
/// Latin-1. Many strings are UTF-8 without a mark, so valid UTF-8 is read as such.
fn decode_text_string(document: &Document, object: &Object) -> Option<String> {
    let object = match object {
        Object::Reference(id) => document.get_object(*id).ok()?,
        other => other,
    };
    let bytes = object.as_str().ok()?;
    let text = match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => encoding.decode_without_bom_handling(&bytes[mark..]).0,
        None if std::str::from_utf8(bytes).is_ok() => String::from_utf8_lossy(bytes),
        None => {
            encoding_rs::WINDOWS_1252
                .decode_without_bom_handling(bytes)
                .0
        }
    };
    Some(text.into_owned())
}

#[cfg(test)]
mod structures;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pdf_extract::{ObjectId, dictionary};

    use super::*;

    /// Builds a PDF with this many pages, each with its number on it. The pages in `broken` make the library panic.
    fn pdf(pages: usize, broken: &[usize]) -> Vec<u8> {
        let mut document = Document::with_version("1.5");
        let tree = document.new_object_id();
        let font = document.add_object(dictionary! {
            "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica",
        });
        let mut page = |number: usize| -> Object {
            let content = format!("BT /F1 12 Tf 9 9 Td (page {number}) Tj ET");
            let content = document.add_object(Stream::new(dictionary! {}, content.into_bytes()));
            let mut page = dictionary! {
                "Type" => "Page", "Parent" => tree, "Contents" => content,
                "MediaBox" => vec![0.into(), 0.into(), 99.into(), 99.into()],
            };
            if !broken.contains(&number) {
                let fonts = dictionary! { "Font" => dictionary! { "F1" => font } };
                page.set("Resources", fonts);
            }
            document.add_object(page).into()
        };
        let kids: Vec<Object> = (1..=pages).map(&mut page).collect();
        finish_document(document, tree, kids)
    }

    fn finish_document(mut document: Document, tree: ObjectId, kids: Vec<Object>) -> Vec<u8> {
        let pages = dictionary! {
            "Type" => "Pages", "Count" => kids.len() as i64, "Kids" => kids,
        };
        document.objects.insert(tree, pages.into());
        let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
        document.trailer.set("Root", catalog);
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn pages_that_cannot_be_read_are_counted_and_the_others_are_read() {
        let read = |broken: &[usize]| read(&pdf(4, broken), 1000).map(|c| (c.text, c.unread));
        let text = |pages: &str| pages.to_owned();
        assert_eq!(
            read(&[]),
            Ok((text("page 1\n\npage 2\n\npage 3\n\npage 4"), 0))
        );
        assert_eq!(read(&[3]), Ok((text("page 1\n\npage 2\n\npage 4"), 1)));
        assert_eq!(read(&[1, 4]), Ok((text("page 2\n\npage 3"), 2)));
        assert!(matches!(read(&[1, 2, 3, 4]), Err(Trouble::Broken(_))));
        let too_long = super::read(&pdf(4, &[]), 10);
        assert!(matches!(too_long, Err(Trouble::TooLarge(_))));
    }

    #[test]
    fn reading_takes_time_in_proportion_to_the_pages() {
        let times = [500, 4_000].map(|pages| {
            let bytes = pdf(pages, &[]);
            let before = thread_cpu_time();
            let content = read(&bytes, 1 << 20).unwrap();
            assert!(content.text.ends_with(&format!("page {pages}")));
            thread_cpu_time() - before
        });
        // If pages were requested one by one, the time would grow with the square of their number.
        assert!(times[1] < times[0] * 24, "{times:?}");
    }

    /// The CPU time of this thread. Unlike elapsed time, it does not grow with the load of the machine.
    fn thread_cpu_time() -> Duration {
        let statistics =
            std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
        let nanoseconds = statistics.split(' ').next().map(str::parse);
        Duration::from_nanos(nanoseconds.expect("a first number").expect("a number"))
    }
}
