//! The fields of a DOCX: an instruction, such as `PAGE`, and its result. Only the result is visible.

/// A field whose end was not read yet.
#[derive(Default)]
pub(super) struct Field {
    is_separated: bool,
    /// Whether the field's result has text.
    has_text: bool,
    /// The state of a check box; `None` if the field is not one.
    check: Option<bool>,
    /// The entries of a drop-down list, and the index of the chosen one.
    entries: Vec<String>,
    chosen: usize,
}

const MAX_ENTRIES: usize = 100;

impl Field {
    pub(super) fn mark_separated(&mut self) {
        self.is_separated = true;
    }

    pub(super) fn is_instruction(&self) -> bool {
        !self.is_separated
    }

    pub(super) fn note_text(&mut self) {
        self.has_text = true;
    }

    /// Handles a property of a form field. `on` is whether the property is switched on.
    pub(super) fn note_property(&mut self, name: &str, value: &str, on: bool) {
        match name {
            "checkBox" => self.check = Some(false),
            "checked" => self.check = Some(on),
            "default" if self.check.is_some() => self.check = Some(on),
            "default" | "result" => self.chosen = value.parse().unwrap_or(self.chosen),
            "listEntry" if self.entries.len() < MAX_ENTRIES => self.entries.push(value.to_owned()),
            _ => {}
        }
    }

    /// The text that is shown for a form field: a check box or the chosen entry. `None` if the field has text of its
    /// own.
    pub(super) fn into_shown_text(mut self) -> Option<String> {
        match self.check {
            _ if self.has_text => None,
            Some(true) => Some("\u{2612}".to_owned()),
            Some(false) => Some("\u{2610}".to_owned()),
            None if self.chosen < self.entries.len() => Some(self.entries.swap_remove(self.chosen)),
            None => None,
        }
    }
}
