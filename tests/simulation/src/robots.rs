//! The planned robots.txt of the simulated sites: files, redirects and failures, each for some time.

use webfill_wire::Outcome;

use crate::dice::Dice;
use crate::request::Response;
use crate::settings::LONGEST_WAIT_MS;

/// The answers of a site to requests for robots.txt. They change over time.
#[derive(Debug, Clone)]
pub(crate) struct RobotsPlan {
    /// The phases, in order of time, each with one state of robots.txt. The first one begins at 0.
    phases: Vec<Phase>,
}

#[derive(Debug, Clone)]
struct Phase {
    from_ms: u64,
    state: RobotsState,
}

/// A site's answer for robots.txt during one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RobotsState {
    File(RobotsFile),
    /// Status 404, which allows everything.
    Missing,
    /// Status 429. Nothing is allowed, as with 503.
    TooMany {
        retry_after_ms: Option<u64>,
    },
    /// Redirects without end, which in effect allow everything.
    EndlessRedirect,
    /// Status 500. Nothing is allowed.
    Error,
    /// Status 503. Nothing is allowed, and the site must be left alone.
    Overloaded {
        retry_after_ms: Option<u64>,
    },
    NoAnswer,
    /// The name does not resolve.
    NoName,
}

/// A planned robots.txt file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RobotsFile {
    pub(crate) crawl_delay_ms: Option<u64>,
    pub(crate) disallowed: Vec<usize>,
    /// The number of redirects before the file.
    pub(crate) redirects: u32,
}

/// The most redirects that a request for robots.txt follows, by RFC 9309.
pub(crate) const MOST_REDIRECTS: u32 = 5;

impl RobotsState {
    /// Whether robots.txt counts as unreachable, so that no page may be fetched.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(
            self,
            RobotsState::Error
                | RobotsState::Overloaded { .. }
                | RobotsState::TooMany { .. }
                | RobotsState::NoAnswer
                | RobotsState::NoName
        )
    }

    /// How long the site demands to be left alone.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        match self {
            RobotsState::TooMany { retry_after_ms }
            | RobotsState::Overloaded { retry_after_ms } => *retry_after_ms,
            _ => None,
        }
    }

    pub(crate) fn crawl_delay_ms(&self) -> Option<u64> {
        match self {
            RobotsState::File(file) => file.crawl_delay_ms,
            _ => None,
        }
    }

    pub(crate) fn disallows(&self, page: usize) -> bool {
        matches!(self, RobotsState::File(file) if file.disallowed.contains(&page))
    }
}

impl RobotsPlan {
    /// A plan with a single robots.txt file that never changes.
    pub(crate) fn steady_robots(crawl_delay_ms: Option<u64>) -> RobotsPlan {
        let file = RobotsFile {
            crawl_delay_ms,
            ..RobotsFile::default()
        };
        RobotsPlan {
            phases: vec![Phase {
                from_ms: 0,
                state: RobotsState::File(file),
            }],
        }
    }

    /// Draws a plan where robots.txt changes, fails, moves and forbids pages.
    pub(crate) fn draw(dice: &mut Dice, crawl_delay_ms: Option<u64>, pages: usize) -> RobotsPlan {
        let lasts_ms = pages as u64 * crawl_delay_ms.unwrap_or(1_000);
        let mut phases = Vec::new();
        let mut from_ms = 0;
        for _ in 0..dice.between(1, 5) {
            let state = draw_state(dice, crawl_delay_ms, pages);
            phases.push(Phase { from_ms, state });
            // Some changes come while the previous file is still valid, and some long after it has expired.
            from_ms += dice.log_uniform(1_000, lasts_ms.max(4_000_000));
        }
        RobotsPlan { phases }
    }

    /// Draws a plan where robots.txt never gets a successful answer.
    pub(crate) fn always_failing(dice: &mut Dice) -> RobotsPlan {
        let state = match dice.between(0, 3) {
            0 => RobotsState::Error,
            1 => RobotsState::NoAnswer,
            2 => RobotsState::NoName,
            _ => RobotsState::Overloaded {
                retry_after_ms: None,
            },
        };
        let from_ms = 0;
        RobotsPlan {
            phases: vec![Phase { from_ms, state }],
        }
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = &RobotsState> {
        self.phases.iter().map(|phase| &phase.state)
    }

    pub(crate) fn state(&self, phase: usize) -> &RobotsState {
        &self.phases[phase].state
    }

    /// Whether robots.txt fails at any time.
    pub(crate) fn ever_fails(&self) -> bool {
        self.states().any(RobotsState::is_unreachable)
    }

    /// The answer to a request that begins now, after `hop` redirects.
    pub(crate) fn response(&self, hop: u32, now_ms: u64) -> Response {
        let begun = |phase: &Phase| phase.from_ms <= now_ms;
        let phase = self.phases.iter().rposition(begun).unwrap_or(0);
        match &self.phases[phase].state {
            RobotsState::File(file) if hop < file.redirects => redirect(hop),
            RobotsState::File(file) => Response {
                body: robots_text(phase, file),
                ..Response::with_status(200, Outcome::Ok)
            },
            RobotsState::Missing => Response::with_status(404, Outcome::HttpError),
            RobotsState::TooMany { retry_after_ms } => Response::overloaded(429, *retry_after_ms),
            RobotsState::EndlessRedirect => redirect(hop),
            RobotsState::Error => Response::with_status(500, Outcome::HttpError),
            RobotsState::Overloaded { retry_after_ms } => {
                Response::overloaded(503, *retry_after_ms)
            }
            RobotsState::NoAnswer => Response::without_answer(Outcome::Timeout),
            RobotsState::NoName => Response::without_answer(Outcome::DnsError),
        }
    }

    /// The state of robots.txt that an answer without redirect shows. A file contains the number of its phase; for
    /// other answers, the status determines the state.
    pub(crate) fn state_meant_by(&self, status: Option<u16>, body: &str) -> RobotsState {
        match status {
            Some(200) => self.state(phase_of(body)).clone(),
            Some(408 | 429) => RobotsState::Error,
            Some(300..=499) => RobotsState::Missing,
            _ => RobotsState::Error,
        }
    }
}

fn redirect(hop: u32) -> Response {
    Response {
        redirect: Some(format!("/robots-{}", hop + 1)),
        ..Response::with_status(302, Outcome::Redirected)
    }
}

/// The number of redirects that have led to this path of robots.txt.
pub(crate) fn hop_of(path: &str) -> u32 {
    let hop = path.strip_prefix("/robots-");
    hop.map_or(0, |hop| hop.parse().expect("a path of ours"))
}

const PHASE: &str = "# phase ";

/// The text of a robots.txt file. The first line contains the number of the phase, for the judge. The crawler reads
/// this line as a comment.
fn robots_text(phase: usize, file: &RobotsFile) -> String {
    let mut text = format!("{PHASE}{phase}\nUser-agent: *\n");
    if let Some(delay_ms) = file.crawl_delay_ms {
        text += &format!("Crawl-delay: {}\n", delay_ms as f64 / 1e3);
    }
    for page in &file.disallowed {
        text += &format!("Disallow: /{page}$\n");
    }
    text
}

fn phase_of(body: &str) -> usize {
    let first = body
        .lines()
        .next()
        .and_then(|line| line.strip_prefix(PHASE));
    first
        .and_then(|phase| phase.parse().ok())
        .expect("a file of ours")
}

fn draw_state(dice: &mut Dice, crawl_delay_ms: Option<u64>, pages: usize) -> RobotsState {
    match dice.between(0, 12) {
        0 => RobotsState::Missing,
        1 => RobotsState::EndlessRedirect,
        2 => RobotsState::Error,
        3 => RobotsState::Overloaded {
            retry_after_ms: draw_retry_after_ms(dice),
        },
        4 => RobotsState::NoAnswer,
        5 => RobotsState::NoName,
        6 => RobotsState::TooMany {
            retry_after_ms: draw_retry_after_ms(dice),
        },
        _ => RobotsState::File(draw_file(dice, crawl_delay_ms, pages)),
    }
}

fn draw_file(dice: &mut Dice, crawl_delay_ms: Option<u64>, pages: usize) -> RobotsFile {
    let disallowing = dice.one_of(&[0, 0, 3]);
    RobotsFile {
        crawl_delay_ms: match dice.between(0, 3) {
            0 => None,
            1 => crawl_delay_ms.map(|delay_ms| (2 * delay_ms).min(LONGEST_WAIT_MS)),
            _ => crawl_delay_ms,
        },
        disallowed: (0..pages).filter(|_| dice.once_in(disallowing)).collect(),
        redirects: match dice.once_in(3) {
            true => dice.between(1, u64::from(MOST_REDIRECTS)) as u32,
            false => 0,
        },
    }
}

/// Draws the wait that an overloaded site demands; `None` if it demands none.
pub(crate) fn draw_retry_after_ms(dice: &mut Dice) -> Option<u64> {
    dice.once_in(2).then(|| dice.log_uniform(500, 7_200_000))
}
