//! Estimates from checks of a page how often it changes.
//!
//! Changes are assumed to be a Poisson process. The estimate of its rate is a gamma distribution, which begins with
//! the usual rate of the page's class. If a check after `gap` days finds the page unchanged, the likelihood is
//! `e^(-rate gap)`, which gives another gamma distribution. If it finds the page changed, once or more often, the
//! likelihood is `1 - e^(-rate gap)`; the result is replaced by the gamma distribution with the same mean and
//! variance. So gaps may be uneven, and two numbers per page are enough.

const DAY_MS: f64 = 86_400_000.0;

/// The longest exposure (observed time that counts in an estimate), in days. Older evidence counts less and less,
/// because pages may come to change more or less often.
const LONGEST_EXPOSURE: f64 = 365.0;

const LEAST_SHAPE: f64 = 0.05;

/// The highest assumed rate. If a page has changed at every check, no more can be known.
const HIGHEST: f64 = 48.0;

/// The kind of page, as far as it predicts how often the page changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageClass {
    #[default]
    Other,
    /// A page with links that are followed.
    Listing,
    /// A file made for people (PDF, ...).
    Document,
}

impl PageClass {
    /// The number the class is stored under.
    pub fn number(self) -> u8 {
        match self {
            PageClass::Other => 0,
            PageClass::Listing => 1,
            PageClass::Document => 2,
        }
    }

    pub fn from_number(number: u8) -> PageClass {
        match number {
            1 => PageClass::Listing,
            2 => PageClass::Document,
            _ => PageClass::Other,
        }
    }
}

/// The estimated number of changes of a page a day: a gamma distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub shape: f64,
    /// The exposure in days: the observed time that counts in the estimate.
    pub exposure: f64,
}

impl Rate {
    /// The estimate before the first check.
    pub fn prior_rate(class: PageClass) -> Rate {
        let (shape, exposure) = match class {
            PageClass::Listing => (1.0, 2.0),
            PageClass::Other => (0.6, 12.0),
            PageClass::Document => (0.5, 100.0),
        };
        Rate { shape, exposure }
    }

    /// The expected number of changes per day.
    pub fn per_day(self) -> f64 {
        (self.shape / self.exposure).min(HIGHEST)
    }

    /// The estimate after a check this long after the previous one.
    pub fn after_check(self, gap_ms: i64, changed: bool) -> Rate {
        let gap = gap_ms.max(0) as f64 / DAY_MS;
        let next = match changed {
            false => Rate {
                exposure: self.exposure + gap,
                ..self
            },
            true => self.after_change(gap),
        };
        next.clamp()
    }

    fn after_change(self, gap: f64) -> Rate {
        let Rate { shape, exposure } = self;
        let longer = exposure + gap;
        if gap < exposure * 1e-6 {
            return Rate {
                shape: shape + 1.0,
                exposure,
            };
        }
        let unchanged = (exposure / longer).powf(shape);
        let first = shape / exposure - unchanged * shape / longer;
        let second = shape * (shape + 1.0);
        let second = second / exposure.powi(2) - unchanged * second / longer.powi(2);
        let mean = first / (1.0 - unchanged);
        let variance = second / (1.0 - unchanged) - mean.powi(2);
        match variance > 0.0 && mean.is_finite() {
            true => Rate {
                shape: mean.powi(2) / variance,
                exposure: mean / variance,
            },
            false => self,
        }
    }

    fn clamp(self) -> Rate {
        let too_much = (self.exposure / LONGEST_EXPOSURE).max(1.0);
        Rate {
            shape: (self.shape / too_much).max(LEAST_SHAPE),
            exposure: self.exposure / too_much,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(days: f64) -> i64 {
        (days * DAY_MS) as i64
    }

    /// The mean of the exact distribution after these checks, integrated numerically.
    fn exact_mean(prior: Rate, checks: &[(f64, bool)]) -> f64 {
        let (mut weight, mut sum) = (0.0, 0.0);
        for step in 0..4_000 {
            // The steps are even on a logarithmic scale, because densities are steep near zero.
            let rate = (f64::from(step) / 200.0 - 15.0).exp();
            let mut density = rate.powf(prior.shape) * (-prior.exposure * rate).exp();
            for (gap, changed) in checks {
                let unchanged = (-rate * gap).exp();
                density *= if *changed { 1.0 - unchanged } else { unchanged };
            }
            weight += density;
            sum += density * rate;
        }
        sum / weight
    }

    #[test]
    fn the_estimate_is_close_to_the_exact_distribution() {
        let uneven = [
            (1.0, false),
            (9.0, true),
            (0.5, false),
            (30.0, true),
            (2.0, true),
        ];
        let nightly: Vec<(f64, bool)> = (0..30).map(|night| (1.0, night % 3 == 0)).collect();
        let never: Vec<(f64, bool)> = (1..9).map(|check| (f64::from(check), false)).collect();
        for class in [PageClass::Listing, PageClass::Other, PageClass::Document] {
            for checks in [&uneven[..], &nightly, &never] {
                let prior = Rate::prior_rate(class);
                let believed = checks.iter().fold(prior, |rate, (gap, changed)| {
                    rate.after_check(days(*gap), *changed)
                });
                let exact = exact_mean(prior, checks);
                let ratio = believed.per_day() / exact;
                assert!(
                    (0.85..1.15).contains(&ratio),
                    "{class:?}: {believed:?}, exactly {exact}"
                );
            }
        }
    }

    #[test]
    fn extreme_checks_leave_a_finite_estimate() {
        for gap_ms in [i64::MIN, -1, 0, 1, i64::MAX] {
            for changed in [false, true] {
                let mut rate = Rate::prior_rate(PageClass::Other);
                for _ in 0..2_000 {
                    rate = rate.after_check(gap_ms, changed);
                }
                let per_day = rate.per_day();
                assert!(per_day.is_finite() && per_day > 0.0, "{gap_ms}: {rate:?}");
            }
        }
    }
}
