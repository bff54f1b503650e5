//! Finds the styles of a DOCX that hide their text.

use std::collections::BTreeMap;

use super::is_on;
use crate::formats::Trouble;
use crate::formats::package::Package;
use crate::formats::xml::{self, Token};

/// The styles by their ids: whether each hides its text, and the style that it is based on.
#[derive(Debug, Default)]
pub(super) struct HiddenStyles(BTreeMap<String, Style>);

#[derive(Debug, Default)]
struct Style {
    hides: Option<bool>,
    based_on: Option<String>,
}

/// How many steps are followed from a style to the styles that it is based on.
const MAX_STEPS: usize = 20;

const MAX_STYLES: usize = 10_000;

impl HiddenStyles {
    /// Reads the styles of a document. If the part with the styles is missing, no style hides its text.
    pub(super) fn read(package: &mut Package<'_>, name: &str) -> HiddenStyles {
        let mut styles = BTreeMap::new();
        let mut here: Option<(String, Style)> = None;
        let Ok(Some(part)) = package.open_part(name) else {
            return HiddenStyles::default();
        };
        // Faults in the styles do not stop the text from being read.
        let _: Result<(), Trouble> = xml::for_each_token(part, |token| {
            match (&token, &mut here) {
                (Token::Begin("style", attributes), _) => {
                    let id = attributes.get("styleId").unwrap_or_default();
                    here = Some((id, Style::default()));
                }
                (Token::Begin("basedOn", attributes), Some((_, style))) => {
                    style.based_on = attributes.get("val");
                }
                (Token::Begin("vanish", _), Some((_, style))) => style.hides = Some(is_on(&token)),
                (Token::End("style"), _) if styles.len() < MAX_STYLES => styles.extend(here.take()),
                _ => {}
            }
            Ok(())
        });
        HiddenStyles(styles)
    }

    pub(super) fn hides_text(&self, id: &str) -> bool {
        let mut style = self.0.get(id);
        for _ in 0..MAX_STEPS {
            let Some(known) = style else { break };
            if let Some(hides) = known.hides {
                return hides;
            }
            style = known.based_on.as_ref().and_then(|id| self.0.get(id));
        }
        false
    }
}
