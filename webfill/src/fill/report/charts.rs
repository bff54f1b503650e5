//! Bars as inline SVG. They are stretched to the available width, so they contain no text.

use std::fmt::Write;

use super::html::shorten;
use crate::fill::tally::Tally;

/// A chart of coverage and precision, with a row for each column or site.
pub struct Bars<'b> {
    pub heading: &'static str,
    pub rows: Vec<(&'b str, &'b Tally)>,
    /// The required precision.
    pub precision: f64,
}

impl Bars<'_> {
    pub fn html(&self, note: &str) -> String {
        let least = self.precision_scale_start();
        let mut text = format!(
            "<section>\n<h2>{}</h2>\n<div class=\"bars\">\n<div class=\"row heads\"><span></span>\
             <span>filled</span><span>right, of held-out known values (from {least:.2} to 1)</span></div>\n",
            self.heading
        );
        for (name, tally) in &self.rows {
            let share = tally.filled as f64 / tally.gaps.max(1) as f64;
            let _ = write!(
                text,
                "<div class=\"row\"><span class=\"name\">{}</span>\n\
                 <span class=\"bar\">{}<span class=\"number\">{} of {}</span></span>\n\
                 <span class=\"bar\">{}</span></div>\n",
                shorten(name),
                coverage_bar(share),
                tally.filled,
                tally.gaps,
                self.precision_bar(tally, least)
            );
        }
        let _ = write!(
            text,
            "</div>\n<p class=\"legend\">The thick line is the measured share, the thin one its 95 % interval; the \
             dashed line is the precision that was asked for, {}.</p>\n{note}</section>\n",
            self.precision
        );
        text
    }

    /// The lowest value on the scale of precision.
    fn precision_scale_start(&self) -> f64 {
        let lows = self
            .rows
            .iter()
            .filter_map(|(_, tally)| tally.held_out_precision());
        let low = lows.map(|share| share.low).fold(self.precision, f64::min);
        ((low * 10.0 - 0.01).floor() / 10.0).clamp(0.0, 0.9)
    }

    fn precision_bar(&self, tally: &Tally, least: f64) -> String {
        let Some(share) = tally.held_out_precision() else {
            return String::from(
                "<span class=\"none\"></span><span class=\"number\">not measured</span>",
            );
        };
        let at = |share: f64| ((share - least) / (1.0 - least) * 100.0).clamp(0.0, 100.0);
        // Keep a distance from the edges, where half of the line would be cut off.
        let mean = at(share.estimate).clamp(0.7, 99.3);
        let (wish, from, to) = (at(self.precision), at(share.low), at(share.high));
        let (estimate, low, high) = (share.estimate, share.low, share.high);
        format!(
            "<svg viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{estimate:.3} right, \
             between {low:.3} and {high:.3}\"><rect class=\"track\" width=\"100\" height=\"16\"/><line class=\"wish\" \
             x1=\"{wish:.2}\" x2=\"{wish:.2}\" y1=\"0\" y2=\"16\"/><line class=\"interval\" x1=\"{from:.2}\" \
             x2=\"{to:.2}\" y1=\"8\" y2=\"8\"/><line class=\"mean\" x1=\"{mean:.2}\" x2=\"{mean:.2}\" y1=\"2\" \
             y2=\"14\"/></svg><span class=\"number\">{estimate:.3} <small>({low:.3} to {high:.3})</small></span>"
        )
    }
}

fn coverage_bar(share: f64) -> String {
    let percent = share * 100.0;
    format!(
        "<svg viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{percent:.1} % filled\">\
         <rect class=\"track\" width=\"100\" height=\"16\"/><rect class=\"filled\" width=\"{percent:.2}\" \
         height=\"16\"/></svg>"
    )
}

/// A bar for each reason, with its name, meaning, count and details.
pub fn reason_bars(reasons: &[(&str, &str, usize, String)]) -> String {
    let most = reasons.iter().map(|reason| reason.2).max().unwrap_or(1);
    let mut text = String::from("<div class=\"bars reasons\">\n");
    for (name, meaning, count, more) in reasons {
        let width = *count as f64 / most as f64 * 100.0;
        let _ = write!(
            text,
            "<div class=\"row\"><span class=\"name\">{name}</span>\n<span class=\"bar\"><svg viewBox=\"0 0 100 16\" \
             preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{count}\"><rect class=\"reason\" \
             width=\"{width:.2}\" height=\"16\"/></svg><span class=\"number\">{count}</span></span>\n\
             <div class=\"why\">{meaning}{more}</div></div>\n"
        );
    }
    text + "</div>\n"
}
