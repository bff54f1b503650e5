//! The web that the measured frontier crawls.

/// The number of links on a page, and how many of them are new.
pub const LINKS: u64 = 100;
pub const NEW_LINKS: u64 = 20;

const SITES: u64 = 100_000;

/// A web that is generated while it is crawled. The same number always stands for the same URL.
pub struct Web {
    pub known: u64,
    rng: fastrand::Rng,
    local: bool,
}

impl Web {
    pub fn new(local: bool) -> Web {
        Web {
            known: 0,
            rng: fastrand::Rng::with_seed(1),
            local,
        }
    }

    pub fn page_links(&mut self) -> Vec<String> {
        let mut links: Vec<_> = (0..NEW_LINKS).map(|_| self.new_url()).collect();
        links.extend((NEW_LINKS..LINKS).map(|nth| {
            let nearby = self.local && nth % 10 < 7;
            url(if nearby {
                self.draw_nearby_url()
            } else {
                self.draw_any_url()
            })
        }));
        links
    }

    pub fn new_url(&mut self) -> String {
        self.known += 1;
        url(self.known - 1)
    }

    fn draw_any_url(&mut self) -> u64 {
        self.rng.u64(..self.known)
    }

    /// A recent URL: one of the latest ten thousand, which come from the latest five hundred pages.
    fn draw_nearby_url(&mut self) -> u64 {
        self.known - 1 - self.rng.u64(..self.known.min(10_000))
    }
}

/// A URL of some seventy bytes. Most new links of one page belong to the same site.
pub fn url(nth: u64) -> String {
    let neighbourhood = if nth % 10 == 9 { nth } else { nth / NEW_LINKS };
    let site = neighbourhood.wrapping_mul(0x9E37_79B9_7F4A_7C15) % SITES;
    let section = nth % 17;
    format!(
        "https://www.shop-{site}.com/section-{section}/an-article-about-{nth}?page={}",
        nth % 3
    )
}
