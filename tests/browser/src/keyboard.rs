//! Simulates a user without a mouse. Counts the steps of the user's job and the keys pressed.

use std::cell::Cell;
use std::time::Instant;

use serde_json::json;

use crate::{Browser, ENTER, TAB, text_of};

/// The most presses of Tab that may be needed to reach any element of a page.
const MOST_TABS: usize = 250;

/// JavaScript that returns the name of the focused element, roughly as a screen reader would read it.
const FOCUSED: &str = "const one = document.activeElement;
    if (!one || one === document.body) return '';
    const labels = [...(one.labels ?? [])].map((label) => label.innerText);
    const own = one.matches('a, button, summary') ? one.innerText : one.tagName === 'IFRAME' ? one.title : '';
    return [one.getAttribute('aria-label') ?? '', ...labels, own].join(' ').replace(/\\s+/g, ' ').trim()";

/// JavaScript that returns whether the focused element is visibly marked.
const IS_SEEN: &str = "const one = document.activeElement; const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    return one.tagName === 'IFRAME' || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
        && box.width > 0 && box.bottom > 0 && box.top < innerHeight)";

pub struct Keyboard<'b> {
    pub browser: &'b Browser,
    began: Instant,
    keys: Cell<usize>,
    steps: Cell<usize>,
}

impl<'b> Keyboard<'b> {
    pub fn new(browser: &'b Browser) -> Keyboard<'b> {
        Keyboard {
            browser,
            began: Instant::now(),
            keys: Cell::new(0),
            steps: Cell::new(0),
        }
    }

    pub fn press(&self, keys: &[char]) {
        self.browser.press(keys);
        self.keys.set(self.keys.get() + keys.len());
    }

    pub fn type_text(&self, text: &str) {
        self.press(&text.chars().collect::<Vec<_>>());
    }

    /// The name of the focused element.
    pub fn focused_name(&self) -> String {
        text_of(self.browser.run_script(FOCUSED, json!([])))
    }

    /// Presses Tab until the name of the focused element contains `name`. At every stop, the focus must be visible.
    pub fn tab_to(&self, name: &str) {
        let mut passed = Vec::new();
        while !self.focused_name().contains(name) {
            assert!(passed.len() < MOST_TABS, "no `{name}` among {passed:?}");
            self.press(&[TAB]);
            passed.push(self.focused_name());
            assert_eq!(
                self.browser.run_script(IS_SEEN, json!([])),
                true,
                "the focus is not seen: `{}`",
                self.focused_name()
            );
        }
    }

    /// Skips the navigation of a page by the link `Skip to content`.
    pub fn skip_to_content(&self) {
        self.tab_to("Skip to content");
        self.press(&[ENTER]);
    }

    /// Performs a step of the user's job: moves the focus to the element with this name and presses Enter.
    pub fn tab_to_and_enter(&self, name: &str) {
        self.tab_to(name);
        self.press(&[ENTER]);
        self.steps.set(self.steps.get() + 1);
    }

    /// Waits until a page with this heading is shown.
    pub fn wait_for_page(&self, heading: &str) {
        self.browser.wait_until(heading, || {
            let title = self.browser.text_at("h1")?;
            title.contains(heading).then_some(())
        });
    }

    /// Performs a step of the user's job: presses these keys.
    pub fn press_as_step(&self, keys: &[char]) {
        self.press(keys);
        self.steps.set(self.steps.get() + 1);
    }

    /// Performs a step of the user's job: presses a key with a modifier.
    pub fn press_with_as_step(&self, modifier: char, key: char) {
        self.browser.press_with(modifier, key);
        self.keys.set(self.keys.get() + 2);
        self.steps.set(self.steps.get() + 1);
    }

    /// Prints how many steps and keys and how much time the user's job took.
    pub fn print_report(&self, job: &str) {
        println!(
            "{job}: {} steps, {} keys, {:.1} s",
            self.steps.get(),
            self.keys.get(),
            self.began.elapsed().as_secs_f64()
        );
    }
}
