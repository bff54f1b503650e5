//! The sizes of the measurement, read from the arguments.

use std::path::PathBuf;

use webfill_bench::Size;
use webfill_scheduler::frontier::{FrontierConfig, page_cache_bytes};

use crate::failure::Failure;

pub const PAGES_PER_COMMIT: usize = 40;
pub const MILLION: u64 = 1_000_000;

pub struct Plan {
    pub seen: u64,
    pub skipped: u64,
    pub local: bool,
    pub state: Option<PathBuf>,
    pub config: FrontierConfig,
}

impl Plan {
    pub fn from_args(mut args: impl Iterator<Item = String>, size: Size) -> Result<Plan, Failure> {
        let mut plan = Plan {
            seen: size.pick(10, 1) * MILLION,
            skipped: 0,
            local: true,
            state: None,
            config: FrontierConfig::default(),
        };
        while let Some(arg) = args.next() {
            let mut number = || -> Result<u64, Failure> {
                let number = args.next().ok_or("a number is missing at the end")?;
                Ok(number.parse()?)
            };
            match arg.as_str() {
                "--seen" => plan.seen = number()? * MILLION,
                "--skip" => plan.skipped = number()? * MILLION,
                "--memory" => {
                    plan.config.seen_memory_bytes = (number()? << 20) as usize;
                    plan.config.page_cache_bytes = page_cache_bytes(plan.config.seen_memory_bytes);
                }
                "--uniform" => plan.local = false,
                "--state" => plan.state = Some(args.next().ok_or("no folder at the end")?.into()),
                _ => return Err(format!("unknown argument `{arg}`").into()),
            }
        }
        Ok(plan)
    }
}
