//! The font table of an RTF, which gives the character code of each font.

use std::collections::BTreeMap;

use super::code::{self, Code};
use crate::formats::symbols::SymbolFont;

const MAX_FONT_NAME_BYTES: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Fonts {
    codes: BTreeMap<i32, Code>,
    /// The font whose entry is being read. `name` is its name, as far as it was read.
    entry: i32,
    name: String,
    default: Option<i32>,
}

impl Fonts {
    pub(super) fn code_of(&self, font: i32) -> Option<Code> {
        self.codes.get(&font).copied()
    }

    pub(super) fn default_font(&self) -> Option<i32> {
        self.default
    }

    pub(super) fn set_default_font(&mut self, font: Option<i32>) {
        self.default = font;
    }

    pub(super) fn begin_entry(&mut self, font: i32) {
        self.entry = font;
        self.name.clear();
    }

    pub(super) fn set_code_of_entry(&mut self, code: Code) {
        self.codes.insert(self.entry, code);
    }

    /// Reads a piece of the font table: names of fonts, each followed by a semicolon.
    pub(super) fn read_names(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                ';' => self.end_name(),
                _ if self.name.len() < MAX_FONT_NAME_BYTES => self.name.push(character),
                _ => {}
            }
        }
    }

    pub(super) fn end_name(&mut self) {
        let name = std::mem::take(&mut self.name);
        let by_name = match self.code_of(self.entry) {
            None => code::from_font_name(&name),
            Some(Code::Symbols(_)) => SymbolFont::from_name(&name).map(Code::Symbols),
            Some(_) => None,
        };
        if let Some(code) = by_name {
            self.set_code_of_entry(code);
        }
    }
}
