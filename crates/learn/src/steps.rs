//! Paths in the tree of a page, from an element down to an element inside it.

use webfill_document::NodeRef;

use crate::anchors::{is_short_class, is_valid_step_name, xpath_literal};

/// One step from an element to a child: the child's tag, its number among the siblings with that tag, and their count.
pub(crate) struct Step {
    tag: String,
    number: usize,
    of: usize,
    /// Whether the element is the selected option of a list.
    is_selected: bool,
}

impl Step {
    fn to_xpath(&self, with_number: bool) -> String {
        match with_number && self.of > 1 {
            true if self.is_selected => format!("/{}[@selected]", self.tag),
            true => format!("/{}[{}]", self.tag, self.number),
            false => format!("/{}", self.tag),
        }
    }
}

/// The steps from an element to an element inside it. `None` if there are more than `most`, or if XPath cannot express
/// a tag.
pub(crate) fn steps_between(from: NodeRef<'_>, to: NodeRef<'_>, most: usize) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut node = to;
    while node != from {
        if steps.len() >= most {
            return None;
        }
        let tag = node.tag().filter(|tag| is_valid_step_name(tag))?;
        let parent = node.parent()?;
        let (mut number, mut of) = (0, 0);
        for child in parent.children().take(2_000) {
            if child.tag() == Some(tag) {
                of += 1;
                if child == node {
                    number = of;
                }
            }
        }
        if number == 0 {
            return None;
        }
        steps.push(Step {
            tag: tag.to_owned(),
            number,
            of,
            is_selected: tag == "option" && node.attribute("selected").is_some(),
        });
        node = parent;
    }
    steps.reverse();
    Some(steps)
}

/// The ways to write the path from an element to an element inside it, each with its burden.
pub(crate) fn relative_paths(from: NodeRef<'_>, to: NodeRef<'_>) -> Vec<(String, f64)> {
    let Some(steps) = steps_between(from, to, 24) else {
        return Vec::new();
    };
    let Some(last) = steps.last() else {
        return vec![(String::new(), 0.0)];
    };
    let write = |is_numbered: &dyn Fn(usize) -> bool| -> String {
        let parts = steps.iter().enumerate();
        parts
            .map(|(at, step)| step.to_xpath(is_numbered(at)))
            .collect()
    };
    let length = 0.04 * steps.len() as f64;
    let numbers: Vec<usize> = (0..steps.len()).filter(|&at| steps[at].of > 1).collect();
    let mut found = vec![(write(&|_| true), length + 0.2 * numbers.len() as f64)];
    if !numbers.is_empty() {
        found.push((write(&|_| false), length));
    }
    if numbers.len() > 1 {
        for &without in &numbers {
            let burden = length + 0.2 * (numbers.len() - 1) as f64;
            found.push((write(&|at| at != without), burden));
        }
    }
    if steps.len() > 1 {
        found.push((format!("//{}", last.tag), 0.05));
    }
    let class = to.attribute("class");
    let class = class.filter(|class| is_short_class(class));
    if let Some(text) = class.and_then(xpath_literal) {
        found.push((format!("//{}[@class={text}]", last.tag), 0.08));
    }
    found
}

/// Paths from the root: with the numbers of all elements, without numbers, and with all numbers but the last one.
pub(crate) fn absolute_paths(to: NodeRef<'_>) -> Option<Vec<(String, f64)>> {
    let root = to.document().root();
    let steps = steps_between(root, to, 60)?;
    let last = steps.iter().rposition(|step| step.of > 1);
    let all: String = steps.iter().map(|step| step.to_xpath(true)).collect();
    let mut paths = vec![(all, 0.6)];
    if let Some(last) = last {
        let numbered = steps.iter().enumerate();
        paths.push((
            numbered
                .map(|(at, step)| step.to_xpath(at != last))
                .collect(),
            0.6,
        ));
        paths.push((steps.iter().map(|step| step.to_xpath(false)).collect(), 0.7));
    }
    Some(paths)
}
