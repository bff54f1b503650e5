//! The size of a benchmark.

/// The size of a benchmark, from the variable `BENCH_SIZE`: `full` (the default) or `small`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The sizes for published measurements. They need a release build and an otherwise idle machine.
    Full,
    /// About a tenth of the full size, for any build on any machine. It shows that the benchmarks run and that no limit
    /// is far exceeded, but gives no figures to publish.
    Small,
}

impl Size {
    /// The factor that a limit may be missed by in the small size, which mostly runs as a debug build on a busy
    /// machine. A limit of zero allows nothing in either size.
    const SMALL_TOLERANCE: f64 = 2.5;

    /// Reads `BENCH_SIZE`. The error names the variable and its values.
    pub fn from_env() -> Result<Size, String> {
        match std::env::var("BENCH_SIZE").as_deref() {
            Err(_) | Ok("" | "full") => Ok(Size::Full),
            Ok("small") => Ok(Size::Small),
            Ok(other) => Err(format!("BENCH_SIZE is `{other}`, expected full or small")),
        }
    }

    /// Chooses one of two values by the size.
    pub fn pick<T>(self, full: T, small: T) -> T {
        match self {
            Size::Full => full,
            Size::Small => small,
        }
    }

    /// The factor that a limit may be missed by.
    pub fn tolerance(self) -> f64 {
        self.pick(1.0, Size::SMALL_TOLERANCE)
    }
}
