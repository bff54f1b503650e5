//! Which elements and attributes of a foreign page a copy contains, and in what form. All others are left out.

/// How an element of a foreign page is shown in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    /// Neither the element nor its content is shown.
    Nothing,
    /// Only the content of the element is shown.
    Inside,
    /// The element is shown as the named element, with its content.
    As(&'static str),
    /// The element is shown as the named element, which never has content.
    Void(&'static str),
    /// The element is a form field. Its text is shown.
    Control,
    /// The element is an image. Its alternative text is shown.
    Image,
    /// Only the name of the element is shown, because its content is not text.
    Named,
    /// The element is a `meta` element. Its name and content are shown as text.
    Meta,
    Title,
}

/// Elements that a copy contains with their own tags.
const SAME: &[&str] = &[
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "blockquote",
    "caption",
    "cite",
    "code",
    "colgroup",
    "data",
    "dd",
    "del",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "i",
    "ins",
    "kbd",
    "li",
    "main",
    "mark",
    "nav",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "u",
    "ul",
    "var",
];

const VOID: &[&str] = &["br", "col", "hr", "wbr"];

/// Elements that are shown within a line of text. Unknown elements are shown as blocks.
const IN_LINE: &[&str] = &[
    "acronym", "big", "blink", "button", "font", "label", "legend", "meter", "nobr", "output",
    "picture", "progress", "rb", "rp", "rt", "rtc", "ruby", "slot", "strike", "summary", "tt",
];

const NOTHING: &[&str] = &[
    "base", "basefont", "bgsound", "link", "param", "script", "source", "style", "template",
    "track",
];

const NAMED: &[&str] = &[
    "applet",
    "audio",
    "canvas",
    "embed",
    "frame",
    "frameset",
    "iframe",
    "math",
    "noembed",
    "noframes",
    "object",
    "portal",
    "svg",
    "video",
    "fencedframe",
];

/// How a copy shows elements with this name.
pub(super) fn display_of(name: &str) -> Display {
    let among = |names: &[&'static str]| names.iter().find(|one| **one == name).copied();
    if let Some(same) = among(SAME) {
        return Display::As(same);
    }
    if let Some(void) = among(VOID) {
        return Display::Void(void);
    }
    if among(NOTHING).is_some() {
        return Display::Nothing;
    }
    if among(NAMED).is_some() {
        return Display::Named;
    }
    if among(IN_LINE).is_some() {
        return Display::As("span");
    }
    match name {
        "head" | "map" => Display::Inside,
        "title" => Display::Title,
        "meta" => Display::Meta,
        "img" | "image" | "area" => Display::Image,
        "input" => Display::Control,
        "listing" | "xmp" | "plaintext" | "textarea" => Display::As("pre"),
        _ => Display::As("div"),
    }
}

/// The value of an attribute in the form that a copy may contain; `None` if the attribute is left out. No attribute of
/// a copy contains free text or an address.
pub(super) fn sanitize_attribute(tag: &str, name: &str, value: &str) -> Option<String> {
    let is_wanted = match name {
        "colspan" | "rowspan" => matches!(tag, "td" | "th"),
        "span" => matches!(tag, "col" | "colgroup"),
        "start" => tag == "ol",
        "value" => tag == "li",
        "dir" => return is_direction(value).then(|| format!(" dir=\"{value}\"")),
        "lang" => return is_language(value).then(|| format!(" lang=\"{value}\"")),
        _ => false,
    };
    let number: u16 = value.parse().ok().filter(|_| is_wanted)?;
    Some(format!(" {name}=\"{}\"", number.min(1_000)))
}

fn is_direction(value: &str) -> bool {
    matches!(value, "ltr" | "rtl" | "auto")
}

fn is_language(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (2..=35).contains(&value.len()) && value.chars().all(is_plain)
}
