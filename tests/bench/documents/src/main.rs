//! `pdf-readers READER FILE`: prints the text of a PDF as the library READER reads it.

use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(reader), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: pdf-readers lopdf|pdf-extract|pdf_oxide FILE".into());
    };
    let bytes = std::fs::read(file)?;
    let text = match reader.as_str() {
        "lopdf" => lopdf_text(&bytes)?,
        "pdf-extract" => pdf_extract::extract_text_from_mem(&bytes)?,
        "pdf_oxide" => pdf_oxide_text(bytes)?,
        other => return Err(format!("there is no reader {other}").into()),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn lopdf_text(bytes: &[u8]) -> Result<String, Box<dyn Error>> {
    let document = lopdf::Document::load_mem(bytes)?;
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    Ok(document.extract_text(&pages)?)
}

fn pdf_oxide_text(bytes: Vec<u8>) -> Result<String, Box<dyn Error>> {
    let document = pdf_oxide::PdfDocument::from_bytes(bytes)?;
    let mut text = String::new();
    for page in 0..document.page_count()? {
        text += &document.extract_text(page)?;
        text.push('\n');
    }
    Ok(text)
}
