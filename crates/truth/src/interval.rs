//! Confidence intervals of shares, and the Beta distribution.

/// A share, and the bounds between which it lies with 95 % certainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
}

/// Wilson's 95 % interval for the share of `successes` in `trials`. Both may be fractional, because they may be sums of
/// probabilities.
pub fn wilson_interval(successes: f64, trials: f64) -> Interval {
    const Z: f64 = 1.959_963_985;
    if trials <= 0.0 {
        return Interval {
            low: 0.0,
            estimate: 0.5,
            high: 1.0,
        };
    }
    let share = (successes / trials).clamp(0.0, 1.0);
    let spread = Z * Z / trials;
    let centre = (share + spread / 2.0) / (1.0 + spread);
    let half = Z / (1.0 + spread) * (share * (1.0 - share) / trials + spread / trials / 4.0).sqrt();
    Interval {
        low: (centre - half).max(0.0),
        estimate: share,
        high: (centre + half).min(1.0),
    }
}

/// The logarithm of the gamma function, by the approximation of Lanczos. `x` must be positive.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.001_208_650_973_866_179,
        -0.000_005_395_239_384_953,
    ];
    let shifted = x + 5.5;
    let mut sum = 1.000_000_000_190_015;
    for (index, term) in TERMS.iter().enumerate() {
        sum += term / (x + 1.0 + index as f64);
    }
    (x + 0.5) * shifted.ln() - shifted + (2.506_628_274_631_000_5 * sum / x).ln()
}

/// The logarithm of the beta function.
pub(crate) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The probability that a share distributed as Beta(a, b) is at most `x`.
pub(crate) fn beta_at_most(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (a * x.ln() + b * (1.0 - x).ln() - ln_beta(a, b)).exp();
    // The continued fraction converges quickly only for small `x`. For larger ones, the symmetry of the distribution is
    // used: the probability at `x` for (a, b) is one minus the probability at 1 - `x` for (b, a).
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(x, a, b) / a
    } else {
        1.0 - front * continued_fraction(1.0 - x, b, a) / b
    }
}

fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const STEPS: usize = 200;
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=STEPS {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-12 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_matches_published_values() {
        let interval = wilson_interval(8.0, 10.0);
        assert!((interval.low - 0.4902).abs() < 1e-4, "{interval:?}");
        assert!((interval.high - 0.9433).abs() < 1e-4, "{interval:?}");
        let sure = wilson_interval(73.0, 73.0);
        assert!(sure.low >= 0.95 && sure.high > 0.999_999, "{sure:?}");
    }

    #[test]
    fn the_interval_covers_everything_without_trials() {
        let interval = wilson_interval(0.0, 0.0);
        assert_eq!((interval.low, interval.high), (0.0, 1.0));
    }

    #[test]
    fn the_beta_distribution_matches_closed_forms() {
        // The closed forms: Beta(n, 1) is x^n, Beta(1, n) is 1 - (1 - x)^n.
        for x in [0.1, 0.5, 0.9, 0.99] {
            for n in [1.0, 2.0, 7.0, 60.0] {
                assert!((beta_at_most(x, n, 1.0) - x.powf(n)).abs() < 1e-9);
                assert!((beta_at_most(x, 1.0, n) - (1.0 - (1.0 - x).powf(n))).abs() < 1e-9);
            }
        }
        assert!((beta_at_most(0.5, 0.5, 0.5) - 0.5).abs() < 1e-9);
    }
}
