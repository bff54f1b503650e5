//! The size of a benchmark.

/// `BENCH_SIZE` in the environment: `full` (the default) or `small`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The sizes behind the published measurements; needs a release build and a quiet machine.
    Full,
    /// About a tenth of them, for any build on any machine. It shows that the benchmarks still run and that no limit
    /// is exceeded by a factor, and yields no measurements to publish.
    Small,
}

impl Size {
    /// In the small size a limit may be missed by this factor, because of the debug build and the busy machine that
    /// it usually runs on. A limit of zero allows nothing in either size.
    const SMALL_TOLERANCE: f64 = 2.5;

    /// Reads `BENCH_SIZE`. The error names the variable and its values.
    pub fn from_env() -> Result<Size, String> {
        match std::env::var("BENCH_SIZE").as_deref() {
            Err(_) | Ok("" | "full") => Ok(Size::Full),
            Ok("small") => Ok(Size::Small),
            Ok(other) => Err(format!("BENCH_SIZE is `{other}`, expected full or small")),
        }
    }

    /// One of two numbers, by size.
    pub fn pick<T>(self, full: T, small: T) -> T {
        match self {
            Size::Full => full,
            Size::Small => small,
        }
    }

    /// The factor by which a limit may be missed.
    pub fn tolerance(self) -> f64 {
        self.pick(1.0, Size::SMALL_TOLERANCE)
    }
}
