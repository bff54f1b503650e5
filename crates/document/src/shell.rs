//! Recognises empty shells: pages that get their text from their scripts.
//!
//! A shell shows little text, runs scripts, and has a *root*, an element that an application fills. The root has an id
//! or attribute used by frameworks, or is a custom element (`<shop-app>`). On a page that shows next to nothing, an
//! empty container with an id is a root as well. In doubt, a page is not a shell, and is read as its server sent it.

use crate::document::Document;
use crate::node::NodeRef;

/// A page with a root is a shell only if it shows fewer characters than this. A header and a footer may come from the
/// server.
const LITTLE_TEXT: usize = 400;

/// The same limit for a root that is only an empty element with an id, on pages that say that they need scripts.
const LITTLE_WITHOUT_SCRIPTS: usize = 80;

/// The same limit for a root that is only an empty element with an id, on pages that do not say that they need scripts.
const NEXT_TO_NOTHING: usize = 24;

/// A root shows fewer characters than this, such as "Loading, please wait", before the application fills it.
const TEXT_OF_ROOT: usize = 80;

/// The length limit, in bytes, of an id that the result names.
const MOST_ID_BYTES: usize = 60;

/// How many nodes are read. A page with more nodes is not a shell.
const MOST_NODES: usize = 2_000;

/// Ids of roots that the project generators of frameworks use.
const ROOT_IDS: &[&str] = &[
    "root",
    "app",
    "__next",
    "__nuxt",
    "__layout",
    "___gatsby",
    "svelte",
    "q-app",
    "ember-app",
    "ext-viewport",
    "swagger-ui",
    "redoc",
    "main-app",
    "application",
    "mount",
    "spa",
    "outlet",
];

/// Words at the end of a root's id: `react-root`, `shop_app`, `appMount`.
const ROOT_ENDINGS: &[&str] = &["app", "root", "mount", "outlet", "spa"];

/// Ids of empty elements that third parties fill. They do not make a page a shell.
const NOT_ROOTS: &[&str] = &["fb-root", "overlay-root", "modal-root", "portal-root"];

/// Attributes that mark the element that an application fills.
const ROOT_MARKS: &[&str] = &[
    "ng-app",
    "data-ng-app",
    "ng-view",
    "ui-view",
    "data-reactroot",
];

/// Elements whose content is not shown. In browsers with scripts, `noscript` is not shown, either.
const NOT_SHOWN: &[&str] = &["script", "style", "template", "noscript", "title", "head"];

/// Elements that can be the content of a page, in place of text.
const CONTENT: &[&str] = &[
    "img", "picture", "video", "audio", "iframe", "frameset", "embed", "object", "textarea",
    "select", "table",
];

/// Elements that can be a root because of their id.
const CONTAINERS: &[&str] = &["div", "main", "section", "article", "body"];

/// What shows that a page is an empty shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// The number of characters that the page shows, without white space.
    pub characters: usize,
    /// The number of scripts that run.
    pub scripts: usize,
    /// A selector of the element that the application fills, such as `#root`.
    pub root: String,
}

/// What a walk over the page has found so far.
#[derive(Default)]
struct ShellWalk {
    nodes: usize,
    characters: usize,
    scripts: usize,
    root: Option<String>,
    /// An empty element with an id. It counts as the root if the page shows next to nothing.
    empty: Option<String>,
    has_content: bool,
    wants_scripts: bool,
    refreshes: bool,
}

impl Document {
    /// Returns what shows that this page is an empty shell; `None` if it is not one.
    pub fn shell(&self) -> Option<Shell> {
        if !self.is_html {
            return None;
        }
        let mut found = ShellWalk::default();
        found.visit(self.root());
        if found.nodes > MOST_NODES || found.scripts == 0 || found.refreshes {
            return None;
        }
        Some(Shell {
            characters: found.characters,
            scripts: found.scripts,
            root: found.shell_root()?,
        })
    }
}

impl ShellWalk {
    /// Returns the page's root if the page shows so little text that it is a shell. The limit depends on the kind of
    /// root.
    fn shell_root(self) -> Option<String> {
        if self.root.is_some() && self.characters < LITTLE_TEXT {
            return self.root;
        }
        let most = match self.wants_scripts {
            true => LITTLE_WITHOUT_SCRIPTS,
            false => NEXT_TO_NOTHING,
        };
        if self.characters >= most || self.has_content {
            return None;
        }
        let body = || (self.characters == 0 || self.wants_scripts).then(|| "body".to_owned());
        self.empty.or_else(body)
    }

    fn visit(&mut self, node: NodeRef<'_>) {
        for child in node.children() {
            self.nodes += 1;
            if self.nodes > MOST_NODES || self.characters >= LITTLE_TEXT {
                return;
            }
            if child.is_text() {
                self.characters += count_visible(child.text());
            } else if let Some(tag) = child.tag() {
                self.visit_element(child, tag);
            }
        }
    }

    fn visit_element(&mut self, element: NodeRef<'_>, tag: &str) {
        match tag {
            "script" => self.scripts += usize::from(is_executable(element)),
            "noscript" => self.wants_scripts |= requires_scripts(element.text()),
            "meta" => {
                let equivalent = element.attribute("http-equiv").unwrap_or_default();
                self.refreshes |= equivalent.trim().eq_ignore_ascii_case("refresh");
            }
            "input" => {
                let kind = element.attribute("type").unwrap_or_default();
                self.has_content |= !kind.eq_ignore_ascii_case("hidden");
            }
            _ => self.has_content |= CONTENT.contains(&tag),
        }
        // The walk into the head counts its scripts and `meta` elements, but its text is not shown.
        if tag == "head" {
            let before = self.characters;
            self.visit(element);
            self.characters = before;
        } else if !NOT_SHOWN.contains(&tag) {
            self.note_root(element, tag);
            self.visit(element);
        }
    }

    fn note_root(&mut self, element: NodeRef<'_>, tag: &str) {
        let is_custom = is_custom_container(element, tag);
        if !is_custom && !CONTAINERS.contains(&tag) && element.attribute("id").is_none() {
            return;
        }
        let id = element.attribute("id").unwrap_or_default();
        let is_marked = ROOT_MARKS
            .iter()
            .any(|mark| element.attribute(mark).is_some());
        let is_root = is_custom || is_marked || (CONTAINERS.contains(&tag) && is_root_id(id));
        let text = || count_visible_in(element, TEXT_OF_ROOT);
        let name = || match id.len() {
            1..=MOST_ID_BYTES => format!("#{id}"),
            _ => tag.to_owned(),
        };
        if is_root && self.root.is_none() && text() < TEXT_OF_ROOT {
            self.root = Some(name());
        }
        let is_container = CONTAINERS.contains(&tag) && !id.is_empty();
        if is_container && self.empty.is_none() && !is_third_party_id(id) && text() == 0 {
            self.empty = Some(name());
        }
    }
}

/// Whether a custom element contains a part of the page, as opposed to an icon in a text or a banner above it.
fn is_custom_container(element: NodeRef<'_>, tag: &str) -> bool {
    let is_small = ["-icon", "-banner", "-consent", "-widget", "-button"]
        .iter()
        .any(|end| tag.ends_with(end));
    let parent = element.parent().and_then(NodeRef::tag).unwrap_or_default();
    tag.contains('-') && !is_small && (CONTAINERS.contains(&parent) || parent.contains('-'))
}

/// Whether a script is executed, judged by its type. Scripts that only contain data, such as JSON, are not.
fn is_executable(script: NodeRef<'_>) -> bool {
    let kind = script.attribute("type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let runs = [
        "",
        "module",
        "text/javascript",
        "application/javascript",
        "text/babel",
    ];
    runs.iter().any(|run| run.eq_ignore_ascii_case(kind))
}

fn is_root_id(id: &str) -> bool {
    if ROOT_IDS.contains(&id) {
        return true;
    }
    if is_third_party_id(id) {
        return false;
    }
    let ends = |ending: &&str| {
        let before = id.len().checked_sub(ending.len());
        let before = before.filter(|at| *at > 0 && id.is_char_boundary(*at));
        before.is_some_and(|at| {
            let is_apart =
                id[..at].ends_with(['-', '_']) || id[at..].starts_with(|c: char| c.is_uppercase());
            is_apart && id[at..].eq_ignore_ascii_case(ending)
        })
    };
    id.starts_with("app-") || id.starts_with("app_") || ROOT_ENDINGS.iter().any(ends)
}

fn is_third_party_id(id: &str) -> bool {
    NOT_ROOTS.contains(&id)
        || ["google", "gtm", "ad-", "ads", "cookie"]
            .iter()
            .any(|word| id.starts_with(word))
}

/// Whether the text that is shown without scripts mentions JavaScript. Usually it is a request to enable it.
fn requires_scripts(text: &str) -> bool {
    text.to_lowercase().contains("javascript")
}

fn count_visible(text: &str) -> usize {
    text.chars()
        .filter(|character| !character.is_whitespace())
        .count()
}

/// The number of characters that an element shows, counted up to `limit`.
fn count_visible_in(element: NodeRef<'_>, limit: usize) -> usize {
    let mut characters = 0;
    let mut waiting: Vec<NodeRef<'_>> = element.children().collect();
    let mut visited = 0;
    while let Some(node) = waiting.pop() {
        visited += 1;
        if characters >= limit || visited > MOST_NODES {
            return limit;
        }
        if node.is_text() {
            characters += count_visible(node.text());
        } else if node.tag().is_some_and(|tag| !NOT_SHOWN.contains(&tag)) {
            waiting.extend(node.children());
        }
    }
    characters
}
