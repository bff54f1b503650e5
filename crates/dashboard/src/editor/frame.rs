//! The document in the frame: a copy of a foreign page. It has one script of the dashboard, which reports the selected
//! elements to the outer page.
//!
//! Its security policy makes it a separate origin without any access. It loads from no address and sends to none, only
//! the script with the nonce of this answer runs, and it can only be embedded in the dashboard's page. It exchanges
//! only numbers with the outer page.

/// The script and the style sheet of the frame's document. They are inlined, because the document has an origin of its
/// own and cannot load them from the dashboard.
const SCRIPT: &str = include_str!("../../assets/frame.js");
const STYLE: &str = include_str!("../../assets/frame.css");

/// The `Content-Security-Policy` of the frame's document. Only the script with this nonce may run there.
pub(super) fn content_security_policy(nonce: &str) -> String {
    format!(
        "sandbox allow-scripts; default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
}

/// What the visitor uses the copy of a page for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// The visitor points at elements, to show which values to read.
    Pointing,
    /// The visitor sees which elements a mapping has read: those with these numbers.
    Reading(&'a [u64]),
}

impl Purpose<'_> {
    /// The HTML attributes of the element that contains the copy.
    fn attributes(self) -> String {
        match self {
            Purpose::Pointing => String::from(
                "role=\"application\" tabindex=\"0\" \
                 aria-label=\"Copy of the page: arrow keys walk through its elements, typed text finds one, Enter points at it, Delete marks it as wrong, Escape leads out\" \
                 aria-describedby=\"here\"",
            ),
            Purpose::Reading(elements) => {
                let numbers: Vec<String> = elements.iter().map(u64::to_string).collect();
                format!(
                    "data-read=\"{}\" tabindex=\"0\" role=\"region\" aria-label=\"Copy of the page\"",
                    numbers.join(" ")
                )
            }
        }
    }
}

/// The whole document in the frame. `copy` is the markup of a copied page, and `nonce` consists of hexadecimal digits.
pub(super) fn document(copy: &str, is_cut: bool, purpose: Purpose<'_>, nonce: &str) -> String {
    let attributes = purpose.attributes();
    let cut = match is_cut {
        true => {
            "<p class=\"cut\" role=\"note\">The copy ends here: the page is too large to be shown in full.</p>"
        }
        false => "",
    };
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Copy of the page</title>\
         <style nonce=\"{nonce}\">{STYLE}</style></head><body>\
         <main><div id=\"page\" {attributes}>{copy}{cut}</div></main>\
         <div id=\"here\" role=\"status\"></div>\
         <script nonce=\"{nonce}\">{SCRIPT}</script></body></html>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_one_script_and_a_policy_that_lets_no_other_run() {
        let document = document("<h1 id=\"n4\">x</h1>", true, Purpose::Pointing, "abc");
        assert_eq!(document.matches("<script").count(), 1);
        assert_eq!(
            document.matches("</script").count(),
            1,
            "the script ends where it should"
        );
        assert_eq!(document.matches("</style").count(), 1);
        assert!(document.contains("<script nonce=\"abc\">"));
        let policy = content_security_policy("abc");
        let read = super::document("", false, Purpose::Reading(&[4, 7]), "abc");
        assert!(read.contains("data-read=\"4 7\""), "{read}");
        assert!(policy.starts_with("sandbox allow-scripts; default-src 'none';"));
        assert!(!policy.contains("allow-same-origin") && !policy.contains("unsafe"));
    }
}
