//! A measurement with its limit, and the report about all of them.

use std::fmt;
use std::process::ExitCode;

use crate::Size;

/// The limit of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    AtMost(f64),
    /// A limit that applies to every size, even to a debug build on a busy machine.
    AtMostEver(f64),
    AtLeast(f64),
    /// No limit: the measurement is only reported for comparison.
    None,
}

/// A measurement with its limit.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The quantity, with its unit.
    pub what: String,
    pub figure: f64,
    pub limit: Limit,
}

impl Verdict {
    /// Whether the measurement is within its limit, which is loosened by the tolerance of the size.
    pub fn is_met(&self, size: Size) -> bool {
        match self.limit.loosen(size.tolerance()) {
            Limit::AtMost(most) | Limit::AtMostEver(most) => self.figure <= most,
            Limit::AtLeast(least) => self.figure >= least,
            Limit::None => true,
        }
    }
}

impl Limit {
    fn loosen(self, tolerance: f64) -> Limit {
        match self {
            Limit::AtMost(most) => Limit::AtMost(most * tolerance),
            Limit::AtMostEver(most) => Limit::AtMostEver(most),
            Limit::AtLeast(least) => Limit::AtLeast(least / tolerance),
            Limit::None => Limit::None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::AtMost(most) | Limit::AtMostEver(most) => write!(out, "<= {most:.3}"),
            Limit::AtLeast(least) => write!(out, ">= {least:.3}"),
            Limit::None => Ok(()),
        }
    }
}

/// Prints all measurements with their limits. Returns the exit code of a failure if any limit is missed.
pub fn report(verdicts: &[Verdict], size: Size) -> ExitCode {
    println!("\n{:<72} {:>12} {:>13}", "figure", "measured", "limit");
    for verdict in verdicts {
        let limit = verdict.limit.loosen(size.tolerance());
        let judged = match (limit, verdict.is_met(size)) {
            (Limit::None, _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        };
        println!(
            "{:<72} {:>12.3} {:>13} {judged}",
            verdict.what,
            verdict.figure,
            limit.to_string()
        );
    }
    match verdicts.iter().all(|verdict| verdict.is_met(size)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(figure: f64, limit: Limit) -> Verdict {
        Verdict {
            what: "a figure".into(),
            figure,
            limit,
        }
    }

    #[test]
    fn a_small_run_fails_only_if_a_limit_is_far_exceeded() {
        for (figure, limit, full, small) in [
            (0.9, Limit::AtMost(1.0), true, true),
            (2.4, Limit::AtMost(1.0), false, true),
            (2.6, Limit::AtMost(1.0), false, false),
            (1.1, Limit::AtMostEver(1.0), false, false),
            (0.9, Limit::AtMostEver(1.0), true, true),
            (0.5, Limit::AtLeast(1.0), false, true),
            (0.2, Limit::AtLeast(1.0), false, false),
            (9.0, Limit::None, true, true),
        ] {
            let verdict = verdict(figure, limit);
            assert_eq!(verdict.is_met(Size::Full), full, "{verdict:?}");
            assert_eq!(verdict.is_met(Size::Small), small, "{verdict:?}");
        }
    }

    #[test]
    fn a_limit_of_zero_is_zero_in_either_size() {
        let gaps = verdict(1.0, Limit::AtMost(0.0));
        assert!(!gaps.is_met(Size::Full));
        assert!(!gaps.is_met(Size::Small));
    }
}
