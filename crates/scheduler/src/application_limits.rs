//! The limits of an application that shares the fleet with others.

use serde::{Deserialize, Serialize};

/// The limits of one application; `None`: no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApplicationLimits {
    /// The maximum number of pages, over all crawls of the application. Tasks beyond it stay queued until the limit is
    /// raised.
    pub max_pages: Option<u64>,
    /// The maximum number of pages handed out per second.
    pub pages_per_second: Option<f64>,
    /// The maximum number of sites that are fetched from at the same time.
    pub max_sites: Option<u64>,
}

impl ApplicationLimits {
    /// Checks the limits. The error is a message for people.
    pub fn check(&self, app: &str) -> Result<(), String> {
        match self.pages_per_second {
            Some(pages) if !(0.001..=1e6).contains(&pages) => Err(format!(
                "applications.{app}.pages_per_second = {pages}: must be from 0.001 to 1000000"
            )),
            _ if self.max_sites == Some(0) => Err(format!(
                "applications.{app}.max_sites = 0: must be at least 1"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_limits_are_refused_by_name() {
        assert_eq!(ApplicationLimits::default().check("app"), Ok(()));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let limits = ApplicationLimits {
                pages_per_second: Some(wrong),
                ..ApplicationLimits::default()
            };
            let why = limits.check("app").unwrap_err();
            assert!(
                why.starts_with("applications.app.pages_per_second"),
                "{why}"
            );
        }
        let limits = ApplicationLimits {
            max_sites: Some(0),
            ..ApplicationLimits::default()
        };
        assert!(limits.check("app").is_err());
    }
}
